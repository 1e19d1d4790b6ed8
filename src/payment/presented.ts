import { AppError } from '../errors.ts';
import type { RequestMessage } from './protocol.ts';

/** A line of Authorization: the auth scheme and the rest. */
const AUTHORIZATION = /^([A-Za-z0-9]+) +(.+)$/;
/** The auth schemes that present a payment. LSAT is the old name of L402. */
const AUTH_SCHEMES: readonly string[] = ['payment', 'l402', 'lsat'];
/** Header fields that hold a payment of x402, under the present name and the earlier ones. */
const PAYMENT_FIELDS = ['payment-signature', 'x-payment', 'x-payment-signature'];

/** A line of Authorization that presents a payment. */
interface PaymentLine {
  /** In lower case. */
  readonly authScheme: string;
  readonly text: string;
  /** The line without its auth scheme. */
  readonly rest: string;
}

/**
 * The lines of Authorization that present a payment, by default in any auth scheme. Lines of all others are ignored, because a proxy of the operator
 * may use them. Node keeps only the first line in `headers`.
 */
export function paymentLines(message: RequestMessage, authSchemes = AUTH_SCHEMES): PaymentLine[] {
  if (message.headers.authorization === undefined) return [];
  const { rawHeaders } = message;
  const lines = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'authorization');
  return lines.flatMap((text) => {
    const [, authScheme = '', rest = ''] = AUTHORIZATION.exec(text) ?? [];
    const line = { authScheme: authScheme.toLowerCase(), text, rest };
    return authSchemes.includes(line.authScheme) ? [line] : [];
  });
}

/** Whether a request presents a payment in any protocol. `Authorization` may also hold a proxy's own token, which is none. */
export function presentsPayment(message: RequestMessage): boolean {
  return PAYMENT_FIELDS.some((name) => message.headers[name] !== undefined) || paymentLines(message).length > 0;
}

/** 400: a request presents two payments. None was looked at, and either may have been paid before. So the answer does not say that nothing is charged. */
export function twoPayments(): AppError {
  const message = 'this request presents two payments; present one of them. Nothing was taken for this request';
  const errors = [{ path: 'authorization', message }];
  return new AppError(400, 'two_payments', `authorization: ${message}`, { charged: 'unknown', errors });
}
