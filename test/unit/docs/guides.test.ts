import { expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { loadConfig } from '../../../src/config.ts';
import { inRepository, readText } from '../../support/documents.ts';

/** The text below a heading of the second or third rank, up to the next heading. */
function section(document: string, heading: string): string {
  const [, below = ''] = readText(document).split(new RegExp(`\n###? ${heading}\n`));
  return below.split('\n#')[0] ?? '';
}

test('no table has entries by the path of a route: the guide to a priced endpoint names the one list', () => {
  const guide = section('src/payment/ADDING.md', 'A priced endpoint');
  const priced = catalogue.filter(({ access }) => access === 'paid').map(({ path }) => path);
  const isTable = (text: string) => priced.filter((path) => text.includes(`'${path}':`)).length > priced.length / 2;
  expect(isTable(priced.map((path) => `  '${path}': 'words',`).join('\n'))).toBe(true);
  const files = inRepository('src/**/*.ts');
  expect(files.length).toBeGreaterThan(100);
  expect(files.filter((file) => isTable(readText(file)))).toEqual([]);
  expect(guide).toContain('`src/catalogue/catalogue.ts`');
});

test('the transcripts of the wire are recorded by a command that CONTRIBUTING.md names', () => {
  const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> };
  const [name] =
    Object.entries(scripts).find(([, line]) => line === 'vitest run test/conformance/wire.test.ts --update') ?? [];
  expect(name).toBeDefined();
  for (const file of ['CONTRIBUTING.md', 'test/conformance/wire.test.ts']) {
    expect(readText(file), file).toContain(`npm run ${name}`);
  }
});

test('docs/paying.md says where to get USDC on Arc and on its test network, by the addresses of the configuration', () => {
  const seller = { SELLER_ADDRESS: `0x${'5e'.repeat(20)}`, RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}` };
  const addresses = ['arc', 'arc-testnet'].map((NETWORK) => loadConfig({ NETWORK, ...seller }).network.getUsdcUrl);
  const linked = [...section('docs/paying.md', 'Getting USDC').matchAll(/\]\((https:[^)]+)\)/g)].map(([, url]) => url);
  expect(linked).toEqual(addresses);
});
