import { randomBytes } from 'node:crypto';
import { LATE_SECONDS } from '../../auth-schemes.ts';
import { type ChallengeSecrets, hmac, isSignedBy } from '../../challenge-secrets.ts';
import type { QuotedInvoice } from '../../protocol.ts';
import { readMacaroon, signMacaroon, writeMacaroon } from './macaroon.ts';

const SERVICE = 'percall';
/** Only the macaroon's first key is made from it, so that the same secret can sign other challenges. */
const ROOT_KEY_OF = 'percall l402 root key';
/** The identifier of the protocol's macaroons: version 0 in two bytes, the payment hash, a random token id. */
const VERSION = Buffer.alloc(2);
const IDENTIFIER_BYTES = 66;
/** Where the payment hash stands in the identifier. */
const PAYMENT_HASH = [2, 34] as const;
/** A token may come late, and a claimed proof buys its answer for seven days more. */
const VALID_SECONDS = LATE_SECONDS + 7 * 86_400;
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
  const caveats = [SERVICES, `${VALID_UNTIL}${expiresAt + VALID_SECONDS}`, `${INVOICE}${text}`];
  return writeMacaroon(rootKeyOf(secret), SERVICE, { identifier, caveats }).toString('base64');
}

/** What a token says. */
export interface Token {
  /** BOLT11 text. */
  readonly invoice: string;
  /** 32 bytes. */
  readonly paymentHash: Buffer;
  /** Whether one of our keys signed all of it. */
  readonly isSigned: boolean;
}

/**
 * Reads a token in the form of ours. Null unless its caveats hold at `now`, in Unix seconds. A holder may have added caveats. They narrow the token, so
 * one that we do not know refuses it.
 */
export function readToken(secrets: ChallengeSecrets, token: string, now: number): Token | null {
  const macaroon = readMacaroon(Buffer.from(token, 'base64'));
  if (!macaroon) return null;
  const { identifier, caveats } = macaroon;
  if (identifier.length !== IDENTIFIER_BYTES || !identifier.subarray(0, 2).equals(VERSION)) return null;
  const [services, until, invoice, ...added] = caveats;
  if (services !== SERVICES || !invoice?.startsWith(INVOICE)) return null;
  if (![until, ...added].every((caveat) => caveat !== undefined && isStillValid(caveat, now))) return null;
  return {
    invoice: invoice.slice(INVOICE.length),
    paymentHash: identifier.subarray(...PAYMENT_HASH),
    isSigned: isSignedBy(secrets, macaroon.signature, (secret) => signMacaroon(rootKeyOf(secret), macaroon)),
  };
}

function isStillValid(caveat: string, now: number): boolean {
  const until = caveat.startsWith(VALID_UNTIL) ? caveat.slice(VALID_UNTIL.length) : '';
  return /^\d{1,15}$/.test(until) && Number(until) >= now;
}
