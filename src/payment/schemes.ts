import { BadParameter } from '../errors.ts';
import type { Credential, HttpProtocol, PaymentScheme, QuotedInvoice, RequestMessage } from './protocol.ts';

/** A line of Authorization: the scheme in lower case, and the rest. */
const AUTHORIZATION = /^([A-Za-z0-9]+) +(.+)$/;

/**
 * Adds payment schemes of HTTP authentication to a protocol. A quote is then asked for by one more line of WWW-Authenticate for each scheme, in the
 * given order. A request may present one payment only. An Authorization of another scheme is none of ours and is ignored.
 */
export function withSchemes(base: HttpProtocol, schemes: readonly PaymentScheme[]): HttpProtocol {
  const named = (name: string) => schemes.find((scheme) => scheme.names.includes(name));

  /** The scheme and the credential that a request presents; null without one. Throws BadParameter for two different ones. */
  function presented(message: RequestMessage): { scheme: PaymentScheme; text: string } | null {
    const lines = authorizations(message).flatMap((text) => {
      const [, name = '', rest = ''] = AUTHORIZATION.exec(text) ?? [];
      const scheme = named(name.toLowerCase());
      return scheme ? [{ scheme, text, rest }] : [];
    });
    const [first, ...more] = lines;
    // A scheme that was renamed comes in two lines, with the same credential in both.
    if (more.some(({ scheme, rest }) => scheme !== first?.scheme || rest !== first.rest)) throw twoPayments();
    return first ?? null;
  }

  return {
    ...base,
    carries: (message) =>
      base.carries(message) || (message.headers.authorization !== undefined && hasScheme(message, named)),
    read(message): Credential {
      const shown = message.headers.authorization === undefined ? null : presented(message);
      if (!shown) return base.read(message);
      if (base.carries(message)) throw twoPayments();
      return shown.scheme.read(shown.text);
    },
    quote(of, quote, error) {
      const demand = base.quote(of, quote, error);
      if (!quote) return demand;
      return { ...demand, fields: [...demand.fields, ['www-authenticate', lines(schemes, quote.invoice)]] };
    },
    receipt: (paid) => {
      const scheme = schemes.find(({ protocol }) => protocol === paid.credential?.protocol);
      return [...base.receipt(paid), ...(scheme?.receipt(paid) ?? [])];
    },
  };
}

const lines = (schemes: readonly PaymentScheme[], invoice: QuotedInvoice): string[] =>
  schemes.map(({ challenge }) => challenge(invoice));

function hasScheme(message: RequestMessage, named: (name: string) => PaymentScheme | undefined): boolean {
  return authorizations(message).some((text) => named(AUTHORIZATION.exec(text)?.[1]?.toLowerCase() ?? ''));
}

/** Every line of Authorization. Node keeps only the first of them in `headers`. */
function authorizations({ rawHeaders }: RequestMessage): string[] {
  return rawHeaders.filter((_value, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'authorization');
}

function twoPayments(): BadParameter {
  const message = 'this request presents two payments; present one. Nothing was charged for this request';
  return new BadParameter([{ path: 'authorization', message }], 'two_payments');
}
