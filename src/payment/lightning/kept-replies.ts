import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { keysOf } from '../../lib/limits/client.ts';
import { createFairStock } from '../../lib/limits/shares.ts';
import { replyStoreFull } from '../refusal.ts';
import type { Binding } from './binding.ts';
import { BUYERS_DIVISOR, type OfferClient } from './issuance.ts';

/** Divides the store: unpaid offers may fill half of it. Each of them may be paid, and its answer then needs as much space again. */
const OFFERS_DIVISOR = 2;
/**
 * Divides the space that clients without a recent payment share. 24, so that twenty of them leave some. CLIENT_LEAST may raise the part in a small
 * store.
 */
const CLIENT_DIVISOR = 24;
/** The least that a client may hold in bytes, even in a small store. The largest reply has about 100 KB. */
const CLIENT_LEAST = 1024 * 1024;

/** Bytes in the store: all bodies, and of those the replies kept for offers. */
interface StoredBytes {
  readonly all: number;
  readonly offered: number;
}

/** Space that an offer's reply takes. */
interface HeldBytes {
  /** Notes that the reply is stored under the invoice's payment hash until `forgetAtMs`. */
  keep(paymentHash: Uint8Array, forgetAtMs: number): void;
  /** Frees the space of a reply that was not stored. */
  release(): void;
}

/** The space for kept replies and answers. It prevents offers from filling the disk, and a few clients from filling what all share. */
export interface ReplyQuota {
  /** Throws Unavailable (`reply_store_full`) when no reply to this client fits. */
  check(asker: OfferClient): void;
  /** Takes space for a reply. Throws as `check` does when the reply does not fit. */
  take(asker: OfferClient, bytes: number): HeldBytes;
  /** Notes that a paid answer replaced the reply kept with its invoice. A paid answer always has space. */
  answered(paymentHash: Uint8Array, bytes: number): void;
  /** Takes a new count of the store, made after expired records were deleted. */
  set(counted: StoredBytes): void;
}

interface QuotaOptions {
  readonly maxBytes: number;
  readonly clock: Clock;
  /** How many processes keep replies in the same store now. */
  readonly sharedBy?: (() => number) | undefined;
}

/**
 * Counts in memory what the store holds. Clients share the half for offers. A client gets more only while it holds no more than is left, and no more
 * than its part (a 24th, or CLIENT_LEAST), until its invoices are paid or expire. A fifth of the half is reserved for clients that have paid within
 * the hour, and the 24th does not apply to them. A restart forgets each client's part, but not the total. Where several processes keep replies in one
 * store, each may use its part of the space that the last count found.
 */
export function createReplyQuota({ maxBytes, clock, sharedBy = () => 1 }: QuotaOptions): ReplyQuota {
  const half = Math.floor(maxBytes / OFFERS_DIVISOR);
  let { most, mostOffered, reserve, clientMost } = sharesOf(maxBytes, half, sharedBy());
  const offers = createFairStock(half);
  // Kept replies of this process's offers, by payment hash. The first to expire comes first, if the node's clock agrees with ours.
  const kept = new Map<string, { readonly client: string; readonly bytes: number; readonly forgetAtMs: number }>();
  let used = 0;

  function forget(): void {
    const now = clock.nowMs();
    for (const [hash, { client, bytes, forgetAtMs }] of kept) {
      if (forgetAtMs > now) return;
      kept.delete(hash);
      offers.give(client, bytes);
    }
  }

  /** Takes the bytes from the space for offers. False when they do not fit. */
  function takeOffered({ client, isBuyer }: OfferClient, bytes: number): boolean {
    forget();
    if (!isBuyer && keysOf(client).some((key) => offers.held(key) + bytes > clientMost)) return false;
    const spared = half - mostOffered + (isBuyer ? 0 : reserve);
    return used + bytes <= most && offers.take(client, bytes, spared);
  }

  return {
    check(asker) {
      if (!takeOffered(asker, 1)) throw replyStoreFull();
      offers.give(asker.client, 1);
    },
    take(asker, bytes) {
      if (!takeOffered(asker, bytes)) throw replyStoreFull();
      const { client } = asker;
      used += bytes;
      return {
        keep: (paymentHash, forgetAtMs) => void kept.set(replyKey(paymentHash), { client, bytes, forgetAtMs }),
        release: () => {
          used -= bytes;
          offers.give(client, bytes);
        },
      };
    },
    answered(paymentHash, bytes) {
      const reply = kept.get(replyKey(paymentHash));
      used += bytes - (reply?.bytes ?? 0);
      if (reply) offers.give(reply.client, reply.bytes);
      kept.delete(replyKey(paymentHash));
    },
    set({ all, offered }) {
      forget();
      const own = [...kept.values()].reduce((sum, { bytes }) => sum + bytes, 0);
      // The count does not contain replies that are being stored now.
      used = all + half - offers.free() - own;
      const sharers = sharedBy();
      ({ reserve, clientMost } = sharesOf(maxBytes, half, sharers));
      most = all + Math.max(0, maxBytes - all) / sharers;
      mostOffered = Math.min(half, own + Math.max(0, half - offered) / sharers);
    },
  };
}

/** One process's share of an empty store and of the half for offers, the reserve in that, and the most of a client without a recent payment. */
function sharesOf(maxBytes: number, half: number, sharers: number) {
  const [most, mostOffered] = [maxBytes / sharers, half / sharers];
  const reserve = Math.floor(half / BUYERS_DIVISOR / sharers);
  return { most, mostOffered, reserve, clientMost: Math.max(CLIENT_LEAST, (mostOffered - reserve) / CLIENT_DIVISOR) };
}

function replyKey(paymentHash: Uint8Array): string {
  return Buffer.from(paymentHash).toString('base64');
}

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Bytes that sealing adds to a reply. */
export const SEAL_BYTES = NONCE_BYTES + TAG_BYTES;

/**
 * Derives the key from the request itself, of which the ledger keeps only the hash. So a reader of the database file cannot read an answer without
 * the request. No key needs to be stored, and every instance can open what another has sealed.
 */
function keyOf(binding: Binding, paymentHash: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', binding.canonical, paymentHash, 'percall kept reply', 32));
}

/** Seals a reply for the request and the invoice that it belongs to. */
export function sealReply(body: Uint8Array, binding: Binding, paymentHash: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, keyOf(binding, paymentHash), nonce);
  return Buffer.concat([nonce, cipher.update(body), cipher.final(), cipher.getAuthTag()]);
}

/** Opens a sealed reply. Null when the bytes are damaged or belong to another request or invoice. */
export function openReply(sealed: Uint8Array, binding: Binding, paymentHash: Uint8Array): Buffer | null {
  if (sealed.length < SEAL_BYTES) return null;
  const end = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv(ALGORITHM, keyOf(binding, paymentHash), sealed.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(sealed.subarray(end));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, end)), decipher.final()]);
  } catch {
    return null;
  }
}
