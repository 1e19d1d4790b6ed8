import { hmac } from '../../challenge-secrets.ts';

/** A macaroon as its holder sees it. Whether we signed it is another question. */
export interface Macaroon {
  readonly identifier: Buffer;
  /** First-party caveats, `name=value`. */
  readonly caveats: readonly string[];
  /** 32 bytes. */
  readonly signature: Buffer;
}

/** The libmacaroons binary format, version 2. */
const VERSION = 2;
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

/** Writes a macaroon in the binary format, version 2. */
export function writeMacaroon(rootKey: Uint8Array, location: string, content: Omit<Macaroon, 'signature'>): Buffer {
  return Buffer.concat([
    Buffer.of(VERSION),
    packet(LOCATION, Buffer.from(location)),
    packet(IDENTIFIER, content.identifier),
    Buffer.of(END),
    ...content.caveats.map((caveat) => Buffer.concat([packet(IDENTIFIER, Buffer.from(caveat)), Buffer.of(END)])),
    Buffer.of(END),
    packet(SIGNATURE, signMacaroon(rootKey, content)),
  ]);
}

/** Reads a macaroon with first-party caveats. Null for any other bytes. Never throws. */
export function readMacaroon(bytes: Buffer): Macaroon | null {
  if (bytes.length > MAX_BYTES || bytes[0] !== VERSION) return null;
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

/** The content of the packet at the cursor, which moves past it. Null for another type and for a length that is too long. */
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
