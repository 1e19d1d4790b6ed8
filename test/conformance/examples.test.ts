import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../scripts/embedded/network.ts';
import { balanceOf } from '../support/buyer.ts';
import { type Service, startService } from '../support/service.ts';

// What the landing page shows is taken off the page and run as it stands there.

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const ENTITIES: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };

let network: EmbeddedNetwork;
let service: Service;
let folder: string;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  service = await startService(network);
  // Below the project, so that the example finds the packages it names; `data` is not under version control.
  mkdirSync(join(ROOT, 'data'), { recursive: true });
  folder = mkdtempSync(join(ROOT, 'data/examples-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await service.stop();
  await network.stop();
});

/** The text of a block of code on the landing page, as somebody would copy it. */
async function shown(id: string): Promise<string> {
  const { body } = await service.get('/');
  const markup = new RegExp(`<code id="${id}">([\\s\\S]*?)</code>`).exec(body)?.[1] ?? '';
  return markup.replace(/<[^>]+>/g, '').replace(/&\w+;|&#39;/g, (entity) => ENTITIES[entity] ?? entity);
}

test('the ten lines of TypeScript buy a call, and the hash they print is its transfer', async () => {
  const code = await shown('pay-typescript');
  expect(code.trim().split('\n')).toHaveLength(10);
  const file = join(folder, 'pay.ts');
  writeFileSync(file, code);
  const before = await balanceOf(network, network.seller);
  const env = { PATH: process.env.PATH, BUYER_PRIVATE_KEY: network.buyer.privateKey };
  const { stdout } = await run(process.execPath, [file], { env });
  const [hash] = /0x[0-9a-f]{64}/.exec(stdout) ?? [];
  expect(await network.rpc('eth_getTransactionReceipt', [hash])).toMatchObject({ status: '0x1' });
  expect((await balanceOf(network, network.seller)) - before).toBe(2000n);
});

const hasCurl = spawnSync('curl', ['--version']).status === 0;
describe.skipIf(!hasCurl)(`curl${hasCurl ? '' : ' (skipped: it is not on this machine)'}`, () => {
  test('shows what the 402 asks for', async () => {
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
describe.skipIf(!hasPython)(`Python${hasPython ? '' : ' (skipped: it is not on this machine)'}`, () => {
  test('reads a free route with its standard library', async () => {
    const file = join(folder, 'read.py');
    writeFileSync(file, await shown('read-python'));
    const fees = async () => JSON.parse((await service.get('/v1/fees')).body);
    await expect.poll(async () => (await fees()).baseFee, { timeout: 20_000 }).not.toBeNull();
    const { stdout } = await run('python3', [file], { env: { PATH: process.env.PATH, NO_PROXY: '*' } });
    expect(stdout.trim()).toMatch(/^\d+(\.\d+)? gwei at block \d+$/);
  });
});
