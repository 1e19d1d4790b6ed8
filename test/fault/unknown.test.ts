import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { type RpcProxy, startRpcProxy } from '../support/chain/rpc-proxy.ts';
import { countRunningTime } from '../support/running-time.ts';
import { latchedEndpoint } from '../support/service/latch.ts';
import { type Answer, type Service, startService } from '../support/service/service.ts';
import { newBuyer, type Payment, present, transfersOf } from '../support/usdc/buyer.ts';

const latch = latchedEndpoint();
let network: EmbeddedNetwork;
let proxy: RpcProxy;
let service: Service;
countRunningTime();
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  proxy = await startRpcProxy(network.rpcUrl);
});
afterAll(async () => {
  await proxy.stop();
  await network.stop();
});

/** Sells with this time for a settlement, in milliseconds. */
function sellWith(settleWaitMs: string): void {
  const env = { SETTLE_WAIT_MS: settleWaitMs, RPC_TIMEOUT_MS: '500', RECONCILE_INTERVAL_MS: '1000' };
  beforeAll(async () => {
    service = await startService(network, { catalogue: [latch.endpoint], env: { ...env, RPC_URLS: proxy.url } });
  });
  afterAll(() => service.stop());
}

const buy = (payment: Payment, query = '') => present(service.origin, latch.path + query, payment);

/** Presents again while the chain does not answer before the handler (503, not charged). On a busy machine it is sometimes late for its short time-out. */
async function buyPatiently(payment: Payment): Promise<Answer> {
  let answer = await buy(payment);
  const isEarly = () => answer.status === 503 && JSON.parse(answer.body).charged === false;
  for (let tries = 0; isEarly() && tries < 200; tries++) {
    await new Promise((next) => setTimeout(next, 300));
    answer = await buy(payment);
  }
  return answer;
}

/** Expects a 503 that says that the payment may have been taken. A 402 would make the buyer pay again. */
function expectUnknown(answer: Answer): void {
  expect(answer.status).toBe(503);
  expect(JSON.parse(answer.body)).toMatchObject({ code: 'settlement_unknown', charged: 'unknown' });
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  expect(answer.headers['payment-required']).toBeUndefined();
}

async function untilServed(payment: Payment): Promise<Answer> {
  for (let tries = 0; tries < 200; tries++) {
    const answer = await buy(payment);
    if (answer.status !== 503 && answer.status !== 409) return answer;
    await new Promise((next) => setTimeout(next, 300));
  }
  throw new Error('the payment did not come to an end');
}

describe('a settlement that is not known in time', () => {
  sellWith('1500');

  test('a transaction that is not mined in time is unknown; presented again it is delivered, and paid once', async () => {
    const payment = await (await newBuyer(network)).sign(service.origin, latch.path);
    const runs = latch.runs();
    await network.pauseMining();
    expectUnknown(await buyPatiently(payment));
    expectUnknown(await buy(payment));
    await network.resumeMining();
    const answer = await untilServed(payment);
    expect(answer.status).toBe(200);
    expect(latch.runs()).toBe(runs + 1);
    expect(await transfersOf(network, payment)).toBe(1);
  });

  test.each([
    ['is never taken', { eth_sendRawTransaction: 'drop' }],
    ['is refused for an unknown reason', { eth_sendRawTransaction: 'refuse' }],
    ['is mined while receipts cannot be read', { eth_getTransactionReceipt: 'drop' }],
  ] as const)(
    'a broadcast that %s is unknown until the chain shows the outcome, and is paid once',
    async (_, faults) => {
      const payment = await (await newBuyer(network)).sign(service.origin, latch.path);
      latch.close();
      const started = latch.started();
      const first = buyPatiently(payment);
      await started;
      proxy.fault(faults);
      latch.open();
      expectUnknown(await first);
      expectUnknown(await buy(payment, '?tag=other'));
      proxy.fault({});
      const answer = await untilServed(payment);
      expect(answer.status).toBe(200);
      expect(await transfersOf(network, payment)).toBe(1);
    },
  );
});

describe('a settlement that has time', () => {
  sellWith('60000');

  test('a broadcast that is accepted and never answered is found by its receipt', async () => {
    const payment = await (await newBuyer(network)).sign(service.origin, latch.path);
    proxy.fault({ eth_sendRawTransaction: 'deaf' });
    const answer = await buyPatiently(payment);
    proxy.fault({});
    expect(answer.status).toBe(200);
    expect(await transfersOf(network, payment)).toBe(1);
  });

  test('when the chain is away before the handler, the call is 503 with a time to come back, no handler runs, and the payment is valid later', async () => {
    const payment = await (await newBuyer(network)).sign(service.origin, latch.path);
    const runs = latch.runs();
    proxy.fault({ '*': 'drop' });
    const answer = await buy(payment);
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '5']);
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'settlement_unavailable', charged: false });
    expect(latch.runs()).toBe(runs);
    proxy.fault({});
    // The client backs off from a provider that failed, and returns to it by itself.
    expect((await buyPatiently(payment)).status).toBe(200);
  });
});
