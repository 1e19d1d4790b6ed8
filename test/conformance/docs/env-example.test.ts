import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { buildApp } from '../../../src/app.ts';
import { loadConfig } from '../../../src/config.ts';
import { createDeps } from '../../../src/wiring/service.ts';
import { ownPort } from '../../support/service/own-port.ts';
import { call } from '../../support/service/service.ts';

const [SELLERS = '', OTHERS = ''] = readFileSync(new URL('../../../.env.example', import.meta.url), 'utf8').split(
  '# Everything else has a working default.',
);
const keysOf = (text: string) => [...text.matchAll(/^([A-Z][A-Z0-9_]*)=/gm)].map(([, key]) => String(key));

let network: EmbeddedNetwork;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
});
afterAll(() => network.stop());

test('a service that has what a seller sets, and what NETWORK=custom needs beside it, starts and sells', async () => {
  const port = await ownPort();
  const folder = mkdtempSync(join(tmpdir(), 'percall-'));
  const sellers = {
    NODE_ENV: 'development',
    NETWORK: 'custom',
    RPC_URLS: network.rpcUrl,
    PUBLIC_ORIGIN: `http://127.0.0.1:${port}`,
    SELLER_ADDRESS: network.seller,
    RELAYER_PRIVATE_KEY: network.relayer.privateKey,
    PRICES: 'chain/wallet=0.004',
    ROUTES_OFF: 'web/check',
    CHANNELS: 'on',
    CHANNELS_AUTHORIZER_KEY: `0x${'2'.repeat(64)}`,
    LIGHTNING_RECEIVER: 'none',
  };
  expect(keysOf(SELLERS)).toEqual(Object.keys(sellers));
  const custom = { CHAIN_ID: String(network.chainId), USDC_ADDRESS: network.usdc };
  // The others are as in the file, beside where this test may listen and write.
  const here = { PORT: String(port), DATA_DIR: folder };
  const others = Object.fromEntries(
    OTHERS.split('\n').flatMap((line) => (/^[A-Z]/.test(line) ? [line.split('=', 2)] : [])),
  );
  expect(Object.keys(others).length).toBeGreaterThan(50);

  const deps = await createDeps(loadConfig({ ...others, ...sellers, ...custom, ...here }), pino({ level: 'silent' }));
  const app = await buildApp(deps);
  try {
    await app.listen({ host: '127.0.0.1', port });
    await expect.poll(async () => (await call(sellers.PUBLIC_ORIGIN, '/readyz')).status, { timeout: 30_000 }).toBe(200);
    const { status, headers } = await call(sellers.PUBLIC_ORIGIN, '/v1/paid/fees/forecast');
    const { accepts } = JSON.parse(Buffer.from(String(headers['payment-required']), 'base64').toString());
    expect([status, accepts[0]]).toEqual([
      402,
      expect.objectContaining({ payTo: network.seller, asset: network.usdc }),
    ]);
  } finally {
    await app.close();
    await deps.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
