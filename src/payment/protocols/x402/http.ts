import type { HttpProtocol } from '../../protocol.ts';
import { createChallenge } from './challenge.ts';
import { decodePayment, encodeHeader } from './header.ts';
import { createHint } from './hint.ts';
import { quotedChallenge } from './quoted-challenge.ts';

const PAYMENT = 'payment-signature';
const V1_PAYMENT = 'x-payment';
const V1_REFUSED = 'X-PAYMENT is x402 version 1; this service speaks version 2: send PAYMENT-SIGNATURE';

/** x402 version 2 over HTTP: PAYMENT-REQUIRED, PAYMENT-SIGNATURE and PAYMENT-RESPONSE. */
export const x402Http: HttpProtocol = {
  carries: ({ headers }) => headers[PAYMENT] !== undefined,
  read: ({ headers }) => decodePayment(String(headers[PAYMENT])),
  unpaidReason: ({ headers }) => (headers[V1_PAYMENT] === undefined ? undefined : V1_REFUSED),
  prepare: (endpoint, accepts, origin) => {
    const challenge = createChallenge(endpoint, accepts, origin);
    return {
      fields: (target, error, corrected) => [['payment-required', challenge(target, error, corrected)]],
      body: createHint(endpoint),
    };
  },
  quote: (of, quote, error) => {
    const { header, body } = quotedChallenge(of, quote, error);
    return { fields: [['payment-required', header]], body, contentType: 'application/json; charset=utf-8' };
  },
  receipt: ({ receipt }) => [['payment-response', encodeHeader(receipt)]],
};
