import { randomBytes } from 'node:crypto';
import { parseTransaction } from 'viem';
import { expect, test } from 'vitest';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { createGasModel, type Price, type Prices } from '../../../../../src/payment/relayer/gas.ts';
import {
  createFlights,
  createNonces,
  createWallet,
  type Flight,
  newest,
} from '../../../../../src/payment/relayer/transactions.ts';
import { MULTICALL3 } from '../../../../../src/payment/usdc/token.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { randomJob } from '../../../../support/usdc/token-node.ts';

const PRICE: Price = { maxFeePerGas: 100n, maxPriorityFeePerGas: 4n };
const above = ({ maxFeePerGas, maxPriorityFeePerGas }: Price): Price | null =>
  maxFeePerGas > 150n ? null : { maxFeePerGas: maxFeePerGas + 25n, maxPriorityFeePerGas: maxPriorityFeePerGas + 1n };

const PRICES: Prices = { blockGas: 30_000_000n, gasPrice: 50n, offer: PRICE, covers: () => true, above };

function bench() {
  const nonces = createNonces();
  nonces.learn(3);
  const wallet = createWallet(bytesToHex(randomBytes(32)), 5042);
  const gas = createGasModel(60);
  const flights = createFlights({ usdc: USDC, wallet, nonces, gas });
  return { flights, nonces, gas };
}
const signed = (flight: Flight) => parseTransaction(newest(flight).raw);

test('one payment goes to the token itself, several through Multicall3 with the sum of their budgets', () => {
  const { flights, gas } = bench();
  expect(signed(flights.open([randomJob()], PRICES))).toMatchObject({
    to: USDC,
    nonce: 3,
    gas: gas.limit({ transfers: 1, calls: 0 }),
    ...PRICE,
  });
  expect(signed(flights.open([randomJob(), randomJob()], PRICES))).toMatchObject({
    to: MULTICALL3,
    nonce: 4,
    gas: gas.limit({ transfers: 2, calls: 0 }),
  });
});

test('a nonce that was freed is the next to be used', () => {
  const { flights } = bench();
  const [first] = [flights.open([randomJob()], PRICES), flights.open([randomJob()], PRICES)];
  flights.close(first);
  expect(flights.has(first)).toBe(false);
  expect(flights.open([randomJob()], PRICES).nonce).toBe(3);
  expect(flights.open([randomJob()], PRICES).nonce).toBe(5);
});

test('closing a transaction a second time does not touch the one that has its nonce now', () => {
  const { flights } = bench();
  const first = flights.open([randomJob()], PRICES);
  flights.close(first);
  const second = flights.open([randomJob()], PRICES);
  flights.close(first);
  expect([second.nonce, flights.has(second), flights.size()]).toEqual([first.nonce, true, 1]);
});

test('a transaction counts as stuck behind a free nonce, and not behind a nonce in flight', () => {
  const { flights } = bench();
  const [first, second] = [flights.open([randomJob()], PRICES), flights.open([randomJob()], PRICES)];
  expect([flights.isBehindGap(first), flights.isBehindGap(second)]).toEqual([false, false]);
  flights.close(first);
  expect(flights.isBehindGap(second)).toBe(true);
});

test('a transaction that is replaced keeps its nonce and every version, and is replaced a limited number of times', () => {
  const { flights } = bench();
  const [a, b] = [randomJob(), randomJob()];
  const flight = flights.open([a, b], PRICES);
  expect(flights.replace(flight, [b], PRICES)).toBe(true);
  expect(flight.transactions.map(({ jobs }) => jobs)).toEqual([[a, b], [b]]);
  expect(signed(flight)).toMatchObject({ nonce: 3, to: USDC, maxFeePerGas: 125n, maxPriorityFeePerGas: 5n });
  while (flights.replace(flight, [b], PRICES)) expect(flight.transactions.length).toBeLessThan(9);
  expect(newest(flight).price.maxFeePerGas).toBeLessThanOrEqual(175n);
});

test('a transaction that was never sent leaves no trace, and frees the nonce only where it was the first version', () => {
  const { flights } = bench();
  const flight = flights.open([randomJob(), randomJob()], PRICES);
  flights.replace(flight, newest(flight).jobs, PRICES);
  flights.dropUnsent(flight);
  expect([flights.has(flight), flight.transactions.length]).toEqual([true, 1]);
  const [, left] = newest(flight).jobs;
  flights.replaceUnsent(flight, left ? [left] : []);
  expect([flight.transactions.length, newest(flight).jobs, newest(flight).price]).toEqual([1, [left], PRICE]);
  flights.dropUnsent(flight);
  expect(flights.has(flight)).toBe(false);
});

test('a fee that was too low for a nonce is outbid under it, and forgotten once the nonce is past', () => {
  const { flights, nonces } = bench();
  const flight = flights.open([randomJob()], PRICES);
  flights.outbid(flight);
  flights.close(flight);
  const second = flights.open([randomJob()], PRICES);
  expect(newest(second).price.maxFeePerGas).toBe(125n);
  expect(newest(flights.open([randomJob()], PRICES)).price).toEqual(PRICE);
  flights.close(second);
  nonces.passed(3, 100);
  expect(newest(flights.open([randomJob()], PRICES)).price).toEqual(PRICE);
});

test('a payment with a call of its own goes to its contract, alone with twice the gas that it gets in a batch', () => {
  const { flights, gas } = bench();
  const call = { to: randomBytes(20), data: randomBytes(612) };
  const [alone, beside] = [randomJob({ call }), randomJob({ call })];
  expect(signed(flights.open([alone], PRICES))).toMatchObject({
    to: bytesToHex(call.to),
    data: bytesToHex(call.data),
    gas: 400_000n,
  });
  const batch = signed(flights.open([beside, randomJob()], PRICES));
  expect(batch).toMatchObject({ to: MULTICALL3, gas: gas.limit({ transfers: 1, calls: 1 }) });
  expect(batch.data).toContain(bytesToHex(call.data).slice(2));
});
