import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { keysOf } from '../../lib/limits/count.ts';
import { createFairStock } from '../../lib/limits/shares.ts';
import { replyStoreFull } from '../refusal.ts';
import type { Binding } from './binding.ts';
import { BUYERS_DIVISOR, type OfferClient } from './issuance.ts';

// The space for the replies of offers and for paid answers, and their encryption. Offers cannot fill the disk, and a
// few clients cannot fill what all share. A reply is sealed under a key derived from the request itself.

/** Unpaid offers may fill half of the store: each may be paid, and its answer then needs as much space again. */
const OFFERS_DIVISOR = 2;
/** Divides what clients without a recent payment share: 24, so that twenty of them leave some. */
const CLIENT_DIVISOR = 24;
/** The least that a client may hold, even in a small store. The largest reply has about 100 KB. */
const CLIENT_LEAST = 1024 * 1024;

interface StoredBytes {
  readonly all: number;
  readonly offered: number;
}

interface HeldBytes {
  /** The reply is stored under the invoice's payment hash until `forgetAtMs`. */
  keep(paymentHash: Uint8Array, forgetAtMs: number): void;
  release(): void;
}

export interface ReplyQuota {
  /** Throws Unavailable (`reply_store_full`) when no reply to this client fits. */
  check(asker: OfferClient): void;
  take(asker: OfferClient, bytes: number): HeldBytes;
  /** A paid answer replaced the reply kept with its invoice. A paid answer always has space. */
  answered(paymentHash: Uint8Array, bytes: number): void;
  /** A new count of the store, made after expired records were deleted. */
  set(counted: StoredBytes): void;
}

/**
 * Clients share the half for offers. One gets more only while it holds no more than is left, and than its part (a 24th,
 * or CLIENT_LEAST), until its invoices are paid or expire. A fifth is reserved for buyers of the last hour, whom the
 * 24th spares. A restart forgets each client's part, not the total.
 */
export function createReplyQuota(
  clock: Clock,
  maxBytes: number,
  sharedBy: (() => number) | undefined = () => 1,
): ReplyQuota {
  const half = Math.floor(maxBytes / OFFERS_DIVISOR);
  let { most, mostOffered, reserve, clientMost } = sharesOf(maxBytes, half, sharedBy());
  const offers = createFairStock(half);
  // By payment hash. The first to expire comes first, if the node's clock agrees with ours.
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

/** One process's share of an empty store and of the half for offers, the reserve in it, the most of a client. */
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
export const SEAL_BYTES = NONCE_BYTES + TAG_BYTES;

// Derived from the request, of which the ledger keeps a hash: who reads it can open no answer, and no key is stored.
function keyOf(binding: Binding, paymentHash: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', binding.canonical, paymentHash, 'percall kept reply', 32));
}

export function sealReply(body: Uint8Array, binding: Binding, paymentHash: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, keyOf(binding, paymentHash), nonce);
  return Buffer.concat([nonce, cipher.update(body), cipher.final(), cipher.getAuthTag()]);
}

/** Null when the bytes are damaged or belong to another request or invoice. */
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
