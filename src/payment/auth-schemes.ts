import { paymentLines, twoPayments } from './presented.ts';
import type { AuthScheme, Credential, HttpProtocol, QuotedProtocol, RequestMessage } from './protocol.ts';

/** How long after its invoice has expired a proof of an auth scheme may be presented first, in seconds. The invoice was paid in time, so its buyer has paid. */
export const LATE_SECONDS = 7 * 86_400;

/**
 * Adds auth schemes to a protocol. A quote is then asked for by one more line of WWW-Authenticate for each of them, in the given order. A request may
 * present one payment only. An Authorization of another auth scheme is none of ours and is ignored.
 */
export function withAuthSchemes(base: QuotedProtocol, authSchemes: readonly AuthScheme[]): QuotedProtocol {
  const names = authSchemes.flatMap((one) => one.names);

  /** The auth scheme and the credential that a request presents; null without one. Throws AppError (400) for two different ones. */
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
    needsQuote: (message) => paymentLines(message, names).length > 0,
    receipt: (paid) => {
      const by = authSchemes.find(({ protocol }) => protocol === paid.credential?.protocol);
      return [...base.receipt(paid), ...(by?.receipt(paid) ?? [])];
    },
  };
}

/**
 * Refuses a payment of a protocol that comes with a credential of the auth scheme `Payment` on the same request. Tokens of L402 are ignored, because some
 * clients send them to every URL of a host.
 */
export function refusingSecond<P extends HttpProtocol>(base: P): P {
  return {
    ...base,
    read(message: RequestMessage): Credential {
      if (paymentLines(message, ['payment']).length > 0) throw twoPayments();
      return base.read(message);
    },
  };
}
