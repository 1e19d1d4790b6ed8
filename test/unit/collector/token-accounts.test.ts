import { expect, test } from 'vitest';
import type { BlockLog } from '../../../src/chain/block.ts';
import { TRANSFER_TOPIC } from '../../../src/chain/contracts.ts';
import { createTokenAccountScanner } from '../../../src/collector/tokens.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';

type Hex = `0x${string}`;
const repeat = (byte: string): Hex => `0x${byte.repeat(20)}`;
const [EURC, OTHER, USDC, ALICE, BOB] = ['e0', '70', '36', 'a1', 'b0'].map(repeat) as [Hex, Hex, Hex, Hex, Hex];
const ZERO = repeat('00');
const watch = (...addresses: Hex[]) => ({ tokens: addresses.map((address) => ({ symbol: 'T', address })), usdc: USDC });

const topic = (address: string): Hex => `0x${address.slice(2).padStart(64, '0')}`;
const transfer = (block: number, emitter: Hex, from: Hex, to: Hex, amount = 5n): BlockLog => ({
  block,
  at: 1000 + block,
  logIndex: block,
  transactionHash: topic('0x1'),
  address: emitter,
  topics: [TRANSFER_TOPIC, topic(from), topic(to)],
  data: topic(`0x${amount.toString(16)}`),
});
const scan = (logs: BlockLog[], { tokens, usdc } = watch(EURC)) =>
  (createTokenAccountScanner({ tokens, usdc }).scan({ from: 1, to: 9, logs }).tokenAccounts ?? []).map(
    ({ block, at, token, account }) => `${block} ${at} ${bytesToHex(token)} ${bytesToHex(account)}`,
  );

test('a transfer shows both its accounts; a mint and a burn show one', () => {
  expect(scan([transfer(1, EURC, ALICE, BOB), transfer(2, EURC, ZERO, ALICE), transfer(3, EURC, BOB, ZERO)])).toEqual([
    `1 1001 ${EURC} ${ALICE}`,
    `1 1001 ${EURC} ${BOB}`,
    `2 1002 ${EURC} ${ALICE}`,
    `3 1003 ${EURC} ${BOB}`,
  ]);
});

test('not: a transfer of nothing, another token, USDC, and another event', () => {
  const approval = { ...transfer(4, EURC, ALICE, BOB), topics: [topic('0x1'), topic(ALICE), topic(BOB)] };
  const logs = [transfer(1, EURC, ALICE, BOB, 0n), transfer(2, OTHER, ALICE, BOB), transfer(3, USDC, ALICE, BOB)];
  expect(scan([...logs, approval], watch(EURC, USDC))).toEqual([]);
});

test('the node is asked for the watched tokens alone, and for nothing without one', () => {
  const scanner = createTokenAccountScanner(watch(OTHER, USDC, EURC));
  expect(scanner.filters()).toEqual([{ addresses: [OTHER, EURC], topics: [[TRANSFER_TOPIC]] }]);
  expect(createTokenAccountScanner(watch(USDC)).filters()).toEqual([]);
});

test('another list of tokens is another key, in another order it is the same', () => {
  const key = (...tokens: Hex[]) => createTokenAccountScanner(watch(...tokens)).key;
  expect(key(EURC, OTHER)).toBe(key(OTHER, EURC));
  expect(key(EURC, OTHER)).not.toBe(key(EURC));
});
