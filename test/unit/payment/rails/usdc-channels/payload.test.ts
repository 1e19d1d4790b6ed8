import { describe, expect, test } from 'vitest';
import { readPayload } from '../../../../../src/payment/channels/scheme.ts';
import { voucherPayload } from '../../../../support/channels/channel-payment.ts';
import { newKey } from '../../../../support/usdc/payments.ts';

const { privateKey } = newKey();
const good = voucherPayload(privateKey, 5000n);
const SIGNATURE = `0x${'12'.repeat(65)}`;
const erc3009Authorization = {
  validAfter: '0',
  validBefore: '1800000000',
  salt: `0x${'00'.repeat(31)}07`,
  signature: SIGNATURE,
};
const deposit = { amount: '1000000', authorization: { erc3009Authorization } };

/** The reason against a payload, without the scheme's prefix; `taken` where there is none. */
const judged = (payload: Record<string, unknown>): string => {
  try {
    readPayload(payload);
    return 'taken';
  } catch (error) {
    return (error as { reason: string }).reason.replace('invalid_batch_settlement_evm_', '');
  }
};

describe('a payload', () => {
  test('of a voucher is read as numbers and bytes', () => {
    const read = readPayload(good);
    expect(read).toMatchObject({ kind: 'voucher', voucher: { maxClaimableAmount: 5000n } });
    expect(read.voucher.signature).toHaveLength(65);
    expect(read.config).toMatchObject({ withdrawDelay: 86_400 });
    expect(read.config.salt).toHaveLength(32);
  });

  test('of a deposit has the money beside the voucher', () => {
    expect(readPayload({ ...good, type: 'deposit', deposit })).toMatchObject({
      kind: 'deposit',
      deposit: { amount: 1_000_000n, validAfter: 0n, validBefore: 1_800_000_000n, salt: 7n },
    });
  });

  test('of a refund names an amount, or means everything', () => {
    expect(readPayload({ ...good, type: 'refund', amount: '7' })).toMatchObject({ kind: 'refund', amount: 7n });
    expect(readPayload({ ...good, type: 'refund' })).toMatchObject({ kind: 'refund', amount: null });
  });

  test.each(['claim', 'settle', 'refundWithSignature', '', undefined, 7])(
    'of the type %j is none of a buyer’s',
    (type) => {
      expect(judged({ ...good, type })).toBe('payload_type');
    },
  );

  test.each(['', '0x10', ' 5 ', '-1', '1.0', '1e3', String(2n ** 128n), 5000, null])(
    'with the amount %j is refused',
    (maxClaimableAmount) => {
      expect(judged({ ...good, voucher: { ...good.voucher, maxClaimableAmount } })).toBe('payload_type');
    },
  );

  test('may name the largest amount that the ledger can hold, and no more', () => {
    const of = (max: bigint) => judged({ ...good, voucher: { ...good.voucher, maxClaimableAmount: String(max) } });
    expect(of(2n ** 63n - 1n)).toBe('taken');
    expect(of(2n ** 63n)).toBe('payload_type');
  });

  test.each(['0x12', `0x${'1'.repeat(63)}g`, '1'.repeat(64), `0x${'1'.repeat(65)}`])(
    'whose channel id is %j is refused by name',
    (channelId) => {
      expect(judged({ ...good, voucher: { ...good.voucher, channelId } })).toBe('channel_id_invalid');
    },
  );

  test.each([
    ['a delay as a text', { withdrawDelay: '86400' }],
    ['a delay that is no whole number', { withdrawDelay: 900.5 }],
    ['a delay below zero', { withdrawDelay: -1 }],
    ['a delay past the contract’s type', { withdrawDelay: 2 ** 40 }],
    ['a short salt', { salt: '0x00' }],
    ['a payer that is no address', { payer: '0x12' }],
    ['no receiver', { receiver: undefined }],
  ])('with %s is refused', (_, change) => {
    expect(judged({ ...good, channelConfig: { ...good.channelConfig, ...change } })).toBe('payload_type');
  });

  test('of a deposit without its EIP-3009 authorization, and of a refund of no number, are refused by name', () => {
    for (const other of [
      undefined,
      {},
      { amount: '1', authorization: { permit2Authorization: {} } },
      { ...deposit, amount: '-1' },
    ])
      expect(judged({ ...good, type: 'deposit', deposit: other })).toBe('erc3009_authorization_required');
    for (const amount of ['', 'all', 7]) expect(judged({ ...good, type: 'refund', amount })).toBe('refund_payload');
    expect(judged({ type: 'deposit', deposit })).toBe('payload_type');
  });

  test('without a signature, or with one of absurd length, is refused', () => {
    for (const signature of ['0x', '0x1', 'ff', `0x${'12'.repeat(4097)}`])
      expect(judged({ ...good, voucher: { ...good.voucher, signature } })).toBe('payload_type');
  });
});
