import { paymentLines, twoPayments } from './presented.ts';
import type { Credential, HttpProtocol, PaymentScheme, QuotedProtocol, RequestMessage } from './protocol.ts';

/** How long after its invoice has expired a proof of a scheme may be presented first, in seconds. The invoice was paid in time, so its buyer has paid. */
export const LATE_SECONDS = 7 * 86_400;

/**
 * Adds payment schemes of HTTP authentication to a protocol. A quote is then asked for by one more line of WWW-Authenticate for each scheme, in the
 * given order. A request may present one payment only. An Authorization of another scheme is none of ours and is ignored.
 */
export function withSchemes(base: QuotedProtocol, schemes: readonly PaymentScheme[]): QuotedProtocol {
  const names = schemes.flatMap((scheme) => scheme.names);

  /** The scheme and the credential that a request presents; null without one. Throws BadParameter for two different ones. */
  function presented(message: RequestMessage): { scheme: PaymentScheme; text: string } | null {
    const [first, ...more] = paymentLines(message, names);
    const schemeOf = (name = '') => schemes.find((scheme) => scheme.names.includes(name));
    const scheme = schemeOf(first?.scheme);
    if (!first || !scheme) return null;
    // A scheme that was renamed comes in two lines, with the same credential in both.
    if (more.some((line) => schemeOf(line.scheme) !== scheme || line.rest !== first.rest)) throw twoPayments();
    return { scheme, text: first.text };
  }

  return {
    ...base,
    carries: (message) => base.carries(message) || paymentLines(message, names).length > 0,
    read(message): Credential {
      const shown = presented(message);
      if (!shown) return base.read(message);
      if (base.carries(message)) throw twoPayments();
      return shown.scheme.read(shown.text);
    },
    quote(of, quote, error) {
      const demand = base.quote(of, quote, error);
      if (!quote) return demand;
      const lines = schemes.map(({ challenge }) => challenge(quote.invoice));
      return { ...demand, fields: [...demand.fields, ['www-authenticate', lines]] };
    },
    // A client of these schemes reads nothing else of a 402.
    needsQuote: (message) => paymentLines(message, names).length > 0,
    receipt: (paid) => {
      const scheme = schemes.find(({ protocol }) => protocol === paid.credential?.protocol);
      return [...base.receipt(paid), ...(scheme?.receipt(paid) ?? [])];
    },
  };
}

/**
 * Refuses a payment of a protocol that comes with a credential of the scheme `Payment` on the same request. Tokens of L402 are ignored, because some
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
