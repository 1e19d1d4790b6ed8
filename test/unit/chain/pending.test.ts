import { expect, test } from 'vitest';
import { whatHolds } from '../../../src/chain/pending.ts';

const sent = { nonce: 7, gas: 21_000, value: 1_000n, maxFeePerGas: 25n };
const account = { accountNonce: 7, balance: 1_000n + 21_000n * 25n };
const fees = { nextBaseFee: 25n, floor: 20n };

test('nothing holds a transaction that is next, pays the fee exactly and is covered exactly', () => {
  expect(whatHolds(sent, account, fees)).toEqual([]);
});

test.each([
  ['a nonce that was used', { nonce: 6 }, {}, {}, ['nonceUsed']],
  ['a nonce that was used, whatever else', { nonce: 6, maxFeePerGas: 1n }, { balance: 0n }, {}, ['nonceUsed']],
  ['lower nonces that are missing', { nonce: 8 }, {}, {}, ['nonceGap']],
  ['a maximum below the next base fee', { maxFeePerGas: 24n }, {}, {}, ['feeTooLow']],
  ['a maximum at the floor', { maxFeePerGas: 20n }, {}, {}, ['feeTooLow']],
  ['a maximum below the floor', { maxFeePerGas: 19n }, {}, {}, ['feeBelowFloor']],
  ['a floor that is not known', { maxFeePerGas: 19n }, {}, { floor: null }, ['feeTooLow']],
  ['a wei too little', {}, { balance: account.balance - 1n }, {}, ['balanceTooLow']],
  ['all at once', { nonce: 9, maxFeePerGas: 1n }, { balance: 0n }, {}, ['nonceGap', 'feeBelowFloor', 'balanceTooLow']],
])('%s holds it', (_what, ofSent, ofAccount, ofFees, held) => {
  expect(whatHolds({ ...sent, ...ofSent }, { ...account, ...ofAccount }, { ...fees, ...ofFees })).toEqual(held);
});
