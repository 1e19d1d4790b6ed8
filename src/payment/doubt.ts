import { AppError } from '../errors.ts';
import { PaymentRefused } from './refusal.ts';

const AGAIN = '(this payment has been on the chain: present the same one again)';

/** 503: what became of a payment is not known yet. */
export function settlementUnknown(cause?: unknown): AppError {
  const detail =
    'the payment is on its way and its outcome not known yet; present the same payment again, it is never taken twice';
  return new AppError(503, 'settlement_unknown', detail, { charged: 'unknown', retryAfterSeconds: 2, cause });
}

/** From a stored intent on, a failure of ours says nothing about the money: the answer is 503 `settlement_unknown`, whatever failed. */
export async function openUntilKnown<T>(look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (cause) {
    throw settlementUnknown(cause);
  }
}

/**
 * Serves an authorization that reverted before. The chain shows it to everybody, so a third party may send it at any moment: whatever fails, the
 * answer does not say that nothing was charged.
 */
export async function inDoubt<T>(serve: () => Promise<T>): Promise<T> {
  try {
    return await serve();
  } catch (error) {
    throw asDoubt(error);
  }
}

/** A refusal stays as it is: it says why no money can move. */
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
