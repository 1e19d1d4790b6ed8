import { afterEach, expect, test, vi } from 'vitest';
import { createFees } from '../../../../../src/payment/relayer/gas.ts';
import { openClient } from '../../../../support/chain/client.ts';
import { startRpcServer } from '../../../../support/chain/rpc-server.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

const GWEI = 10n ** 9n;
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function bench() {
  const clock = createManualClock(1_800_000_000_000);
  let block: unknown;
  const asked: unknown[][] = [];
  const server = await startRpcServer({
    eth_getBlockByNumber: (params) => {
      asked.push(params);
      return block;
    },
  });
  const stop = new AbortController();
  const chain = openClient({ rpcUrls: [server.url], chainId: 5042, timeoutMs: 30_000 });
  closing.push(
    () => chain.close(),
    () => server.stop(),
  );
  const hex = (value: bigint) => `0x${value.toString(16)}`;
  const set = (gwei: bigint) => {
    block = { baseFeePerGas: hex(gwei * GWEI), gasLimit: hex(30_000_000n) };
  };
  set(20n);
  return {
    clock,
    fees: createFees(chain, clock, stop.signal),
    asked,
    stop: () => stop.abort(new Error('stopped')),
    set,
    nonsense: (value: unknown) => {
      block = value;
    },
    reads: () => server.count('eth_getBlockByNumber'),
  };
}

test('the offer is twice the base fee and a tip, and comes with the gas of a block', async () => {
  const { fees } = await bench();
  expect(fees.prices().gasPrice).toBe(0n);
  await fees.ready();
  expect(fees.prices().offer).toEqual({ maxFeePerGas: 40n * GWEI + GWEI / 10n, maxPriorityFeePerGas: GWEI / 10n });
  expect([fees.prices().blockGas, fees.prices().gasPrice]).toEqual([30_000_000n, 20n * GWEI + GWEI / 10n]);
});

test('a valid offer is used at once, while a newer one is asked for', async () => {
  const { fees, clock, set, reads } = await bench();
  await fees.ready();
  await fees.ready();
  expect(reads()).toBe(1);
  set(30n);
  await clock.advance(3000);
  await fees.ready();
  expect(fees.prices().gasPrice).toBe(20n * GWEI + GWEI / 10n);
  await vi.waitFor(() => expect(fees.prices().gasPrice).toBe(30n * GWEI + GWEI / 10n), {
    timeout: 60_000,
    interval: 5,
  });
  set(40n);
  await clock.advance(20_000);
  await fees.ready();
  expect(fees.prices().gasPrice).toBe(40n * GWEI + GWEI / 10n);
});

test.each([[null], [{}], [{ baseFeePerGas: 'much', gasLimit: '0x1' }]])(
  '%j for a block is an upstream failure, and changes nothing',
  async (value) => {
    const { fees, clock, nonsense } = await bench();
    await fees.ready();
    nonsense(value);
    await clock.advance(60_000);
    await expect(fees.ready()).rejects.toMatchObject({ code: 'upstream_failed' });
    expect(fees.prices().gasPrice).toBe(20n * GWEI + GWEI / 10n);
  },
);

test('a waiting transaction is raised by a quarter on both counts, to a ceiling that rises with the base fee', async () => {
  const { fees, clock, set } = await bench();
  await fees.ready();
  let price = fees.prices().offer;
  let raises = 0;
  for (let next = fees.prices().above(price); next; next = fees.prices().above(price)) {
    expect(next.maxFeePerGas * 10n).toBeGreaterThanOrEqual(price.maxFeePerGas * 11n);
    expect(next.maxPriorityFeePerGas * 10n).toBeGreaterThanOrEqual(price.maxPriorityFeePerGas * 11n);
    price = next;
    raises++;
  }
  expect(raises).toBeGreaterThan(3);
  expect(price.maxFeePerGas).toBeLessThanOrEqual(4n * fees.prices().offer.maxFeePerGas);
  set(90n);
  await clock.advance(3000);
  await fees.refresh();
  expect(fees.prices().above(price)).not.toBeNull();
});

test('an offer that was read does not change with the next reading', async () => {
  const { fees, clock, set } = await bench();
  await fees.ready();
  const before = fees.prices();
  set(30n);
  await clock.advance(20_000);
  await fees.ready();
  expect([before.gasPrice, fees.prices().gasPrice]).toEqual([20n * GWEI + GWEI / 10n, 30n * GWEI + GWEI / 10n]);
});

test('an offer covers what the next block may ask, and no more', async () => {
  const { fees } = await bench();
  await fees.ready();
  const tip = { maxPriorityFeePerGas: 1n };
  expect(fees.prices().covers({ maxFeePerGas: 20n * GWEI, ...tip })).toBe(false);
  expect(fees.prices().covers({ maxFeePerGas: (204n * GWEI) / 10n, ...tip })).toBe(true);
});

