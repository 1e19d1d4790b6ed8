import { createHint } from '../../hint.ts';
import type { PreparedProtocol, QuotedProtocol } from '../../protocol.ts';
import { createChallenge } from './challenge.ts';
import { decodePayment, encodeHeader } from './header.ts';
import { quotedChallenge } from './quoted-challenge.ts';

const PAYMENT = 'payment-signature';
const V1_PAYMENT = 'x-payment';
const V1_REFUSED = 'X-PAYMENT is x402 version 1; this service speaks version 2: send PAYMENT-SIGNATURE';
/** Added to every route's hint: stock clients refuse assets that they do not know until they are allowed. */
const HOW_TO_PAY = 'Pay with any x402 v2 client (allow this asset in its spend controls) and repeat the request.';

/** x402 version 2 over HTTP: PAYMENT-REQUIRED, PAYMENT-SIGNATURE and PAYMENT-RESPONSE. */
export const x402Http: PreparedProtocol & QuotedProtocol = {
  carries: ({ headers }) => headers[PAYMENT] !== undefined,
  read: ({ headers }) => decodePayment(String(headers[PAYMENT])),
  unpaidReason: ({ headers }) => (headers[V1_PAYMENT] === undefined ? undefined : V1_REFUSED),
  prepare: (endpoint, accepts, origin) => {
    const challenge = createChallenge(endpoint, accepts, origin);
    const body = createHint(endpoint, HOW_TO_PAY, (hint) => JSON.stringify({ hint }));
    return ({ target, query }, error, corrected) => ({
      fields: [['payment-required', challenge(target, error, corrected)]],
      body: body(query),
      contentType: 'application/json',
    });
  },
  quote: (of, quote, error) => {
    const { header, body } = quotedChallenge(of, quote, error);
    return { fields: [['payment-required', header]], body, contentType: 'application/json; charset=utf-8' };
  },
  // A refusal without an offer is a PaymentRequired with its reason and an empty `accepts`.
  needsQuote: () => false,
  receipt: ({ receipt }) => [['payment-response', encodeHeader(receipt)]],
};
