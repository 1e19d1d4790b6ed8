import { AppError, Unavailable, UpstreamFailed } from '../errors.ts';
import { PaymentRefused } from './refusal.ts';

const AGAIN = '(whether this payment has moved money is open: present the same one again)';

/** 503: the outcome of the payment is not known yet. */
export function settlementUnknown(cause?: unknown): AppError {
  const detail =
    'the outcome of this payment is not known yet; present the same payment again, it is never taken twice';
  return new AppError(503, 'settlement_unknown', detail, { charged: 'unknown', retryAfterSeconds: 2, cause });
}

/**
 * Turns every failure of a task into 503 `settlement_unknown`. Once an intent is stored, a failure of the service does not say whether money moved.
 */
export async function openUntilKnown<T>(look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (cause) {
    throw settlementUnknown(cause);
  }
}

/**
 * Turns a source's failure into 503 `settlement_unavailable`. What a payment is checked against did not answer; the source of the data that is sold was not
 * asked, so the call is no 502, and nothing was taken for it.
 */
export async function checkable<T>(check: () => Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof UpstreamFailed)) throw error;
    const detail = `payments cannot be checked now: ${error.message}`;
    throw new Unavailable('settlement_unavailable', detail, 5, { cause: error });
  }
}

/**
 * Turns `charged: false` into `charged: "unknown"` in every error of `serve`. It wraps what is done for a payment that may have moved money before, or may
 * move it elsewhere: an authorization that reverted may be public, so a third party may send it at any moment; a channel's voucher may be charged; when a
 * write of the ledger is not answered, another presentation of the same payment may be sold.
 */
export async function inDoubt<T>(serve: () => Promise<T>): Promise<T> {
  try {
    return await serve();
  } catch (error) {
    throw asDoubt(error);
  }
}

/**
 * Leaves a 402 as it is. A 402 has no `charged` member: it says why this presentation was refused, not whether the authorization can still move
 * money.
 */
function asDoubt(error: unknown): unknown {
  if (error instanceof AppError) return error.charged === false ? asUnknown(error) : error;
  if (error instanceof PaymentRefused) return error;
  const detail = `This is a fault of the service, logged under the request id ${AGAIN}`;
  return new AppError(500, 'internal', detail, { charged: 'unknown', cause: error });
}

function asUnknown(error: AppError): AppError {
  const { status, code, message, retryAfterSeconds, errors, headers, members, cause } = error;
  // A conflict says itself what to present.
  const detail = status === 409 ? message : `${message} ${AGAIN}`;
  // Stays one, because it never counts as the buyer's doing.
  if (error instanceof Unavailable)
    return new Unavailable(code, detail, retryAfterSeconds, { charged: 'unknown', cause });
  return new AppError(status, code, detail, {
    charged: 'unknown',
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(errors && { errors }),
    headers,
    members,
    cause,
  });
}
