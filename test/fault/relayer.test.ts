import { keccak256 } from 'viem';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { bytesToHex } from '../../src/lib/hex.ts';
import { neededValidity } from '../../src/payment/usdc/authorization.ts';
import { type RpcProxy, startRpcProxy } from '../support/chain/rpc-proxy.ts';
import { latchedEndpoint } from '../support/service/latch.ts';
import { type Answer, type Service, startService } from '../support/service/service.ts';
import { balanceOf, decoded, isPending, newBuyer, type Payment, present, transfersOf } from '../support/usdc/buyer.ts';
import { newOutsider } from '../support/usdc/outsider.ts';

/** The tests wait for settlements that are unknown. Every provider answers, and every handler ends. */
const env = {
  SETTLE_WAIT_MS: '1500',
  RPC_TIMEOUT_MS: '20000',
  RECONCILE_INTERVAL_MS: '1000',
  HANDLER_TIMEOUT_MS: '20000',
};
const latch = latchedEndpoint();
let network: EmbeddedNetwork;
let proxy: RpcProxy;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
});
beforeEach(async () => {
  proxy = await startRpcProxy(network.rpcUrl);
  service = await startService(network, {
    catalogue: [latch.endpoint],
    env: { ...env, RPC_URLS: `${proxy.url},${network.rpcUrl}` },
  });
});
afterEach(async () => {
  await service.stop();
  await proxy.stop();
});
afterAll(async () => {
  await network.stop();
});

const sleep = (ms: number) => new Promise((next) => setTimeout(next, ms));
const buy = (payment: Payment) => present(service.origin, latch.path, payment);
const sign = async (overrides = {}) => (await newBuyer(network)).sign(service.origin, latch.path, overrides);

/** Presents until the final answer. Before it only 503 and 409 may come, because a 402 would make a client pay again. */
async function untilServed(payment: Payment): Promise<Answer> {
  for (let tries = 0; tries < 200; tries++) {
    const answer = await buy(payment);
    if (answer.status === 200) return answer;
    expect([409, 503]).toContain(answer.status);
    await sleep(300);
  }
  throw new Error('the payment did not come to an end');
}

test('a transaction that a node refused for a while leaves no gap: it and the later ones settle', async () => {
  const [first, second] = [await sign(), await sign()];
  proxy.rule(({ method, index }) =>
    method === 'eth_sendRawTransaction' && index === 0
      ? { error: { code: -32000, message: 'txpool is full' } }
      : undefined,
  );
  const answers = [buy(first)];
  await sleep(200);
  answers.push(buy(second));
  await sleep(1200);
  proxy.rule(() => undefined);
  await Promise.all(answers);
  for (const payment of [first, second]) {
    expect((await untilServed(payment)).status).toBe(200);
    expect(await transfersOf(network, payment)).toBe(1);
  }
});

test('a node that once reported too high a nonce does not stop settlements', async () => {
  let once = true;
  proxy.rule(({ method }) => {
    if (method !== 'eth_getTransactionCount' || !once) return undefined;
    once = false;
    return { result: '0x400' };
  });
  const payment = await sign();
  expect([200, 503]).toContain((await buy(payment)).status);
  expect((await untilServed(payment)).status).toBe(200);
  expect((await untilServed(await sign())).status).toBe(200);
});

test('a provider that takes transactions and keeps them does not stop settlements: late ones are sent to every provider', async () => {
  proxy.rule(({ method, params }) =>
    method === 'eth_sendRawTransaction' ? { result: keccak256(params[0] as `0x${string}`) } : undefined,
  );
  const payment = await sign();
  expect((await buy(payment)).status).toBe(503);
  expect((await untilServed(payment)).status).toBe(200);
  expect(await transfersOf(network, payment)).toBe(1);
});

