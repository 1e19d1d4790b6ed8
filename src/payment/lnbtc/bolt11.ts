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
  /** Seconds; 3600 where the invoice does not say. */
  readonly expirySeconds: number;
  /** 32 bytes. */
  readonly paymentHash: Uint8Array;
  /** Each `h` field, 32 bytes; step 5 of the scheme wants exactly one. */
  readonly descriptionHashes: readonly Uint8Array[];
  /** Whether it also has an inline description (`d`). */
  readonly hasDescription: boolean;
  /** The key that signed it: 33 bytes, compressed. */
  readonly payee: Uint8Array;
}

/** What the largest QR code holds, which is also where LND stops reading; ours have about 320. */
const MAX_CHARACTERS = 7089;
/** 35 bits of Unix seconds. */
const TIMESTAMP_WORDS = 7;
/** 65 bytes: r, s, recovery id. */
const SIGNATURE_WORDS = 104;

/**
 * Strictly decodes an invoice and verifies or recovers its signature; null for whatever is not exactly BOLT11 as the scheme demands. Never throws.
 * In this order, so that the signature (0.06 ms; the rest together takes 0.01 ms) comes last:
 * 1. a string of bounded length that is bech32, in one case;
 * 2. currency and amount; 3. the tagged fields, of which a text without room for timestamp and signature has none;
 * 4. the signature, against the `n` field where there is one.
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

/** The key that signed the prefix and the words before `signed`; null when none did, or not the one that the invoice names. For a named key the recovery id must be one, and says nothing more. */
function signer(prefix: string, words: readonly number[], signed: number, named: Uint8Array | null): Uint8Array | null {
  const signature = packWords(words, signed, words.length);
  const recovery = signature[64] ?? 0;
  if (recovery > 3) return null;
  const digest = hash('sha256', Buffer.concat([Buffer.from(prefix), packWords(words, 0, signed)]), 'buffer');
  const compact = signature.subarray(0, 64);
  if (named) return verifyCompact(digest, compact, named) ? named : null;
  return recoverPublicKey(digest, compact, recovery);
}
