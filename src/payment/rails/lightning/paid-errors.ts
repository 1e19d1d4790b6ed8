import { AppError } from '../../../errors.ts';
import { INVOICE_SECONDS, SKEW_SECONDS } from '../../lnbtc/terms.ts';

/** How long a proof can still be used after a failure. A claimed proof has seven days, as one with a challenge has. Another unclaimed one has its invoice's time. */
export const WORTH = {
  granted: 'The payment stays good for 7 days: present the same proof again, never pay twice.',
  unclaimed: `The payment was not taken yet: present the same proof again before its invoice is ${INVOICE_SECONDS + SKEW_SECONDS} seconds old, never pay twice.`,
  challenged: 'The payment was not taken yet: present the same proof again within 7 days, never pay twice.',
} as const;

/**
 * An error for a client that has paid: the same status and code, with how long the proof can still be used. An error that is no AppError stays 500
 * `internal`.
 */
export function afterPayment(error: unknown, worth: keyof typeof WORTH): AppError {
  const known = error instanceof AppError ? error : null;
  if (known?.charged === 'unknown') return known;
  const detail = known ? `${known.message} ${WORTH[worth]}` : WORTH[worth];
  const retryAfterSeconds = known?.retryAfterSeconds ?? 1;
  const options = { charged: 'unknown' as const, retryAfterSeconds, members: known?.members, cause: error };
  return new AppError(known?.status ?? 500, known?.code ?? 'internal', detail, options);
}

/**
 * An error for a client whose proof was refused, where no new offer can be made: the offer's own status and code, with the reason of the refusal. The
 * proof may be paid and good for another request, so the error does not say that nothing is charged.
 */
export function refusedWithoutOffer(error: unknown, reason: string): AppError {
  const known = error instanceof AppError ? error : null;
  const why = `The payment was refused: ${reason}. No new offer can be made now`;
  const retryAfterSeconds = known?.retryAfterSeconds ?? 1;
  const detail = known ? `${why}: ${known.message}` : `${why}.`;
  return new AppError(known?.status ?? 500, known?.code ?? 'internal', detail, {
    ...{ charged: 'unknown', retryAfterSeconds, members: known?.members, cause: error },
  });
}

/** 409: another presentation of the same claim is being served. */
export function paymentInFlight(): AppError {
  const detail = 'This payment is being served on another connection; present it again to get the answer.';
  return new AppError(409, 'payment_in_flight', detail, { charged: 'unknown', retryAfterSeconds: 1 });
}
