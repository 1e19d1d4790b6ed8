import { TooMany } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import { openClientWindows } from '../../../lib/limits/client-limit.ts';
import { createMinuteWindows, MAX_CLIENTS, type ReadableWindows } from '../../../lib/limits/minute-windows.ts';
import { clientTakes, type Take, takeAll } from '../../../lib/limits/take-all.ts';
import type { Channel, ChannelOperation, RefundTerms } from '../../../store/ports/channels.ts';
import { PaymentRefused } from '../../refusal.ts';
import { reason } from './payload.ts';

// A refund costs us up to 0.13M gas, and the request holds no fresh secret: each claim publishes the channel and its last voucher, and any third party
// can ask with them. The money goes to the payer in any case. The payer's own withdrawal needs no refund.

/** Milliseconds between two refunds of one channel. */
const PAUSE_MS = 600_000;
const DAY_MS = 86_400_000;
/**
 * Refunds that one process begins in a day. Of one signer and of one client where the client is the channel's last buyer. `thirdParties`: the part of
 * `all` that other clients may have, and what one signer and one client may have of it. A third party could otherwise use up the refunds of all buyers.
 */
const A_DAY = { signer: 3, client: 20, all: 100, thirdParties: { signer: 1, client: 3, all: 25 } };
/** The least refund in base units of USDC: 0.1 USDC for a part, 0.01 USDC for all that is left. A refund's gas is 0.003 USDC at 20 gwei. */
const LEAST = { part: 100_000n, all: 10_000n };
const ALL = 'all';

/**
 * Throws PaymentRefused (`refund_no_balance`) for a channel that has bought nothing here. Its payer withdraws without us: our gas pays for the refunds of
 * buyers.
 */
export function checkBought({ charged }: Pick<Channel, 'charged'>): void {
  if (charged === 0n) throw new PaymentRefused(reason('refund_no_balance'));
}

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

/**
 * Throws when the channel's last refund ended less than PAUSE_MS ago: PaymentRefused where nothing is left for another one, because a client that repeats
 * its refund must hear that it was made, else TooMany (429, `refund_too_soon`).
 */
export function checkPause(
  channel: Pick<Channel, 'state' | 'charged'>,
  asked: bigint | null,
  last: ChannelOperation | null,
  nowMs: number,
): void {
  const leftMs = last?.endedAt ? last.endedAt + PAUSE_MS - nowMs : 0;
  if (leftMs <= 0) return;
  amountOf(channel, asked);
  throw tooSoon('this channel was refunded a moment ago', Math.ceil(leftMs / 1000));
}

/** What must still hold when a refund is stored: another one may have ended, and a call been charged, since the checks. */
export const refundTerms = ({ charged }: Pick<Channel, 'charged'>, nowMs: number): RefundTerms => ({
  ...{ charged, pausedSince: nowMs - PAUSE_MS },
});

/**
 * Who asks for a refund. `signer`: the key that signs the channel's vouchers. `client`: its key in the limits. `isBuyer`: whether the channel's last sale
 * was made to it.
 */
interface Asking {
  readonly signer: string;
  readonly client: string;
  readonly isBuyer: boolean;
}

/**
 * Counts the refunds of a day, for each key that signs for channels, each client, each IPv6 /48 and for all. A day begins with its first refund. The counts are in this
 * process's memory and lost at a restart, because they protect gas and not sales.
 */
export function createRefundLimits(clock: Clock) {
  const open = () => createMinuteWindows(clock, MAX_CLIENTS, DAY_MS);
  const all = createMinuteWindows(clock, 1, DAY_MS);
  const ofBuyers = openCounts(open, A_DAY, 'the buyers of a channel');
  const ofThirdParties = openCounts(open, A_DAY.thirdParties, 'clients that are not the last buyers of a channel');
  const thirdParties = createMinuteWindows(clock, 1, DAY_MS);

  return {
    /**
     * Counts a refund, and returns a function that takes it back because it was not begun. Throws TooMany (429, `refund_too_soon`) when the signer, the
     * client, or all together have had their refunds of the day. What others ask for does not count for the payer's own refunds.
     */
    take({ signer, client, isBuyer }: Asking): () => void {
      const ofAll = (seconds: number) => tooSoon('too many channels were refunded today', seconds);
      return takeAll([
        ...(isBuyer ? ofBuyers : ofThirdParties)(signer, client),
        ...(isBuyer ? [] : [{ windows: thirdParties, key: ALL, limit: A_DAY.thirdParties.all, refusal: ofAll }]),
        { windows: all, key: ALL, limit: A_DAY.all, refusal: ofAll },
      ]);
    },
  };
}

/** The limits of a signer, of a client and of its site. `who` asks under them. */
function openCounts(open: () => ReadableWindows, most: { signer: number; client: number }, who: string) {
  const signers = open();
  const clients = openClientWindows(open, 'refunds');
  return (signer: string, client: string): Take[] => {
    const ofSigner = (seconds: number) =>
      tooSoon(`this payer has had ${most.signer} refunds for ${who} today`, seconds);
    const ofClient = (seconds: number) => tooSoon('this client has asked for too many refunds today', seconds);
    return [
      { windows: signers, key: signer, limit: most.signer, refusal: ofSigner },
      ...clientTakes(clients, client, most.client, ofClient),
    ];
  };
}

function tooSoon(why: string, retryAfterSeconds: number): TooMany {
  return new TooMany('refund_too_soon', `${why}; the payer can also withdraw without us`, retryAfterSeconds);
}
