import type { SettleResponse } from '@x402/core/types';
import { Unavailable } from '../../../errors.ts';
import type { Channel } from '../../../store/ports/channels.ts';
import { PaymentRefused } from '../../refusal.ts';
import { correctionOf } from './channel-answers.ts';
import { overdueBefore } from './claim-risk.ts';
import type { ClaimLimits } from './claim-rows.ts';
import { reason } from './payload.ts';

interface StaleDetail {
  /** The scheme's name of the fault. */
  readonly code?: string;
  /** The receipt of a sale that the client does not know of. With it, the client does not try again by itself. */
  readonly settlement?: SettleResponse;
  /** Whether the refusal counts as no failure. By default: where the channel has bought something. */
  readonly isForgiven?: boolean;
}

/** 402: the voucher was signed on top of other charges than the channel's. The client learns which voucher to sign. */
export class StaleVoucher extends PaymentRefused {
  /** The channel's charges, in base units. */
  readonly charged: bigint;
  /** The scheme's name of the fault. */
  readonly code: string;
  constructor(channel: Channel, more: StaleDetail = {}) {
    const { code = 'cumulative_amount_mismatch', settlement = null, isForgiven = channel.charged > 0n } = more;
    super(reason(code), { settlement, correction: correctionOf(channel, isForgiven) });
    this.charged = channel.charged;
    this.code = code;
  }
}

/** What a voucher must cover: its ceiling, the price of the call, and the deposit that comes with it, in base units. */
export interface Covered {
  readonly max: bigint;
  readonly price: bigint;
  readonly deposit: bigint;
}

/**
 * Checks a voucher against the channel's charges and its money. Returns the first fault; null without one. `mayBeOld`: a new read of the chain may
 * mend it.
 * 1. The ceiling is the charges so far and the price. Otherwise the client's state is old.
 * 2. It is more than what is claimed. The channel's charges never fall below that.
 * 3. There is a channel.
 * 4. The escrow covers it, less what a pending withdrawal may still take.
 */
export function faultOf(
  channel: Channel,
  { max, price, deposit }: Covered,
): { refusal: PaymentRefused; mayBeOld: boolean } | null {
  const { charged, state } = channel;
  if (max <= state.totalClaimed)
    return { refusal: new StaleVoucher(channel, { code: 'cumulative_below_claimed' }), mayBeOld: false };
  if (max !== charged + price) return { refusal: new StaleVoucher(channel), mayBeOld: false };
  const balance = state.balance + deposit;
  if (balance === 0n) return { refusal: new PaymentRefused(reason('channel_not_found')), mayBeOld: true };
  if (max <= balance - state.withdrawAmount) return null;
  if (max <= balance) return { refusal: new PaymentRefused(reason('cumulative_exceeds_balance')), mayBeOld: true };
  // The client believes that more money is left. It reads the chain when an answer says that its state is old. So do we before we say so, and that is
  // counted: a channel that lacks a unit for the next call would be read for every voucher.
  return { refusal: new StaleVoucher(channel, { isForgiven: false }), mayBeOld: true };
}

/** When vouchers are no longer sold because their charges are not claimed. */
export interface ClaimTrouble {
  /** Why no claim can be sent now. */
  readonly unavailable: string;
  /** Whether the charges of all channels pass a bound (`claim-risk.ts`). */
  readonly isTooMuch: boolean;
  readonly limits: ClaimLimits;
  readonly nowMs: number;
}

/**
 * Throws Unavailable (`settlement_unavailable`) when the channel's oldest charge waits for more than twice its time, or when too much is at risk in all
 * channels. More charges would wait with them, and the payers may withdraw the money for all of them.
 */
export function checkClaimable({ unclaimedSince }: Channel, trouble: ClaimTrouble): void {
  const { unavailable, isTooMuch, limits, nowMs } = trouble;
  const isOverdue = unclaimedSince !== null && unclaimedSince < overdueBefore(limits, nowMs);
  if (!isOverdue && !isTooMuch) return;
  const whose = isOverdue ? 'this channel' : 'payment channels';
  throw new Unavailable('settlement_unavailable', `charges of ${whose} cannot be claimed now: ${unavailable}`);
}
