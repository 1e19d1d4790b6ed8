import { createHash } from 'node:crypto';
import { bech32 } from '@scure/base';
import secp256k1 from 'secp256k1';
import { signDigest } from '../../../src/lib/secp256k1.ts';

const ALPHABET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';

/** A tagged field: its letter and its 5-bit words. `length` overrides the length in its head, for malformed invoices. */
export interface TaggedField {
  readonly tag: string;
  readonly words: readonly number[];
  readonly length?: number;
}

/** The parts of an invoice that are signed. They are not checked, so that malformed invoices can be encoded too. */
export interface InvoiceParts {
  /** `bc` by default. */
  readonly currency?: string;
  /** Null for an invoice over any amount. */
  readonly amountMsat: bigint | null;
  /** The whole human-readable part. It replaces currency and amount. */
  readonly prefix?: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** In the order in which they are encoded. */
  readonly fields: readonly TaggedField[];
  /** Words after the last field, such as the start of an incomplete one. */
  readonly tail?: readonly number[];
  /** Signs with the larger s, from which the same key is recovered. */
  readonly highS?: boolean;
  /** Replaces the signature's own recovery id. */
  readonly recovery?: number;
}

/** Signs and encodes an invoice exactly as given. Equal parts give equal text. */
export function encodeInvoice(parts: InvoiceParts, privateKey: Uint8Array): string {
  const prefix =
    parts.prefix ?? `ln${parts.currency ?? 'bc'}${parts.amountMsat === null ? '' : amountText(parts.amountMsat)}`;
  const words = [...integerWords(parts.createdAt, 7), ...parts.fields.flatMap(fieldWords), ...(parts.tail ?? [])];
  const digest = createHash('sha256').update(prefix).update(zeroFilled(words)).digest();
  const { signature, recovery } = signDigest(digest, privateKey);
  if (parts.highS) secp256k1.privateKeyNegate(signature.subarray(32));
  const id = parts.recovery ?? (parts.highS ? recovery ^ 1 : recovery);
  return bech32.encode(prefix, [...words, ...bech32.toWords(Uint8Array.of(...signature, id))], false);
}

/** The contents of a seller's invoice. Null leaves a field out. */
export interface InvoiceTerms {
  readonly privateKey: Uint8Array;
  readonly currency?: string;
  readonly amountMsat: bigint | null;
  readonly createdAt: number;
  readonly expirySeconds?: number | null;
  /** 32 bytes each. */
  readonly paymentHash: Uint8Array;
  readonly paymentSecret?: Uint8Array;
  readonly descriptionHash?: Uint8Array | null;
  readonly description?: string | null;
  /** Names the signing key in an `n` field. */
  readonly payeeField?: boolean;
  readonly finalCltv?: number | null;
  readonly highS?: boolean;
}

/**
 * Encodes a well-formed invoice, with its fields in the order p, s, h, d, x, c, n. Defaults: 300 seconds, a final CLTV of 18 blocks, a payment secret
 * of 32 × 0x11.
 */
export function invoiceOf(terms: InvoiceTerms): string {
  const {
    privateKey,
    currency = 'bc',
    amountMsat,
    createdAt,
    expirySeconds = 300,
    finalCltv = 18,
    highS = false,
  } = terms;
  const fields: TaggedField[] = [
    bytesField('p', terms.paymentHash),
    bytesField('s', terms.paymentSecret ?? new Uint8Array(32).fill(0x11)),
  ];
  if (terms.descriptionHash) fields.push(bytesField('h', terms.descriptionHash));
  if (typeof terms.description === 'string') fields.push(bytesField('d', Buffer.from(terms.description)));
  if (expirySeconds !== null) fields.push(integerField('x', expirySeconds));
  if (finalCltv !== null) fields.push(integerField('c', finalCltv));
  if (terms.payeeField) fields.push(bytesField('n', secp256k1.publicKeyCreate(privateKey)));
  return encodeInvoice({ currency, amountMsat, createdAt, fields, highS }, privateKey);
}

/** A field of bytes, padded with zero bits. */
export function bytesField(tag: string, bytes: Uint8Array): TaggedField {
  return { tag, words: bech32.toWords(bytes) };
}

/** A field with an integer in as few words as possible. Zero takes one word. */
export function integerField(tag: string, value: number): TaggedField {
  return { tag, words: integerWords(value, 1) };
}

/** Millisatoshis as BOLT11 encodes them: in the largest unit that gives a whole number. */
export function amountText(msat: bigint): string {
  const units: readonly (readonly [bigint, string])[] = [
    [100_000_000_000n, ''],
    [100_000_000n, 'm'],
    [100_000n, 'u'],
    [100n, 'n'],
  ];
  const unit = units.find(([size]) => msat % size === 0n);
  return unit ? `${msat / unit[0]}${unit[1]}` : `${msat * 10n}p`;
}

function fieldWords({ tag, words, length = words.length }: TaggedField): number[] {
  return [ALPHABET.indexOf(tag), length >> 5, length & 31, ...words];
}

function integerWords(value: number, atLeast: number): number[] {
  const words: number[] = [];
  for (let rest = value; rest > 0; rest = Math.floor(rest / 32)) words.unshift(rest % 32);
  while (words.length < atLeast) words.unshift(0);
  return words;
}

/**
 * The signed bytes: the words' bits, padded to whole bytes. It uses strings of bits, unlike the decoder, so that each implementation checks the
 * other.
 */
function zeroFilled(words: readonly number[]): Uint8Array {
  const bits = words.map((word) => word.toString(2).padStart(5, '0')).join('');
  return Uint8Array.from(bits.match(/.{1,8}/g) ?? [], (byte) => Number.parseInt(byte.padEnd(8, '0'), 2));
}
