import { expect, test } from 'vitest';
import { createNonces } from '../../../../../src/payment/relayer/transactions.ts';

const held = (...nonces: number[]) => new Set(nonces);

test('the lowest free nonce is next, so that a gap is filled first', () => {
  const nonces = createNonces();
  nonces.learn(5);
  expect(nonces.next(held())).toBe(5);
  expect(nonces.next(held(5, 6))).toBe(7);
  expect(nonces.next(held(5, 7))).toBe(6);
});

test('a node that lags behind cannot take back what our own receipts have shown', () => {
  const nonces = createNonces();
  nonces.learn(5);
  nonces.passed(7, 100);
  expect(nonces.next(held())).toBe(8);
  nonces.learn(6);
  expect(nonces.next(held())).toBe(8);
  nonces.forget();
  expect(nonces.known()).toBe(false);
  nonces.learn(6);
  expect(nonces.next(held())).toBe(8);
});

test('a node that counts too high is believed only until it is asked again', () => {
  const nonces = createNonces();
  nonces.learn(1024);
  expect(nonces.next(held())).toBe(1024);
  nonces.learn(3);
  expect(nonces.next(held())).toBe(3);
});

test('a nonce counts as past by our receipts alone, never by a node’s count', () => {
  const nonces = createNonces();
  nonces.learn(9);
  expect(nonces.isPast(3)).toBe(false);
  nonces.passed(5, 100);
  expect([nonces.isPast(3), nonces.isPast(5), nonces.isPast(6)]).toEqual([true, true, false]);
});

test('before the chain was asked there is no nonce', () => {
  expect(() => createNonces().next(held())).toThrow(/not asked/);
});

test('the block up to which all is decided is the highest of our receipts, in whatever order they come', () => {
  const nonces = createNonces();
  expect(nonces.provenBlock()).toBe(0);
  nonces.passed(5, 100);
  nonces.passed(4, 99);
  expect([nonces.provenBlock(), nonces.isPast(5), nonces.known()]).toEqual([100, true, false]);
});

test('a receipt below the chain’s count takes nothing back', () => {
  const nonces = createNonces();
  nonces.learn(9);
  nonces.passed(5, 100);
  expect(nonces.next(held())).toBe(9);
});
