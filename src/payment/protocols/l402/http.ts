import { type Clock, nowSeconds } from '../../../lib/clock.ts';
import type { ChallengeSecrets } from '../../challenge-secrets.ts';
import type { Credential, Fields, PaymentScheme, QuotedInvoice } from '../../protocol.ts';
import { PaymentRefused } from '../../refusal.ts';
import { issueToken, readToken } from './token.ts';

/** The scheme's name, and the one that it had before. Clients of both are in use. */
const CREDENTIAL = /^(?:l402|lsat) +([^: ][^:]*):([0-9a-f]{64})$/i;
/** A credential for this service takes about 1.5 KiB. Clients send one token, or one a service. Each token costs hashes before its signature is known. */
const MOST = { characters: 12_288, tokens: 8 };
/** Standard base64. One credential may hold several tokens, separated by commas. */
const TOKENS = /^[A-Za-z0-9+/]+={0,2}(?:, *[A-Za-z0-9+/]+={0,2})*$/;

/**
 * L402: a 402 names an invoice and a token; a paid request repeats the token with the invoice's preimage. A token buys one answer. Its README says how
 * that differs from the specification.
 */
export function createL402(secrets: ChallengeSecrets, clock: Clock): PaymentScheme {
  return {
    protocol: 'l402',
    names: ['l402', 'lsat'],
    read: (authorization): Credential => {
      const isShort = authorization.length <= MOST.characters;
      const [, text = '', preimage = ''] = (isShort && CREDENTIAL.exec(authorization)) || [];
      const tokens = TOKENS.test(text) ? text.split(/, */) : [];
      if (tokens.length === 0 || tokens.length > MOST.tokens) throw new PaymentRefused('invalid_payload');
      for (const token of tokens) {
        const invoice = readToken(secrets, token, nowSeconds(clock));
        if (invoice !== null) {
          return { protocol: 'l402', accepted: null, payload: { invoice, preimage: preimage.toLowerCase() } };
        }
      }
      // The token of another service, of another key, or a token that has run out: the buyer pays the invoice of this 402.
      throw new PaymentRefused('invalid_challenge');
    },
    challenge: (invoice: QuotedInvoice): string => {
      const token = issueToken(secrets.current, invoice);
      // Most clients match `macaroon` and `invoice` in this order, with one space after the comma.
      return `L402 macaroon="${token}", invoice="${invoice.text}"`;
    },
    receipt: (): Fields => [],
  };
}
