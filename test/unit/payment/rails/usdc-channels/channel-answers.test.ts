import { describe, expect, test } from 'vitest';
import { channelReceipt, correctionOf, refundReceipt } from '../../../../../src/payment/channels/channel.ts';
import type { Channel } from '../../../../../src/store/ports/channels.ts';
import type { Payment } from '../../../../../src/store/ports/payments.ts';
import { channelState, channelTerms, SEEN_AT } from '../../../../support/ledger/channel-rows.ts';
import { hash32 } from '../../../../support/ledger/ledger-rows.ts';

const { id: channelId, network, payer } = channelTerms('a');
const HEX = `0x${Buffer.from(channelId).toString('hex')}`;
const PAYER = `0x${'09'.repeat(20)}`;
const state = channelState({ totalClaimed: 3n, withdrawAt: 1_800_000_000, refundNonce: 2n });
const shown = (charged: string) => ({
  channelId: HEX,
  balance: '10000',
  totalClaimed: '3',
  withdrawRequestedAt: 1_800_000_000,
  refundNonce: '2',
  chargedCumulativeAmount: charged,
});
const channel: Channel = {
  ...channelTerms('a'),
  charged: 700n,
  writtenOff: 0n,
  signature: null,
  state,
  readAt: SEEN_AT,
  usedAt: SEEN_AT,
  unclaimedSince: null,
  isConfirmed: true,
  claimRefusedAt: null,
};

test('a correction of a channel without a voucher tells its state alone, and that its payer has paid', () => {
  const extra = { channelState: shown('700') };
  expect(correctionOf(channel, true, false)).toEqual({ scheme: 'batch-settlement', isForgiven: true, extra });
  expect(correctionOf(channel, false, false).isForgiven).toBe(false);
});

describe('the receipt', () => {
  const after = { ...state, charged: 700n };
  const sale = (more: Partial<Payment>) =>
    ({ payer, network, amount: 5000n, price: 500n, transaction: null, channel: null, ...more }) as Payment;
  const charge = { channelId, max: 700n, signature: Buffer.alloc(65), after } as NonNullable<Payment['channel']>;

  test('of a voucher has no transaction and no amount, and tells what was charged', () => {
    expect(channelReceipt(sale({ channel: charge }))).toEqual({
      success: true,
      payer: PAYER,
      transaction: '',
      network,
      amount: '',
      extra: { chargedAmount: '500', channelState: shown('700') },
    });
  });

  test('of a deposit has its transaction and its amount', () => {
    const transaction = hash32('t');
    expect(channelReceipt(sale({ channel: charge, transaction }))).toMatchObject({
      transaction: `0x${Buffer.from(transaction).toString('hex')}`,
      amount: '5000',
    });
  });

  test('of a sale whose state is not known tells the price alone', () => {
    expect(channelReceipt(sale({})).extra).toEqual({ chargedAmount: '500' });
    expect(channelReceipt(sale({ price: null, channel: { ...charge, after: null } })).extra).toEqual({
      chargedAmount: '0',
    });
  });

  test('of a refund has its transaction, what went back, and the channel’s state', () => {
    expect(refundReceipt(channel, hash32('t'), 42n)).toEqual({
      success: true,
      payer: PAYER,
      network,
      amount: '42',
      transaction: `0x${Buffer.from(hash32('t')).toString('hex')}`,
      extra: { channelState: shown('700') },
    });
  });
});
