import { createHint } from '../../hint.ts';
import type { PreparedProtocol, QuotedProtocol, RequestMessage } from '../../protocol.ts';
import { createChallenge } from './challenge.ts';
import { decodePayment, encodeHeader } from './header.ts';
import { quotedChallenge } from './quoted-challenge.ts';

const PAYMENT = 'payment-signature';
/** Header fields in which no payment of version 2 comes, and what to do instead. */
const OTHER_HEADERS: readonly (readonly [name: string, refusal: string])[] = [
  ['x-payment', 'X-PAYMENT is x402 version 1; this service speaks version 2: send PAYMENT-SIGNATURE'],
  ['x-payment-signature', 'X-PAYMENT-SIGNATURE is no field of x402: send the payment in PAYMENT-SIGNATURE'],
];
/** Added to every route's hint: stock clients refuse assets that they do not know until they are allowed. */
const HOW_TO_PAY =
  'pay with any x402 v2 client that allows this asset in its spend controls, and repeat the request with PAYMENT-SIGNATURE.';
const CONTENT_TYPE = 'application/json; charset=utf-8';

/** x402 version 2 over HTTP: PAYMENT-REQUIRED, PAYMENT-SIGNATURE and PAYMENT-RESPONSE. */
export const x402Http: PreparedProtocol & QuotedProtocol = {
  carries: ({ headers }) => headers[PAYMENT] !== undefined,
  read: ({ headers }) => decodePayment(String(headers[PAYMENT])),
  unpaidReason,
  prepare: (endpoint, accepts, place) => {
    const challenge = createChallenge(endpoint, accepts, place.publicOrigin);
    const hint = createHint(endpoint, 'paid', HOW_TO_PAY, place);
    const usual = bodyOf(hint({ fault: null, refusal: null }));
    // Catalogues ask without parameters, so the last fault is often the next one too.
    let last: { readonly fault: string | null; readonly body: string } = { fault: null, body: usual };

    function unpaid(fault: string | null): string {
      if (fault === null) return usual;
      if (last.fault !== fault) last = { fault, body: bodyOf(hint({ fault, refusal: null })) };
      return last.body;
    }

    return ({ target, fault, refusal }, error, corrected) => ({
      fields: [['payment-required', challenge(target, error, corrected)]],
      body: error === undefined ? unpaid(fault) : bodyOf(hint({ fault, refusal: refusal ?? `${error}.` })),
      contentType: CONTENT_TYPE,
    });
  },
  quote: (of, quote, error) => {
    const { header, body } = quotedChallenge(of, quote, error);
    return { fields: [['payment-required', header]], body, contentType: CONTENT_TYPE };
  },
  // A refusal without an offer is a PaymentRequired with its reason and an empty `accepts`.
  needsQuote: () => false,
  receipt: ({ receipt }) => [['payment-response', encodeHeader(receipt)]],
};

function unpaidReason({ headers }: RequestMessage): string | undefined {
  for (const [name, refusal] of OTHER_HEADERS) if (headers[name] !== undefined) return refusal;
  return undefined;
}

/** Characters outside of ASCII. */
const WIDE = /[^ -~]/g;

/**
 * The body is text and not bytes, because Node sends text with the head in one write. It is ASCII: one other character makes the whole answer a text of
 * two bytes a character, which costs 1.5 us more to send. An apostrophe is the plain one, so that a hint reads well in a terminal.
 */
function bodyOf(hint: string): string {
  const text = JSON.stringify({ hint: hint.replaceAll('’', "'") });
  return text.replace(WIDE, (wide) => `\\u${wide.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
