import { hash, randomBytes } from 'node:crypto';
import { type Clock, nowSeconds } from '../../../lib/clock.ts';
import { type ChallengeSecrets, hmac, isSignedBy, LATE_SECONDS } from '../../http-auth.ts';
import type { AuthScheme, Credential, Fields, QuotedInvoice } from '../../protocol.ts';
import { PaymentRefused } from '../../refusal.ts';

// L402: a 402 names an invoice and a token; a paid request repeats the token with the invoice's preimage. A token buys
// one answer. Its README says how that differs from the specification.

/** The auth scheme's name, and the one that it had before. Clients of both are in use. */
const CREDENTIAL = /^(?:l402|lsat) +([^: ][^:]*):([0-9a-f]{64})$/i;
/** One takes about 1.5 KiB. Clients send one token, or one a service; each costs hashes before it is known as ours. */
const MOST = { characters: 12_288, tokens: 8 };
/** Standard base64. One credential may hold several tokens, separated by commas. */
const TOKENS = /^[A-Za-z0-9+/]+={0,2}(?:, *[A-Za-z0-9+/]+={0,2})*$/;

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
      // Another service's token, an unpaid one, or one that has run out: the buyer pays the invoice of this 402.
      if (!token) throw new PaymentRefused('invalid_challenge');
      const { invoice, paymentHash, isSigned } = token;
      const isFor = (issued: QuotedInvoice) => issued.text === invoice && paymentHash.equals(issued.paymentHash);
      const answered = { isSigned, isFor, lateSeconds: LATE_SECONDS };
      return { protocol: 'l402', accepted: null, payload: { invoice, preimage }, identifier: () => null, answered };
    },
    challenge: (invoice: QuotedInvoice): string => {
      const token = issueToken(secrets.current, invoice);
      // Most clients match `macaroon` and `invoice` in this order, with one space after the comma.
      return `L402 macaroon="${token}", invoice="${invoice.text}"`;
    },
    receipt: (): Fields => [],
  };
}

// A client may send several tokens, and a preimage fits one invoice alone. One that we did not sign counts only if
// paid. Of unpaid ones the first of ours is taken, so that the refusal names the preimage.
function paidBy(preimage: string, tokens: readonly Token[]): Token | undefined {
  const opened = hash('sha256', Buffer.from(preimage, 'hex'), 'buffer');
  const paid = tokens.filter(({ paymentHash }) => paymentHash.equals(opened));
  const isOurs = ({ isSigned }: Token) => isSigned;
  return paid.find(isOurs) ?? paid[0] ?? tokens.find(isOurs);
}

interface Macaroon {
  readonly identifier: Buffer;
  /** First-party caveats, `name=value`. */
  readonly caveats: readonly string[];
  readonly signature: Buffer;
}

/** The libmacaroons binary format, version 2. */
const FORMAT_VERSION = 2;
/** The types of its packets. An END packet has no length. */
const END = 0;
const LOCATION = 1;
const IDENTIFIER = 2;
const SIGNATURE = 6;
const SIGNATURE_BYTES = 32;
/** The format's constant for the first key. */
const KEY_GENERATOR = 'macaroons-key-generator';
/** Longer than any macaroon that we issue, also after its holder has added caveats. */
const MAX_BYTES = 4096;
/** A length below this takes at most two bytes. */
const MAX_PACKET_BYTES = 16_384;
/** Each caveat costs a hash, and a holder may add any number. Ours have three. */
const MOST_CAVEATS = 16;

/** The macaroon's signature: an HMAC-SHA256 chain from the root key over the identifier and each caveat. */
export function signMacaroon(rootKey: Uint8Array, { identifier, caveats }: Omit<Macaroon, 'signature'>): Buffer {
  return [identifier, ...caveats].reduce<Buffer>(hmac, hmac(Buffer.from(KEY_GENERATOR), rootKey));
}

