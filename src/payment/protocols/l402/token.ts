import { randomBytes } from 'node:crypto';
import { type ChallengeSecrets, hmac, isSignedBy } from '../../challenge-secrets.ts';
import type { QuotedInvoice } from '../../protocol.ts';
import { type Macaroon, readMacaroon, signMacaroon, writeMacaroon } from './macaroon.ts';

const SERVICE = 'percall';
/** Only the macaroon's first key is made from it, so that the same secret can sign other challenges. */
const ROOT_KEY_OF = 'percall l402 root key';
/** The identifier of the protocol's macaroons: version 0 in two bytes, the payment hash, a random token id. */
const VERSION = Buffer.alloc(2);
const IDENTIFIER_BYTES = 66;
/** A claimed proof buys its answer for this long. */
const REDEEM_SECONDS = 7 * 86_400;
const INVOICE = `${SERVICE}_invoice=`;
const VALID_UNTIL = `${SERVICE}_valid_until=`;
const SERVICES = `services=${SERVICE}:0`;

/** The root key of the macaroons that a secret signs. */
export function rootKeyOf(secret: Uint8Array): Buffer {
  return hmac(secret, ROOT_KEY_OF);
}

/**
 * Makes the token of an invoice, in base64: a macaroon that commits to the payment hash, and through the invoice to the request and the price. The
 * credential does not repeat the invoice, so the token carries it. The request's hash stands in the invoice, signed by the node.
 */
export function issueToken(secret: Uint8Array, { text, paymentHash, expiresAt }: QuotedInvoice): string {
  const identifier = Buffer.concat([VERSION, paymentHash, randomBytes(32)]);
  const caveats = [SERVICES, `${VALID_UNTIL}${expiresAt + REDEEM_SECONDS}`, `${INVOICE}${text}`];
  return writeMacaroon(rootKeyOf(secret), SERVICE, { identifier, caveats }).toString('base64');
}

/**
 * Returns the invoice that a token is for. Null unless we issued the token and its caveats hold at `now`, in Unix seconds. A holder may have added
 * caveats. They narrow the token, so one that we do not know refuses it.
 */
export function readToken(secrets: ChallengeSecrets, token: string, now: number): string | null {
  const macaroon = readMacaroon(Buffer.from(token, 'base64'));
  if (!macaroon || !isOurs(secrets, macaroon)) return null;
  const [services, until, invoice, ...added] = macaroon.caveats;
  if (services !== SERVICES || !invoice?.startsWith(INVOICE)) return null;
  const holds = [until, ...added].every((caveat) => caveat !== undefined && isStillValid(caveat, now));
  return holds ? invoice.slice(INVOICE.length) : null;
}

function isOurs(secrets: ChallengeSecrets, macaroon: Macaroon): boolean {
  const { identifier, signature } = macaroon;
  const isKnownForm = identifier.length === IDENTIFIER_BYTES && identifier.subarray(0, 2).equals(VERSION);
  return isKnownForm && isSignedBy(secrets, signature, (secret) => signMacaroon(rootKeyOf(secret), macaroon));
}

function isStillValid(caveat: string, now: number): boolean {
  const until = caveat.startsWith(VALID_UNTIL) ? caveat.slice(VALID_UNTIL.length) : '';
  return /^\d{1,15}$/.test(until) && Number(until) >= now;
}
