import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../scripts/embedded/network.ts';
import { balanceOf } from '../support/buyer.ts';
import { type Service, startService } from '../support/service.ts';

const ROOT = join(import.meta.dirname, '../..');
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');

let network: EmbeddedNetwork;
let service: Service;
let folder: string;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  service = await startService(network);
  // Below the project, so that the example finds the packages it names; `data` is not under version control.
  mkdirSync(join(ROOT, 'data'), { recursive: true });
  folder = mkdtempSync(join(ROOT, 'data/readme-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await service.stop();
  await network.stop();
});

test('the README’s ten lines buy a call, and the hash they print is its transfer', async () => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  expect(code.trim().split('\n').length).toBeLessThanOrEqual(10);
  const file = join(folder, 'example.ts');
  writeFileSync(file, code);
  const env = { PATH: process.env.PATH, ORIGIN: service.origin, BUYER_PRIVATE_KEY: network.buyer.privateKey };
  const before = await balanceOf(network, network.seller);
  const { stdout } = await promisify(execFile)(process.execPath, [file], { env });
  const [hash] = /0x[0-9a-f]{64}/.exec(stdout) ?? [];
  expect(await network.rpc('eth_getTransactionReceipt', [hash])).toMatchObject({ status: '0x1' });
  expect((await balanceOf(network, network.seller)) - before).toBe(2000n);
});

test('the README’s free URLs answer', async () => {
  const urls = [...readme.matchAll(/curl '?http:\/\/127\.0\.0\.1:4021(\/[^\s']*)/g)].map(([, path]) => String(path));
  expect(urls.length).toBeGreaterThanOrEqual(4);
  for (const path of urls) expect([path, (await service.get(path)).status]).toEqual([path, 200]);
});