test('while settlements are late, calls are refused before their handler runs', async () => {
  await network.pauseMining();
  const [late, next] = [await sign(), await sign()];
  expect((await buy(late)).status).toBe(503);
  await expect.poll(async () => (await service.get('/readyz')).status).toBe(503);
  const runs = latch.runs();
  const refused = await buy(next);
  expect([refused.status, JSON.parse(refused.body).code]).toEqual([503, 'settlement_unavailable']);
  expect(JSON.parse(refused.body).charged).toBe(false);
  expect(latch.runs()).toBe(runs);
  await network.resumeMining();
  expect((await untilServed(late)).status).toBe(200);
  expect((await untilServed(next)).status).toBe(200);
});

test('an authorization that expires after its settlement was unknown is delivered, never refused as too late', async () => {
  const needed = neededValidity(service.config);
  const nowSeconds = () => Math.floor(Date.now() / 1000);
  const short = await sign({ validBefore: BigInt(nowSeconds() + needed - 3) });
  expect(decoded(await buy(short), 'payment-required').error).toMatch(/valid_before$/);
  const buyer = await newBuyer(network);
  await network.pauseMining();
  // Little more than the shortest validity that is accepted. So nothing slow comes between this and the purchase.
  const validBefore = nowSeconds() + needed + 8;
  const payment = await buyer.sign(service.origin, latch.path, { validBefore: BigInt(validBefore) });
  expect((await buy(payment)).status).toBe(503);
  // Mined in time, and asked for when less validity is left than a new payment needs.
  await network.resumeMining();
  await expect.poll(() => validBefore - nowSeconds()).toBeLessThan(needed);
  const answer = await untilServed(payment);
  expect(answer.status).toBe(200);
  expect(await transfersOf(network, payment)).toBe(1);
});

test('a third party’s transaction is found on a node that refuses log queries past its head', async () => {
  const outsider = await newOutsider(network);
  let head = 0;
  const timer = setInterval(async () => {
    head = Number(await network.rpc<string>('eth_blockNumber', []).catch(() => head));
  }, 50);
  proxy.rule(({ method, params }) => {
    const past = method === 'eth_getLogs' && Number((params[0] as { toBlock: string }).toBlock) > head + 1;
    return past ? { error: { code: -32602, message: 'block range extends beyond current head block' } } : undefined;
  });
  const payment = await sign();
  latch.close();
  const started = latch.started();
  const answer = buy(payment);
  await started;
  const hash = await outsider.submit(payment.authorization);
  latch.open();
  expect([200, 503]).toContain((await answer).status);
  const delivered = await untilServed(payment);
  clearInterval(timer);
  expect(decoded(delivered, 'payment-response').transaction).toBe(hash);
});

test('when the base fee rises above the offered one, the transaction is replaced with the same nonce and a higher fee', async () => {
  const payment = await sign();
  await network.pauseMining();
  // A busy machine may mine the replacement in one of the first blocks.
  const before = await balanceOf(network, network.seller);
  const answer = buy(payment);
  await expect.poll(() => isPending(network, bytesToHex(payment.authorization.nonce))).toBe(true);
  for (let block = 0; block < 4; block++) {
    await network.rpc('anvil_setNextBlockBaseFeePerGas', [`0x${(90n * 10n ** 9n).toString(16)}`]);
    await network.rpc('evm_mine', []);
  }
  expect((await answer).status).toBe(503);
  for (let block = 0; block < 300 && (await balanceOf(network, network.seller)) === before; block++) {
    await network.rpc('anvil_setNextBlockBaseFeePerGas', [`0x${(90n * 10n ** 9n).toString(16)}`]);
    await network.rpc('evm_mine', []);
    await sleep(200);
  }
  expect(await balanceOf(network, network.seller)).toBe(before + 1000n);
  await network.resumeMining();
  expect((await untilServed(payment)).status).toBe(200);
});

test('a second process over the same ledger does not start while the first is alive', async () => {
  const { dataDir } = service;
  await expect(startService(network, { catalogue: [latch.endpoint], dataDir })).rejects.toThrow(
    /another process serves/,
  );
});
