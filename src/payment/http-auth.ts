import { createHmac, timingSafeEqual } from 'node:crypto';
import { AppError } from '../errors.ts';
import type { AuthScheme, Credential, HttpProtocol, QuotedProtocol, RequestMessage } from './protocol.ts';

// Payments in Authorization: L402 and MPP beside x402. A request presents one payment; two are refused before either is
// looked at. An Authorization of any other auth scheme is none of ours and is ignored.

/** How long after its invoice has expired a proof may be presented first, in seconds. Its buyer has paid in time. */
export const LATE_SECONDS = 7 * 86_400;

/** A quote is then also asked for by one line of WWW-Authenticate for each auth scheme, in the given order. */
export function withAuthSchemes(base: QuotedProtocol, authSchemes: readonly AuthScheme[]): QuotedProtocol {
  const names = authSchemes.flatMap((one) => one.names);

  /** What a request presents; null without one. Throws AppError (400) for two different ones. */
  function presented(message: RequestMessage): { by: AuthScheme; text: string } | null {
    const [first, ...more] = paymentLines(message, names);
    const named = (name = '') => authSchemes.find((one) => one.names.includes(name));
    const by = named(first?.authScheme);
    if (!first || !by) return null;
    // An auth scheme that was renamed comes in two lines, with the same credential in both.
    if (more.some((line) => named(line.authScheme) !== by || line.rest !== first.rest)) throw twoPayments();
    return { by, text: first.text };
  }

  return {
    ...base,
    carries: (message) => base.carries(message) || paymentLines(message, names).length > 0,
    read(message): Credential {
      const shown = presented(message);
      if (!shown) return base.read(message);
      if (base.carries(message)) throw twoPayments();
      return shown.by.read(shown.text);
    },
    quote(of, quote, error) {
      const demand = base.quote(of, quote, error);
      if (!quote) return demand;
      const lines = authSchemes.map(({ challenge }) => challenge(quote.invoice));
      return { ...demand, fields: [...demand.fields, ['www-authenticate', lines]] };
    },
    // A client of an auth scheme reads nothing else of a 402.
    needsOffer: (message) => paymentLines(message, names).length > 0,
    receipt: (receipt, credential, at) => {
      const by = authSchemes.find(({ protocol }) => protocol === credential?.protocol);
      return [...base.receipt(receipt, credential, at), ...(by?.receipt(receipt, credential, at) ?? [])];
    },
  };
}

/** Refuses a second payment by `Payment`. Tokens of L402 are ignored: some clients send them to every URL of a host. */
export function refusingSecond<P extends HttpProtocol>(base: P): P {
  return {
    ...base,
    read(message: RequestMessage): Credential {
      if (paymentLines(message, ['payment']).length > 0) throw twoPayments();
      return base.read(message);
    },
  };
}

const AUTHORIZATION = /^([A-Za-z0-9]+) +(.+)$/;
/** The auth schemes that present a payment. LSAT is the old name of L402. */
const AUTH_SCHEMES: readonly string[] = ['payment', 'l402', 'lsat'];
/** Header fields that hold a payment of x402, under the present name and the earlier ones. */
const PAYMENT_FIELDS = ['payment-signature', 'x-payment', 'x-payment-signature'];

interface PaymentLine {
  /** In lower case. */
  readonly authScheme: string;
  readonly text: string;
  /** The line without its auth scheme. */
  readonly rest: string;
}

/** Lines of Authorization that present a payment, by default in any scheme. Node keeps only the first in `headers`. */
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

export function presentsPayment(message: RequestMessage): boolean {
  return PAYMENT_FIELDS.some((name) => message.headers[name] !== undefined) || paymentLines(message).length > 0;
}

/** 400. Neither was looked at, and either may have been paid before: no answer says that nothing is charged. */
export function twoPayments(): AppError {
  const message = 'this request presents two payments; present one of them. Nothing was taken for this request';
  const errors = [{ path: 'authorization', message }];
  return new AppError(400, 'two_payments', `authorization: ${message}`, { charged: 'unknown', errors });
}

/** Keys that sign challenges. They must be equal on every instance. */
export interface ChallengeSecrets {
  /** Signs new challenges. At least 32 bytes. */
  readonly current: Uint8Array;
  /** Signed before the last change, or null. What it signed stays good, because a buyer may have paid for it. */
  readonly previous: Uint8Array | null;
}

export function hmac(key: Uint8Array, text: string | Uint8Array): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

/** Whether one of the keys made a signature, compared in constant time. */
export function isSignedBy(
  { current, previous }: ChallengeSecrets,
  signature: Uint8Array,
  sign: (key: Uint8Array) => Uint8Array,
): boolean {
  const keys = previous ? [current, previous] : [current];
  return keys.some((key) => {
    const expected = sign(key);
    return expected.length === signature.length && timingSafeEqual(expected, signature);
  });
}
