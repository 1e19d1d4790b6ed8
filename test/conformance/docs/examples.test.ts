import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Examples, openExamples } from '../../support/service/shown-code.ts';

// Runs the code on the landing page as the page shows it.

const run = promisify(execFile);
const ENTITIES: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };

let examples: Examples;
beforeAll(async () => {
  examples = await openExamples();
});
afterAll(() => examples?.stop());

/** The text of a code block on the landing page, as a reader would copy it. */
async function shown(id: string): Promise<string> {
  const { body } = await examples.service.get('/');
  const markup = new RegExp(`<code id="${id}">([\\s\\S]*?)</code>`).exec(body)?.[1] ?? '';
  return markup.replace(/<[^>]+>/g, '').replace(/&\w+;|&#39;/g, (entity) => ENTITIES[entity] ?? entity);
}

test('the ten lines of TypeScript buy a call, and the printed hash is its transfer', async () => {
  const code = await shown('pay-typescript');
  expect(code.trim().split('\n')).toHaveLength(10);
  await examples.expectPurchase(code);
});

const hasCurl = spawnSync('curl', ['--version']).status === 0;
describe.skipIf(!hasCurl)(`curl${hasCurl ? '' : ' (skipped: it is not installed)'}`, () => {
  test('as documented shows the terms of the 402', async () => {
    const { network } = examples;
    const { stdout } = await run('sh', ['-c', await shown('ask-curl')]);
    const [requirement] = JSON.parse(stdout).accepts;
    expect(requirement).toMatchObject({
      scheme: 'exact',
      network: `eip155:${network.chainId}`,
      asset: network.usdc.toLowerCase(),
      amount: '2000',
      payTo: network.seller,
    });
  });
});

const hasPython = spawnSync('python3', ['-c', 'import urllib.request']).status === 0;
describe.skipIf(!hasPython)(`Python${hasPython ? '' : ' (skipped: it is not installed)'}`, () => {
  test('as documented reads a free route with its standard library', async () => {
    const file = examples.write('read.py', await shown('read-python'));
    const fees = async () => JSON.parse((await examples.service.get('/v1/fees')).body);
    await expect.poll(async () => (await fees()).baseFee).not.toBeNull();
    const { stdout } = await run('python3', [file], { env: { PATH: process.env.PATH, NO_PROXY: '*' } });
    expect(stdout.trim()).toMatch(/^\d+(\.\d+)? gwei at block \d+$/);
  });
});