test('the chain is asked once for all callers that ask together, and not again within two seconds', async () => {
  const { fees, clock, reads } = await bench();
  await Promise.all([fees.refresh(), fees.refresh(), fees.ready()]);
  expect(reads()).toBe(1);
  await clock.advance(2000);
  await fees.refresh();
  expect(reads()).toBe(1);
  await clock.advance(1);
  await fees.refresh();
  expect(reads()).toBe(2);
});

test('an offer is used for fifteen seconds; after that the caller waits for a new one', async () => {
  const { fees, clock, set, reads, nonsense } = await bench();
  await fees.ready();
  // A failure meanwhile is thrown to no caller, and the next caller tries again.
  nonsense(null);
  await clock.advance(15_000);
  await fees.ready();
  await vi.waitFor(() => expect(reads()).toBe(2), { timeout: 60_000, interval: 5 });
  await expect(fees.refresh()).rejects.toMatchObject({ code: 'upstream_failed' });
  set(30n);
  await clock.advance(1);
  await fees.ready();
  expect(fees.prices().gasPrice).toBe(30n * GWEI + GWEI / 10n);
});

test('a raised offer is never below a fresh one, on either count, and is made up to the ceiling itself', async () => {
  const { fees } = await bench();
  await fees.ready();
  const { maxFeePerGas, maxPriorityFeePerGas } = fees.prices().offer;
  expect(fees.prices().above({ maxFeePerGas: 1n, maxPriorityFeePerGas: 1n })).toEqual(fees.prices().offer);
  const high = { maxFeePerGas: 2n * maxFeePerGas, maxPriorityFeePerGas: 1n };
  expect(fees.prices().above(high)).toEqual({ maxFeePerGas: (maxFeePerGas * 5n) / 2n, maxPriorityFeePerGas });
  const last = { maxFeePerGas: (16n * maxFeePerGas) / 5n, maxPriorityFeePerGas: 4n * maxPriorityFeePerGas };
  expect(fees.prices().above(last)).toEqual({
    maxFeePerGas: 4n * maxFeePerGas,
    maxPriorityFeePerGas: 5n * maxPriorityFeePerGas,
  });
  expect(fees.prices().above({ ...last, maxFeePerGas: last.maxFeePerGas + 1n })).toBeNull();
});

test('an offer that is a wei short of the next block’s base fee does not cover it', async () => {
  const { fees } = await bench();
  await fees.ready();
  const least = (204n * GWEI) / 10n;
  expect(fees.prices().covers({ maxFeePerGas: least - 1n, maxPriorityFeePerGas: 1n })).toBe(false);
  expect(fees.prices().covers({ maxFeePerGas: least, maxPriorityFeePerGas: 1n })).toBe(true);
});

test('the newest block is asked for, without its transactions, and not after the relayer has stopped', async () => {
  const { fees, asked } = await bench();
  await fees.refresh();
  expect(asked).toEqual([['latest', false]]);
  const { fees: stopped, asked: never, stop } = await bench();
  stop();
  await expect(stopped.refresh()).rejects.toThrow('stopped');
  expect(never).toEqual([]);
});

test('one provider’s sudden base fee does not count: another is asked, once it has doubled, and the lower one counts', async () => {
  const hex = (gwei: bigint) => `0x${(gwei * GWEI).toString(16)}`;
  let [first, second] = [2000n, 20n];
  const servers = await Promise.all(
    [() => first, () => second].map((fee) =>
      startRpcServer({ eth_getBlockByNumber: () => ({ baseFeePerGas: hex(fee()), gasLimit: '0x1c9c380' }) }),
    ),
  );
  const chain = openClient({ rpcUrls: servers.map(({ url }) => url), chainId: 5042, timeoutMs: 30_000 });
  closing.push(() => chain.close(), ...servers.map((server) => () => server.stop()));
  const clock = createManualClock(1_800_000_000_000);
  const fees = createFees(chain, clock, new AbortController().signal);
  const priceOf = async () => {
    await clock.advance(3000);
    await fees.refresh();
    return (fees.prices().gasPrice - 100_000_000n) / GWEI;
  };
  expect(await priceOf()).toBe(20n);
  first = 30n;
  const asked = servers[1]?.count('eth_getBlockByNumber');
  expect(await priceOf()).toBe(30n);
  expect(servers[1]?.count('eth_getBlockByNumber')).toBe(asked);
  [first, second] = [90n, 70n];
  expect(await priceOf()).toBe(70n);
});
