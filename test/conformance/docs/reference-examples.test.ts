import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { parseHTML } from 'linkedom';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Examples, openExamples } from '../../support/service/shown-code.ts';

// Runs the code of the reference as the page shows it: of a priced route, of a free one, and of one that takes a body.

const run = promisify(execFile);
const PRICED = 'paidChainWallet';

let examples: Examples;
let shown: (id: string) => string;
beforeAll(async () => {
  examples = await openExamples();
  const { document } = parseHTML((await examples.service.get('/docs')).body);
  shown = (id) => document.getElementById(id)?.textContent ?? '';
});
afterAll(() => examples?.stop());

test('the TypeScript of a priced route buys it, and the printed hash is its transfer', async () => {
  await examples.expectPurchase(shown(`${PRICED}-typescript`));
});

const tools = {
  curl: spawnSync('curl', ['--version']).status === 0,
  python: spawnSync('python3', ['-V']).status === 0,
};
const env = { PATH: process.env.PATH, NO_PROXY: '*' };
const inPython = async (id: string) => (await run('python3', [examples.write(`${id}.py`, shown(id))], { env })).stdout;
const inShell = async (id: string) => (await run('sh', ['-c', shown(id)], { env })).stdout;

describe.skipIf(!tools.curl)(`curl${tools.curl ? '' : ' (skipped: it is not installed)'}`, () => {
  test('shows the terms of a priced route', async () => {
    expect(JSON.parse(await inShell(`${PRICED}-curl`)).accepts[0]).toMatchObject({
      amount: '2000',
      payTo: examples.network.seller,
    });
  });

  test('reads a free route and posts a body', async () => {
    expect(JSON.parse(await inShell('priceList-curl')).routes.length).toBeGreaterThan(20);
    expect(await inShell('mcp-curl')).toContain('market_search');
  });
});

describe.skipIf(!tools.python)(`Python${tools.python ? '' : ' (skipped: it is not installed)'}`, () => {
  test('prints what a priced route costs', async () => {
    expect(await inPython(`${PRICED}-python`)).toMatch(
      new RegExp(`^2000 base units of 0x36\\w+ on eip155:5042 to ${examples.network.seller}`, 'i'),
    );
  });

  test('reads a free route and posts a body', async () => {
    expect(await inPython('priceList-python')).toMatch(/^200 \{/);
    expect(await inPython('mcp-python')).toContain('market_search');
    expect(await inPython('facilitatorSettle-python')).toMatch(/^200 .*"success":false/);
  });
});

test('the TypeScript of a free route and of one with a body runs as it is', async () => {
  for (const [id, answer] of [
    ['priceList', /^200 \{/],
    ['mcp', /market_search/],
  ] as const) {
    const { stdout } = await run(process.execPath, [examples.write(`${id}.ts`, shown(`${id}-typescript`))], { env });
    expect(stdout).toMatch(answer);
  }
});
