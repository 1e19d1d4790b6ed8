import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { offeredCatalogue } from '../../../src/catalogue/offered.ts';
import { exampleCall, payInTypeScript } from '../../../src/pages/examples.ts';

const README = readFileSync(join(import.meta.dirname, '../../../README.md'), 'utf8');

// biome-ignore lint/suspicious/noTemplateCurlyInString: as the README has it, where the shell sets the origin
const ORIGIN = '${process.env.ORIGIN}';

test('the README and the landing page show the same ten lines', () => {
  const asset = '0x3600000000000000000000000000000000000000';
  const call = exampleCall(catalogue as never, asset);
  if (call === null) throw new Error('no route is sold in USDC');
  const lines = payInTypeScript({ origin: ORIGIN, network: 'eip155:5042', asset }, call);
  expect(lines.trim().split('\n')).toHaveLength(10);
  expect(README).toContain(`\`\`\`ts\n${lines}\`\`\``);
});

test('the examples show what is sold: another call where the wallet is not, and the price of the dearest route as ceiling', () => {
  const { catalogue: offered } = offeredCatalogue(catalogue, {
    prices: ['web/extract=0.0125'],
    routesOff: ['chain/wallet', 'fees/forecast'],
  });
  expect(exampleCall(offered as never, '0x36')).toEqual({ path: '/v1/paid/fees/estimate?gas=51000', ceiling: '12500' });
  expect(exampleCall([], '0x36')).toBeNull();
});
