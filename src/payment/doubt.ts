import { AppError } from '../errors.ts';
import { PaymentRefused } from './refusal.ts';

const AGAIN = '(this payment was tried before and may be public: present the same one again)';

/** 503: what became of a payment is not known yet. */
export function settlementUnknown(cause?: unknown): AppError {
  const detail =
    'the payment is on its way and its outcome not known yet; present the same payment again, it is never taken twice';
  return new AppError(503, 'settlement_unknown', detail, { charged: 'unknown', retryAfterSeconds: 2, cause });
}

/** Turns every failure of a task into 503 `settlement_unknown`: once an intent is stored, a failure of ours says nothing about the money. */
export async function openUntilKnown<T>(look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (cause) {
    throw settlementUnknown(cause);
  }
}

/**
 * Serves an authorization whose settlement failed before. It may be public, so a third party may send it at any moment. No error of `serve` leaves
 * here with `charged: false`: it says `"unknown"` instead.
 */
export async function inDoubt<T>(serve: () => Promise<T>): Promise<T> {
  try {
    return await serve();
  } catch (error) {
    throw asDoubt(error);
  }
}

/**
 * Passes a 402 on as it is: it has no `charged` member. It says why this presentation was refused, not that the authorization can no longer move
 * money.
 */
function asDoubt(error: unknown): unknown {
  if (error instanceof AppError) return error.charged === false ? asUnknown(error) : error;
  if (error instanceof PaymentRefused) return error;
  const detail = `This is a fault of the service, logged under the request id ${AGAIN}`;
  return new AppError(500, 'internal', detail, { charged: 'unknown', cause: error });
}

function asUnknown(error: AppError): AppError {
  const { status, code, message, retryAfterSeconds, errors, headers, cause } = error;
  return new AppError(status, code, `${message} ${AGAIN}`, {
    charged: 'unknown',
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(errors && { errors }),
    headers,
    cause,
  });
}
