import { TooMany } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import { createMinuteWindows, MAX_CLIENTS } from '../../../lib/limits/minute-windows.ts';
import { takeAll } from '../../../lib/limits/take-all.ts';
import type { Channel, ChannelOperation } from '../../../store/ports/channels.ts';
import { PaymentRefused } from '../../refusal.ts';
import { reason } from './payload.ts';

// A refund costs us up to 0.13M gas, and the request holds no fresh secret: a third party that has seen the last voucher can repeat it. The payer's own
// withdrawal needs no refund.

/** Milliseconds between two refunds of one channel. */
const PAUSE_MS = 600_000;
const DAY_MS = 86_400_000;
/** Refunds that one process begins in a day: for one payer, and for all. */
const A_DAY = { payer: 3, all: 100 };
/** The least refund in base units of USDC: 0.1 USDC for a part, 0.01 USDC for all that is left. A refund's gas is 0.003 USDC at 20 gwei. */
const LEAST = { part: 100_000n, all: 10_000n };
const ALL = 'all';

/**
 * The amount that goes back, in base units; `asked` null means all that is left. Throws PaymentRefused when nothing worth its gas is left
 * (`refund_no_balance`), and for a part that is too small or too large (`refund_amount_invalid`).
 */
export function amountOf({ state, charged }: Pick<Channel, 'state' | 'charged'>, asked: bigint | null): bigint {
  const left = state.balance - charged;
  if (left < LEAST.all) throw new PaymentRefused(reason('refund_no_balance'));
  if (asked === null || asked === left) return left;
  if (asked < LEAST.part || asked > left) throw new PaymentRefused(reason('refund_amount_invalid'));
  return asked;
}

/** Throws TooMany (429, `refund_too_soon`) when the channel's last refund ended less than PAUSE_MS ago. */
export function checkPause(last: ChannelOperation | null, nowMs: number): void {
  const leftMs = last?.endedAt ? last.endedAt + PAUSE_MS - nowMs : 0;
  if (leftMs > 0) throw tooSoon('this channel was refunded a moment ago', Math.ceil(leftMs / 1000));
}

/**
 * Counts the refunds of a day, for each payer and for all. A day begins with its first refund. The counts are in this process's memory and lost at a
 * restart, because they protect gas and not sales.
 */
export function createRefundLimits(clock: Clock) {
  const payers = createMinuteWindows(clock, MAX_CLIENTS, DAY_MS);
  const all = createMinuteWindows(clock, 1, DAY_MS);

  return {
    /**
     * Counts a refund of this payer, and returns a function that takes it back because it was not begun. Throws TooMany (429, `refund_too_soon`) when
     * the payer, or all payers together, have had their refunds of the day.
     */
    take(payer: string): () => void {
      const ofPayer = (seconds: number) => tooSoon(`this payer has had ${A_DAY.payer} refunds today`, seconds);
      const ofAll = (seconds: number) => tooSoon('too many channels were refunded today', seconds);
      return takeAll([
        { windows: payers, key: payer, limit: A_DAY.payer, refusal: ofPayer },
        { windows: all, key: ALL, limit: A_DAY.all, refusal: ofAll },
      ]);
    },
  };
}

function tooSoon(why: string, retryAfterSeconds: number): TooMany {
  return new TooMany('refund_too_soon', `${why}; the payer can also withdraw without us`, retryAfterSeconds);
}
