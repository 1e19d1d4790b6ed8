import { describe, expect, test } from 'vitest';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import { checkVoucher, readPayload } from '../../../../../src/payment/channels/scheme.ts';
import { CHANNEL_TERMS, channelOf, scheme, voucherPayload } from '../../../../support/channels/channel-payment.ts';
import { newKey } from '../../../../support/usdc/payments.ts';

const { privateKey } = newKey();
const good = voucherPayload(privateKey, 5000n);
/** The order of secp256k1. */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

type Payload = ReturnType<typeof voucherPayload>;
const judged = (payload: Payload): string => {
  try {
    checkVoucher(readPayload(payload), CHANNEL_TERMS, scheme);
    return 'taken';
  } catch (error) {
    return (error as { reason: string }).reason.replace('invalid_batch_settlement_evm_', '');
  }
};
const withSignature = (signature: Payload['voucher']['signature']): Payload => ({
  ...good,
  voucher: { ...good.voucher, signature },
});

describe('a voucher', () => {
  test('of a channel that pays here, signed by its key, is taken, and its channel’s id returned', () => {
    const id = checkVoucher(readPayload(good), CHANNEL_TERMS, scheme);
    expect(bytesToHex(id)).toBe(bytesToHex(scheme.channelId(channelOf(privateKey))));
  });

  test('whose id is not its channel’s is refused before anything else', () => {
    const channelId = `0x${'11'.repeat(32)}` as const;
    expect(judged({ ...good, voucher: { ...good.voucher, channelId } })).toBe('channel_id_mismatch');
    expect(judged({ ...good, channelConfig: { ...good.channelConfig, salt: channelId } })).toBe('channel_id_mismatch');
  });

  test.each([
    ['receiver_mismatch', { receiver: Buffer.alloc(20, 9) }],
    ['receiver_authorizer_mismatch', { receiverAuthorizer: Buffer.alloc(20, 9) }],
    ['token_mismatch', { token: Buffer.alloc(20, 9) }],
    ['withdraw_delay_mismatch', { withdrawDelay: 86_401 }],
    ['withdraw_delay_out_of_range', { withdrawDelay: 899 }],
    ['withdraw_delay_out_of_range', { withdrawDelay: 2_592_001 }],
    ['receiver_mismatch', { receiver: Buffer.alloc(20, 9), token: Buffer.alloc(20, 9), withdrawDelay: 1 }],
  ] as const)('is refused with %s, the first rule that its channel breaks', (why, more) => {
    expect(judged(voucherPayload(privateKey, 5000n, more))).toBe(why);
  });

  test.each(['900', '2592000'])('of a channel with the delay %s is within the contract’s bounds', (delay) => {
    const payload = readPayload(voucherPayload(privateKey, 1n, { withdrawDelay: Number(delay) }));
    const terms = { ...CHANNEL_TERMS, withdrawDelay: Number(delay) };
    expect(checkVoucher(payload, terms, scheme)).toHaveLength(32);
  });

  test('is taken in the one form of a signature that the contract takes', () => {
    const signature = hexToBytes(good.voucher.signature);
    const v = signature[64] ?? 0;
    const mirrored = Buffer.from(signature);
    const s = ORDER - BigInt(bytesToHex(signature.subarray(32, 64)));
    Buffer.from(s.toString(16).padStart(64, '0'), 'hex').copy(mirrored, 32);
    mirrored[64] = v === 27 ? 28 : 27;
    const zeroBased = Buffer.concat([signature.subarray(0, 64), Buffer.from([v - 27])]);
    for (const other of [mirrored, zeroBased, signature.subarray(0, 64), Buffer.concat([signature, Buffer.alloc(1)])])
      expect(judged(withSignature(bytesToHex(other)))).toBe('voucher_signature');
    expect(judged(good)).toBe('taken');
  });

  test('signed by another key, or for another amount, is refused', () => {
    const other = voucherPayload(newKey().privateKey, 5000n);
    expect(judged(withSignature(other.voucher.signature))).toBe('voucher_signature');
    expect(judged({ ...good, voucher: { ...good.voucher, maxClaimableAmount: '5001' } })).toBe('voucher_signature');
  });

  test('of a channel without a key of its own is refused: its payer could change its mind after it was served', () => {
    expect(judged(voucherPayload(privateKey, 5000n, { payerAuthorizer: Buffer.alloc(20) }))).toBe('voucher_signature');
  });
});
