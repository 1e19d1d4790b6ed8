import { AppError } from '../errors.ts';
import { PaymentRefused } from './refusal.ts';

const AGAIN = '(this payment was tried before and may be public: present the same one again)';

/** 503: the outcome of the payment is not known yet. */
export function settlementUnknown(cause?: unknown): AppError {
  const detail =
    'the payment is on its way and its outcome not known yet; present the same payment again, it is never taken twice';
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
 * Turns `charged: false` into `charged: "unknown"` in every error of `serve`. It wraps the sale for an authorization whose settlement failed before.
 * Such an authorization may be public, so a third party may send it at any moment.
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
  return new AppError(status, code, `${message} ${AGAIN}`, {
    charged: 'unknown',
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(errors && { errors }),
    headers,
    members,
    cause,
  });
}
