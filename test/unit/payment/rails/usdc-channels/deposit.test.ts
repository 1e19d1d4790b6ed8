import { describe, expect, test } from 'vitest';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import { depositCalldata } from '../../../../../src/payment/channels/calldata.ts';
import { checkDeposit, type DepositPayload, depositPayment } from '../../../../../src/payment/channels/deposit.ts';
import { DEPOSIT_COLLECTOR, depositNonce, SETTLEMENT_BYTES } from '../../../../../src/payment/channels/scheme.ts';
import { channelOf, scheme } from '../../../../support/channels/channel-payment.ts';
import { newKey } from '../../../../support/usdc/payments.ts';

const NOW = 1_800_000_000;
const config = channelOf(newKey().privateKey);
const channelId = scheme.channelId(config);
const deposit = {
  amount: 5000n,
  validAfter: BigInt(NOW) - 1n,
  validBefore: BigInt(NOW) + 100n,
  salt: 7n,
  signature: Buffer.alloc(65, 3),
};
const voucher = { channelId, maxClaimableAmount: 500n, signature: Buffer.alloc(65, 4) };
const payload: DepositPayload = { kind: 'deposit', config, voucher, deposit };
const hashOf = (more: Partial<DepositPayload>) => bytesToHex(depositPayment({ ...payload, ...more }).authorizationHash);

describe('a deposit as a payment', () => {
  test('is the payer’s authorization for the collector, whose nonce is bound to the channel', () => {
    const { authorization, channel, payload: kept } = depositPayment(payload);
    expect(kept).toEqual(payload);
    expect(authorization).toEqual({
      from: config.payer,
      to: hexToBytes(DEPOSIT_COLLECTOR),
      value: 5000n,
      signature: deposit.signature,
      validAfter: deposit.validAfter,
      validBefore: deposit.validBefore,
      nonce: depositNonce(channelId, 7n),
      // A plain transfer to the collector, with the same nonce, would not be in the channel.
      passedTo: SETTLEMENT_BYTES,
    });
    expect(channel).toEqual({ channelId, max: 500n, signature: voucher.signature });
  });

  test('is settled by the call of the settlement contract', () => {
    expect(depositPayment(payload).contractCall).toEqual({
      to: SETTLEMENT_BYTES,
      data: depositCalldata(config, 5000n, DEPOSIT_COLLECTOR, deposit),
    });
  });

  test('is all of its content: another authorization, channel or voucher is another payment', () => {
    const others = [
      { deposit: { ...deposit, amount: 5001n } },
      { deposit: { ...deposit, signature: Buffer.alloc(65, 9) } },
      { voucher: { ...voucher, channelId: Buffer.alloc(32, 1) } },
      { voucher: { ...voucher, maxClaimableAmount: 501n } },
      { voucher: { ...voucher, signature: Buffer.alloc(65, 9) } },
    ];
    expect(hashOf({})).toMatch(/^0x[0-9a-f]{64}$/);
    expect(new Set([hashOf({}), ...others.map(hashOf)]).size).toBe(6);
    expect(hashOf({})).toBe(hashOf({}));
  });
});

describe('the cheap checks of a deposit', () => {
  const bounds = { minDeposit: 5000n, leastValidity: 50, mostValidity: 720 };
  const judged = (more: Partial<typeof deposit>, minDeposit = bounds.minDeposit): string => {
    try {
      checkDeposit({ ...payload, deposit: { ...deposit, ...more } }, { ...bounds, minDeposit }, NOW);
      return 'taken';
    } catch (error) {
      return (error as { reason: string }).reason.replace('invalid_batch_settlement_evm_', '');
    }
  };
  const at = (seconds: number) => BigInt(NOW + seconds);

  test.each<[string, () => string, string]>([
    ['that is right', () => judged({}), 'taken'],
    ['that is just long enough', () => judged({ validBefore: at(50) }), 'taken'],
    ['that is a second too short', () => judged({ validBefore: at(49) }), 'payload_authorization_valid_before'],
    ['that is just short enough', () => judged({ validBefore: at(720) }), 'taken'],
    ['that is a second too long', () => judged({ validBefore: at(721) }), 'payload_authorization_valid_before'],
    ['that is valid from now on only', () => judged({ validAfter: at(0) }), 'payload_authorization_valid_after'],
    ['below the least amount', () => judged({ amount: 4999n }), 'deposit_below_min_deposit'],
    ['of nothing, where no least amount is set', () => judged({ amount: 0n }, 0n), 'deposit_below_min_deposit'],
    ['of one unit, where no least amount is set', () => judged({ amount: 1n }, 0n), 'taken'],
  ])('decide about one %s', (_, shown, expected) => {
    expect(shown()).toBe(expected);
  });
});
