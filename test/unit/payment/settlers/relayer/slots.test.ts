import { randomBytes } from 'node:crypto';
import { parseTransaction } from 'viem';
import { expect, test } from 'vitest';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import type { Price } from '../../../../../src/payment/settlers/relayer/fees.ts';
import { createGasModel } from '../../../../../src/payment/settlers/relayer/gas-model.ts';
import { newest } from '../../../../../src/payment/settlers/relayer/job.ts';
import { MULTICALL3 } from '../../../../../src/payment/settlers/relayer/multicall.ts';
import { createNonces } from '../../../../../src/payment/settlers/relayer/nonces.ts';
import { createSlots } from '../../../../../src/payment/settlers/relayer/slots.ts';
import { createWallet } from '../../../../../src/payment/settlers/relayer/wallet.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { randomJob } from '../../../../support/usdc/token-node.ts';

const PRICE: Price = { maxFeePerGas: 100n, maxPriorityFeePerGas: 4n };
const above = ({ maxFeePerGas, maxPriorityFeePerGas }: Price): Price | null =>
  maxFeePerGas > 150n ? null : { maxFeePerGas: maxFeePerGas + 25n, maxPriorityFeePerGas: maxPriorityFeePerGas + 1n };

function bench() {
  const nonces = createNonces();
  nonces.learn(3);
  const wallet = createWallet(bytesToHex(randomBytes(32)), 5042);
  const gas = createGasModel(60);
  const slots = createSlots({ usdc: USDC, wallet, nonces, fees: { offer: () => PRICE, above }, gas });
  return { slots, nonces, gas };
}
const signed = (slot: Parameters<typeof newest>[0]) => parseTransaction(newest(slot).raw);

test('one payment goes to the token itself, several through Multicall3 with the sum of their budgets', () => {
  const { slots, gas } = bench();
  expect(signed(slots.open([randomJob()]))).toMatchObject({ to: USDC, nonce: 3, gas: gas.limit(1), ...PRICE });
  expect(signed(slots.open([randomJob(), randomJob()]))).toMatchObject({ to: MULTICALL3, nonce: 4, gas: gas.limit(2) });
});

test('a nonce that was given up is the next to be used', () => {
  const { slots } = bench();
  const [first] = [slots.open([randomJob()]), slots.open([randomJob()])];
  slots.close(first);
  expect(slots.has(first)).toBe(false);
  expect(slots.open([randomJob()]).nonce).toBe(3);
  expect(slots.open([randomJob()]).nonce).toBe(5);
});

test('a slot waits for ever behind a gap, and not behind one in flight', () => {
  const { slots } = bench();
  const [first, second] = [slots.open([randomJob()]), slots.open([randomJob()])];
  expect([slots.isBehindGap(first), slots.isBehindGap(second)]).toEqual([false, false]);
  slots.close(first);
  expect(slots.isBehindGap(second)).toBe(true);
});

test('a raised slot keeps its nonce and every version, and is not raised beyond reason', () => {
  const { slots } = bench();
  const [a, b] = [randomJob(), randomJob()];
  const slot = slots.open([a, b]);
  expect(slots.raise(slot, [b])).toBe(true);
  expect(slot.versions.map(({ jobs }) => jobs)).toEqual([[a, b], [b]]);
  expect(signed(slot)).toMatchObject({ nonce: 3, to: USDC, maxFeePerGas: 125n, maxPriorityFeePerGas: 5n });
  while (slots.raise(slot, [b])) expect(slot.versions.length).toBeLessThan(9);
  expect(newest(slot).price.maxFeePerGas).toBeLessThanOrEqual(175n);
});

test('a version that was never sent leaves without a trace, and takes the nonce along only where it was the first', () => {
  const { slots } = bench();
  const slot = slots.open([randomJob(), randomJob()]);
  slots.raise(slot, newest(slot).jobs);
  slots.dropUnsent(slot);
  expect([slots.has(slot), slot.versions.length]).toEqual([true, 1]);
  const [, left] = newest(slot).jobs;
  slots.replaceUnsent(slot, left ? [left] : []);
  expect([slot.versions.length, newest(slot).jobs, newest(slot).price]).toEqual([1, [left], PRICE]);
  slots.dropUnsent(slot);
  expect(slots.has(slot)).toBe(false);
});

test('what was too cheap for a nonce is outbid under it, and forgotten once it is past', () => {
  const { slots, nonces } = bench();
  const slot = slots.open([randomJob()]);
  slots.outbid(slot);
  slots.close(slot);
  const second = slots.open([randomJob()]);
  expect(newest(second).price.maxFeePerGas).toBe(125n);
  expect(newest(slots.open([randomJob()])).price).toEqual(PRICE);
  slots.close(second);
  nonces.passed(3, 100);
  expect(newest(slots.open([randomJob()])).price).toEqual(PRICE);
});
