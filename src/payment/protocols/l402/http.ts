import { hash } from 'node:crypto';
import { type Clock, nowSeconds } from '../../../lib/clock.ts';
import { LATE_SECONDS } from '../../auth-schemes.ts';
import type { ChallengeSecrets } from '../../challenge-secrets.ts';
import type { AuthScheme, Credential, Fields, QuotedInvoice } from '../../protocol.ts';
import { PaymentRefused } from '../../refusal.ts';
import { issueToken, readToken, type Token } from './token.ts';

/** The auth scheme's name, and the one that it had before. Clients of both are in use. */
const CREDENTIAL = /^(?:l402|lsat) +([^: ][^:]*):([0-9a-f]{64})$/i;
/** A credential for this service takes about 1.5 KiB. Clients send one token, or one a service. Each token costs hashes before its signature is known. */
const MOST = { characters: 12_288, tokens: 8 };
/** Standard base64. One credential may hold several tokens, separated by commas. */
const TOKENS = /^[A-Za-z0-9+/]+={0,2}(?:, *[A-Za-z0-9+/]+={0,2})*$/;

/**
 * L402: a 402 names an invoice and a token; a paid request repeats the token with the invoice's preimage. A token buys one answer. Its README says how
 * that differs from the specification.
 */
export function createL402(secrets: ChallengeSecrets, clock: Clock): AuthScheme {
  return {
    protocol: 'l402',
    names: ['l402', 'lsat'],
    read: (authorization): Credential => {
      const [, text, shown] = (authorization.length <= MOST.characters && CREDENTIAL.exec(authorization)) || [];
      if (!text || !shown || !TOKENS.test(text)) throw new PaymentRefused('invalid_payload');
      const tokens = text.split(/, */);
      if (tokens.length > MOST.tokens) throw new PaymentRefused('invalid_payload');
      const preimage = shown.toLowerCase();
      const read = tokens.flatMap((token) => readToken(secrets, token, nowSeconds(clock)) ?? []);
      const token = paidBy(preimage, read);
      // The token of another service, one that was not paid, or one that has run out: the buyer pays the invoice of this 402.
      if (!token) throw new PaymentRefused('invalid_challenge');
      const { invoice, paymentHash, isSigned } = token;
      const isFor = (issued: QuotedInvoice) => issued.text === invoice && paymentHash.equals(issued.paymentHash);
      const answered = { isSigned, isFor, lateSeconds: LATE_SECONDS };
      return { protocol: 'l402', accepted: null, payload: { invoice, preimage }, answered };
    },
    challenge: (invoice: QuotedInvoice): string => {
      const token = issueToken(secrets.current, invoice);
      // Most clients match `macaroon` and `invoice` in this order, with one space after the comma.
      return `L402 macaroon="${token}", invoice="${invoice.text}"`;
    },
    receipt: (): Fields => [],
  };
}

/**
 * The token that a preimage has paid: a client may send several, and a preimage fits one invoice alone. A token that we did not sign counts only if its
 * preimage fits. Of tokens that are not paid the first one that we signed is taken, so that the refusal names the preimage. Undefined without any.
 */
function paidBy(preimage: string, tokens: readonly Token[]): Token | undefined {
  const opened = hash('sha256', Buffer.from(preimage, 'hex'), 'buffer');
  const paid = tokens.filter(({ paymentHash }) => paymentHash.equals(opened));
  const isOurs = ({ isSigned }: Token) => isSigned;
  return paid.find(isOurs) ?? paid[0] ?? tokens.find(isOurs);
}
