import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { bytesToHex } from '../../../../src/lib/hex.ts';
import type { Authorization } from '../../../../src/payment/settler.ts';
import { paymentsIn, readReceipt, type TransactionReceipt } from '../../../../src/payment/usdc/evidence.ts';
import { AUTHORIZATION_CANCELED, AUTHORIZATION_USED, TRANSFER } from '../../../../src/payment/usdc/token.ts';
import { USDC } from '../../../support/usdc/payments.ts';

/** keccak256 of `Approval(address,address,uint256)`. */
const APPROVAL = '0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925';
const SYSTEM = '0xfffffffffffffffffffffffffffffffffffffffe';
const word = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex').padStart(64, '0')}`;
const amount = (value: bigint) => `0x${value.toString(16).padStart(64, '0')}`;

function authorization(): Authorization {
  const common = { value: 1000n, validAfter: 0n, validBefore: 9n, signature: new Uint8Array(65) };
  return { ...common, from: randomBytes(20), to: randomBytes(20), nonce: randomBytes(32) };
}
const used = (a: Authorization, address: string = USDC) => ({
  address,
  topics: [AUTHORIZATION_USED, word(a.from), word(a.nonce)],
  data: '0x',
});
const transfer = (a: Authorization, value = a.value, address: string = USDC) => ({
  address,
  topics: [TRANSFER, word(a.from), word(a.to)],
  data: amount(value),
});
const receipt = (logs: TransactionReceipt['logs'], status = '0x1'): TransactionReceipt => ({
  status,
  logs,
  blockNumber: '0x1',
  gasUsed: '0x1',
  transactionHash: bytesToHex(randomBytes(32)),
});

describe('a receipt', () => {
  const [a, b] = [authorization(), authorization()];
  const paid = (logs: TransactionReceipt['logs'], of = a, status = '0x1') =>
    paymentsIn(receipt(logs, status), USDC)(of);

  test('pays for an authorization when its use is followed by its transfer, Arc’s mirror log between them or not', () => {
    expect(paid([used(a), transfer(a)])).toBe(1000n);
    expect(paid([used(a), transfer(a, a.value * 10n ** 12n, SYSTEM), transfer(a)])).toBe(1000n);
    const contract = `0x${USDC.slice(2).toUpperCase()}`;
    expect(paid([used(a, contract), transfer(a, a.value, contract)])).toBe(1000n);
  });
  test('of a batch pays for each with its own transfer', () => {
    const logs = [used(a), transfer(a), used(b), transfer(b)];
    const each = paymentsIn(receipt(logs), USDC);
    expect([each(a), each(b), each(authorization())]).toEqual([1000n, 1000n, null]);
  });
  test.each<[string, TransactionReceipt['logs'], string?]>([
    ['nothing', []],
    ['a use without a transfer', [used(a)]],
    ['a transfer without a use', [transfer(a)]],
    ['a transfer before the use', [transfer(a), used(a)]],
    ['a transfer after another’s use', [used(a), used(b), transfer(a)]],
    ['a transfer of less', [used(a), transfer(a, 999n)]],
    ['a transfer of less, then of the price', [used(a), transfer(a, 999n), transfer(a)]],
    ['a transfer of more', [used(a), transfer(a, 1001n)]],
    ['a transfer of another account’s money', [used(a), transfer({ ...a, from: b.from })]],
    ['a use of another nonce', [used({ ...a, nonce: b.nonce }), transfer(a)]],
    ['a use by another payer', [used({ ...a, from: b.from }), transfer(a)]],
    ['a transfer without an amount', [used(a), { ...transfer(a), data: '0x' }]],
    ['a transfer with more than an amount', [used(a), { ...transfer(a), data: `${amount(a.value)}00` }]],
    ['a transfer to another account', [used(a), transfer({ ...a, to: b.to })]],
    ['a use that another token claims', [used(a, SYSTEM), transfer(a)]],
    ['a transfer that another token claims', [used(a), transfer(a, a.value, SYSTEM)]],
    [
      'an approval in place of the transfer',
      [used(a), { ...transfer(a), topics: [APPROVAL, word(a.from), word(a.to)] }],
    ],
    ['a cancellation', [{ ...used(a), topics: [AUTHORIZATION_CANCELED, word(a.from), word(a.nonce)] }, transfer(a)]],
    ['a reverted transaction', [used(a), transfer(a)], '0x0'],
  ])('with %s pays for nothing', (_, logs, status) => {
    expect(paid(logs, a, status)).toBeNull();
  });
});

describe('a receipt of a payment that its recipient passes on', () => {
  const a = { ...authorization(), passedTo: randomBytes(20) };
  const b = { ...authorization(), to: a.to, passedTo: a.passedTo };
  const on = (value = a.value, to: Uint8Array = a.passedTo) => ({
    address: USDC,
    topics: [TRANSFER, word(a.to), word(to)],
    data: amount(value),
  });
  const paid = (logs: TransactionReceipt['logs'], of = a) => paymentsIn(receipt(logs), USDC)(of);

  test('pays when the same amount goes on to the contract, alone and in a batch', () => {
    expect(paid([used(a), transfer(a), on()])).toBe(1000n);
    const logs = [used(a), transfer(a), on(), used(b), transfer(b), on()];
    expect([paid(logs), paid(logs, b)]).toEqual([1000n, 1000n]);
  });

  test.each<[string, TransactionReceipt['logs']]>([
    ['stays with the recipient, as after a plain transfer', [used(a), transfer(a)]],
    ['goes on before it came', [used(a), on(), transfer(a)]],
    ['goes on under another authorization', [used(a), transfer(a), used(b), transfer(b), on()]],
    ['goes on in part', [used(a), transfer(a), on(999n)]],
    ['goes on to another account', [used(a), transfer(a), on(a.value, b.from)]],
    [
      'comes from another account',
      [used(a), transfer(a), { ...on(), topics: [TRANSFER, word(b.from), word(a.passedTo)] }],
    ],
    ['goes on in a log of another form', [used(a), transfer(a), { ...on(), data: '0x' }]],
  ])('pays for nothing when the money %s', (_, logs) => {
    expect(paid(logs)).toBeNull();
  });
});

describe('a node’s answer', () => {
  const good = receipt([used(authorization())]);

  test('is the receipt of the transaction that was asked for, in whatever case its hash is written', () => {
    expect(readReceipt(good, good.transactionHash)).toEqual(good);
    expect(readReceipt(good, `0x${good.transactionHash.slice(2).toUpperCase()}`)).toEqual(good);
  });

  test.each<[string, unknown]>([
    ['of another transaction', receipt([])],
    ['that is not there', null],
    ['without its status', { ...good, status: undefined }],
    ['with a status of its own', { ...good, status: '0x2' }],
    ['with a gas that is no number', { ...good, gasUsed: 'much' }],
    ['with a gas that is more than any', { ...good, gasUsed: `0x1${'0'.repeat(64)}` }],
    ['with a block that has something before its number', { ...good, blockNumber: 'x0x1' }],
  ])('%s is none', (_, raw) => {
    expect(readReceipt(raw, good.transactionHash)).toBeNull();
  });
});
