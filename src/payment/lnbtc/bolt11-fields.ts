import { exactBytes, minimalInteger } from './bolt11-words.ts';

/** Types of the known fields. Each constant has the field's letter as its name. The type is the letter's place in the bech32 alphabet. */
const P = 1;
const FEATURES = 5;
const X = 6;
const D = 13;
const S = 16;
const N = 19;
const H = 23;
const C = 24;
const M = 27;

/**
 * Fields that may appear once. In BOLT11 `f` (fallback addresses) and `r` (private routes) are lists, and only the payer needs them. `h` may repeat
 * here, because the scheme refuses a second one later, with a reason of its own.
 */
const ONCE = bit(P) | bit(S) | bit(D) | bit(N) | bit(X) | bit(C) | bit(M) | bit(FEATURES);
const REQUIRED = bit(P) | bit(S);

/** BOLT11's default for an invoice without an `x` field. */
const DEFAULT_EXPIRY_SECONDS = 3600;

/** Content of the tagged fields. */
interface Fields {
  /** The types read so far, one bit each. */
  seen: number;
  paymentHash: Uint8Array;
  descriptionHashes: Uint8Array[];
  expirySeconds: number;
  /** The `n` field. Null where the key must be recovered from the signature. */
  payee: Uint8Array | null;
}

/**
 * Reads the tagged fields in words `start` to `end`. Null for a truncated field, a repeated or a missing one, a wrong length, padding that is not
 * zero, or an integer that is not minimal. Unknown fields and the feature bits are skipped, because only the payer needs them.
 */
export function readFields(
  words: readonly number[],
  start: number,
  end: number,
): (Readonly<Fields> & { hasDescription: boolean }) | null {
  const fields: Fields = {
    seen: 0,
    paymentHash: new Uint8Array(),
    descriptionHashes: [],
    expirySeconds: DEFAULT_EXPIRY_SECONDS,
    payee: null,
  };
  for (let next = start; next < end; ) {
    const type = words[next] ?? 0;
    const from = next + 3;
    next = from + (words[next + 1] ?? 0) * 32 + (words[next + 2] ?? 0);
    // A field header of fewer than three words also passes the end.
    if (next > end || (fields.seen & ONCE & bit(type)) !== 0) return null;
    fields.seen |= bit(type);
    if (!takeValue(fields, type, words, from, next)) return null;
  }
  if ((fields.seen & REQUIRED) !== REQUIRED) return null;
  return { ...fields, hasDescription: (fields.seen & bit(D)) !== 0 };
}

/** Checks one field's value and keeps what the scheme needs. False for a malformed value. */
function takeValue(fields: Fields, type: number, words: readonly number[], from: number, to: number): boolean {
  if (type === P || type === H || type === S) {
    const bytes = exactBytes(words, from, to, 32);
    if (bytes && type === P) fields.paymentHash = bytes;
    if (bytes && type === H) fields.descriptionHashes.push(bytes);
    return bytes !== null;
  }
  if (type === N) {
    fields.payee = exactBytes(words, from, to, 33);
    return fields.payee !== null;
  }
  if (type === X || type === C) {
    const integer = minimalInteger(words, from, to);
    if (integer !== null && type === X) fields.expirySeconds = integer;
    return integer !== null;
  }
  return true;
}

function bit(type: number): number {
  return 1 << type;
}