export function writeMacaroon(rootKey: Uint8Array, location: string, content: Omit<Macaroon, 'signature'>): Buffer {
  return Buffer.concat([
    Buffer.of(FORMAT_VERSION),
    packet(LOCATION, Buffer.from(location)),
    packet(IDENTIFIER, content.identifier),
    Buffer.of(END),
    ...content.caveats.map((caveat) => Buffer.concat([packet(IDENTIFIER, Buffer.from(caveat)), Buffer.of(END)])),
    Buffer.of(END),
    packet(SIGNATURE, signMacaroon(rootKey, content)),
  ]);
}

/** A macaroon with first-party caveats; null for any other bytes. Never throws. */
export function readMacaroon(bytes: Buffer): Macaroon | null {
  if (bytes.length > MAX_BYTES || bytes[0] !== FORMAT_VERSION) return null;
  const cursor = { at: 1 };
  if (bytes[cursor.at] === LOCATION && !take(bytes, cursor, LOCATION)) return null;
  const identifier = take(bytes, cursor, IDENTIFIER);
  if (!identifier || bytes[cursor.at++] !== END) return null;
  const caveats: string[] = [];
  while (bytes[cursor.at] === IDENTIFIER) {
    const caveat = take(bytes, cursor, IDENTIFIER);
    if (!caveat || bytes[cursor.at++] !== END || caveats.length === MOST_CAVEATS) return null;
    caveats.push(caveat.toString('utf8'));
  }
  if (bytes[cursor.at++] !== END) return null;
  const signature = take(bytes, cursor, SIGNATURE);
  const isWhole = signature?.length === SIGNATURE_BYTES && cursor.at === bytes.length;
  return isWhole ? { identifier, caveats, signature } : null;
}

function packet(type: number, content: Buffer): Buffer {
  const { length } = content;
  if (length >= MAX_PACKET_BYTES) throw new RangeError('a packet of a macaroon is too long');
  const size = length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >>> 7];
  return Buffer.concat([Buffer.of(type, ...size), content]);
}

/** The packet at the cursor, which moves past it. Null for another type and for a length that is too long. */
function take(bytes: Buffer, cursor: { at: number }, type: number): Buffer | null {
  if (bytes[cursor.at++] !== type) return null;
  const low = bytes[cursor.at++] ?? 0;
  const high = low < 0x80 ? 0 : (bytes[cursor.at++] ?? 0x80);
  const end = cursor.at + (low & 0x7f) + high * 0x80;
  if (high >= 0x80 || end > bytes.length) return null;
  const content = bytes.subarray(cursor.at, end);
  cursor.at = end;
  return content;
}

const SERVICE = 'percall';
/** Only the macaroon's first key is made from it, so that the same secret can sign other challenges. */
const ROOT_KEY_OF = 'percall l402 root key';
/** The identifier: version 0 in two bytes, the payment hash, a random token id. */
const VERSION = Buffer.alloc(2);
const IDENTIFIER_BYTES = 66;
const PAYMENT_HASH = [2, 34] as const;
/** A token may come late, and a claimed proof buys its answer for seven days more. */
const VALID_SECONDS = LATE_SECONDS + 7 * 86_400;
const INVOICE = `${SERVICE}_invoice=`;
const VALID_UNTIL = `${SERVICE}_valid_until=`;
const SERVICES = `services=${SERVICE}:0`;

export function rootKeyOf(secret: Uint8Array): Buffer {
  return hmac(secret, ROOT_KEY_OF);
}

/** In base64. It carries the invoice, which the credential does not repeat: the node signed its request and price. */
export function issueToken(secret: Uint8Array, { text, paymentHash, expiresAt }: QuotedInvoice): string {
  const identifier = Buffer.concat([VERSION, paymentHash, randomBytes(32)]);
  const caveats = [SERVICES, `${VALID_UNTIL}${expiresAt + VALID_SECONDS}`, `${INVOICE}${text}`];
  return writeMacaroon(rootKeyOf(secret), SERVICE, { identifier, caveats }).toString('base64');
}

interface Token {
  readonly invoice: string;
  readonly paymentHash: Buffer;
  /** Whether one of our keys signed all of it. */
  readonly isSigned: boolean;
}

/** Null unless the caveats hold at `now` (Unix seconds). Holders may add some; an unknown one refuses the token. */
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
