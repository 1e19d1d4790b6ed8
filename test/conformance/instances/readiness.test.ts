import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { DOMAIN_SEPARATOR_CALLDATA } from '../../../src/payment/usdc/token.ts';
import { type RpcProxy, startRpcProxy } from '../../support/chain/rpc-proxy.ts';
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts';
import { type Service, startService } from '../../support/service/service.ts';

let network: EmbeddedNetwork;
let proxy: RpcProxy;
let service: Service;
let clock: ManualClock;
/** Requests that readiness sends to the chain. Nothing else sends them. */
let questions = 0;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  proxy = await startRpcProxy(network.rpcUrl);
  proxy.rule(({ params: [call] }) => {
    if ((call as { data?: string } | undefined)?.data === DOMAIN_SEPARATOR_CALLDATA) questions += 1;
    return undefined;
  });
  clock = createManualClock(Date.now());
  service = await startService(network, { env: { RPC_URLS: proxy.url, WS_URLS: '', COLLECTOR: 'off' }, clock });
});
afterAll(async () => {
  await service?.stop();
  await proxy?.stop();
  await network?.stop();
});

const ready = async () => (await service.get('/readyz')).status;

test('a flood of /readyz, which has no rate limit, asks the providers once a second', async () => {
  await clock.advance(1000);
  questions = 0;
  const flood = await Promise.all(Array.from({ length: 200 }, ready));
  expect(new Set(flood)).toEqual(new Set([200]));
  for (let call = 0; call < 50; call++) await ready();
  expect(questions).toBe(1);
  await clock.advance(1000);
  for (let call = 0; call < 50; call++) await ready();
  expect(questions).toBe(2);
});

test('a chain that is gone is noticed within a second, and so is its return', async () => {
  await clock.advance(1000);
  expect(await ready()).toBe(200);
  proxy.fault({ '*': 'refuse' });
  await clock.advance(1000);
  expect(await ready()).toBe(503);
  proxy.fault({});
  await clock.advance(1000);
  expect(await ready()).toBe(200);
});
