import { AppError } from '../../errors.ts';

const STAYS_GOOD = 'The payment stays good for 7 days: present the same proof again, never pay twice.';

/** An error to somebody who has paid: the same status and code, and what the proof is still worth. Bugs stay bugs. */
export function afterPayment(error: unknown): AppError {
  const known = error instanceof AppError ? error : null;
  if (known?.charged === 'unknown') return known;
  const detail = known ? `${known.message} ${STAYS_GOOD}` : STAYS_GOOD;
  const retryAfterSeconds = known?.retryAfterSeconds ?? 1;
  const options = { charged: 'unknown' as const, retryAfterSeconds, cause: error };
  return new AppError(known?.status ?? 500, known?.code ?? 'internal_error', detail, options);
}

/** 409: another presentation of the same claim is being served. */
export function paymentInFlight(): AppError {
  const detail = 'This payment is being served on another connection; present it again to get the answer.';
  return new AppError(409, 'payment_in_flight', detail, { charged: 'unknown', retryAfterSeconds: 1 });
}
