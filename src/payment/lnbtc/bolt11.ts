import { hash } from 'node:crypto';
import { bech32 } from '@scure/base';
import { recoverPublicKey, verifyCompact } from '../../lib/secp256k1.ts';
import { readFields } from './bolt11-fields.ts';
import { type InvoicePrice, readPrefix } from './bolt11-prefix.ts';
import { integer, packWords } from './bolt11-words.ts';

/** A BOLT11 invoice as the scheme reads it. */
export interface Invoice extends InvoicePrice {
  /** Unix seconds. */
  readonly createdAt: number;
  /** Seconds; 3600 where the invoice has no `x` field. */
  readonly expirySeconds: number;
  /** 32 bytes. */
  readonly paymentHash: Uint8Array;
  /** Each `h` field, 32 bytes. Step 5 of the scheme requires exactly one. */
  readonly descriptionHashes: readonly Uint8Array[];
  /** Whether it also has an inline description (`d`). */
  readonly hasDescription: boolean;
  /** The key that signed it: 33 bytes, compressed. */
  readonly payee: Uint8Array;
}

/** The capacity of the largest QR code, and LND's limit. Our invoices have about 320 characters. */
const MAX_CHARACTERS = 7089;
/** 35 bits of Unix seconds. */
const TIMESTAMP_WORDS = 7;
/** 65 bytes: r, s, recovery id. */
const SIGNATURE_WORDS = 104;

/**
 * Strictly decodes an invoice and verifies or recovers its signature. Null for any text that is not BOLT11 as the scheme requires. Never throws. The
 * signature comes last, because it takes 0.06 ms and all other checks together 0.01 ms:
 * 1. The text is bech32 of bounded length, in one case.
 * 2. Currency and amount.
 * 3. The tagged fields. A text too short for timestamp and signature has none.
 * 4. The signature, against the `n` field where there is one.
 */
export function decodeInvoice(text: unknown): Invoice | null {
  if (typeof text !== 'string') return null;
  const decoded = bech32.decodeUnsafe(text, MAX_CHARACTERS);
  if (!decoded) return null;
  const { prefix, words } = decoded;
  const signed = words.length - SIGNATURE_WORDS;
  const price = readPrefix(prefix);
  const createdAt = integer(words, 0, TIMESTAMP_WORDS);
  if (!price || createdAt === null) return null;
  const fields = readFields(words, TIMESTAMP_WORDS, signed);
  if (!fields) return null;
  const payee = signer(prefix, words, signed, fields.payee);
  if (!payee) return null;
  const { expirySeconds, paymentHash, descriptionHashes, hasDescription } = fields;
  return { ...price, createdAt, expirySeconds, paymentHash, descriptionHashes, hasDescription, payee };
}

/**
 * The key that signed the prefix and the words before `signed`. Null when no key did, or another key than the one that the invoice names. With a
 * named key, the recovery id must be valid but is not used.
 */
function signer(prefix: string, words: readonly number[], signed: number, named: Uint8Array | null): Uint8Array | null {
  const signature = packWords(words, signed, words.length);
  const recovery = signature[64] ?? 0;
  if (recovery > 3) return null;
  const digest = hash('sha256', Buffer.concat([Buffer.from(prefix), packWords(words, 0, signed)]), 'buffer');
  const compact = signature.subarray(0, 64);
  if (named) return verifyCompact(digest, compact, named) ? named : null;
  return recoverPublicKey(digest, compact, recovery);
}
