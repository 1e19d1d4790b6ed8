import type { Clock } from '../../../lib/clock.ts';
import { keysOf } from '../../../lib/limits/client-key.ts';
import { createFairStock } from '../../../lib/limits/fair-stock.ts';
import { replyStoreFull } from '../../refusal.ts';
import { type Asker, BUYERS_PART } from './asker.ts';

/** Divides the room: unpaid offers may hold half of it. Each may be paid, and then needs as much again for its answer. */
const OFFERS_PART = 2;
/** Divides what clients that have not paid lately share: 24, so that twenty of them leave some. CLIENT_LEAST may raise the part in a small store. */
const CLIENT_PART = 24;
/** The least that a client may hold, in bytes, however small the store: the largest reply has some 100 KB. */
const CLIENT_LEAST = 1024 * 1024;

/** What the store holds, in bytes: all bodies, and of those the replies kept for offers. */
export interface RoomCount {
  readonly all: number;
  readonly offered: number;
}

/** Room that an offer's reply takes up. */
export interface HeldRoom {
  /** The reply is in the store, under the invoice's payment hash, until the invoice is forgotten. */
  keep(paymentHash: Uint8Array, forgetAtMs: number): void;
  /** It is not, and never will be. */
  release(): void;
}

/** The room for kept replies and answers, so that offers cannot fill the disk, nor a few clients what all share. */
export interface ReplyRoom {
  /** Throws Unavailable, `reply_store_full`, when there is none for any reply to this asker. */
  check(asker: Asker): void;
  /** Takes room for a reply; throws as `check` does when there is not as much. */
  take(asker: Asker, bytes: number): HeldRoom;
  /** An answer that was paid for took the place of the reply that was kept with its invoice: it has room whatever others hold. */
  answered(paymentHash: Uint8Array, bytes: number): void;
  /** Counted anew, after what may go is gone. */
  set(counted: RoomCount): void;
}

interface RoomOptions {
  readonly maxBytes: number;
  readonly clock: Clock;
  /** How many processes keep replies in one store. */
  readonly sharedBy?: number;
}

/**
 * An account in memory of what the store holds. Clients share the half that offers may take up as a fair stock: a client gets more only while it
 * holds no more than is left, and no more than its part (a 24th, or CLIENT_LEAST), until its invoices are paid or forgotten. A fifth of the half is
 * reserved for clients that have paid lately, and the 24th does not bind them. A restart forgets each client's part, not how much is held in all.
 * Where several processes keep replies in one store, each uses its part of the room that the last count left.
 */
export function createReplyRoom({ maxBytes, clock, sharedBy = 1 }: RoomOptions): ReplyRoom {
  const { half, reserve, clientMost } = partsOf(maxBytes, sharedBy);
  const offers = createFairStock(half);
  // Kept replies of this process's offers, by payment hash: the first to be forgotten first, as far as the node's clock is ours.
  const kept = new Map<string, { readonly client: string; readonly bytes: number; readonly forgetAtMs: number }>();
  let used = 0;
  let most = maxBytes / sharedBy;
  let mostOffered = half / sharedBy;

  function forget(): void {
    const now = clock.nowMs();
    for (const [hash, { client, bytes, forgetAtMs }] of kept) {
      if (forgetAtMs > now) return;
      kept.delete(hash);
      offers.give(client, bytes);
    }
  }

  /** Whether the bytes were taken of what offers share. */
  function takeOffered({ client, isBuyer }: Asker, bytes: number): boolean {
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
        keep: (paymentHash, forgetAtMs) => void kept.set(keyOf(paymentHash), { client, bytes, forgetAtMs }),
        release: () => {
          used -= bytes;
          offers.give(client, bytes);
        },
      };
    },
    answered(paymentHash, bytes) {
      const reply = kept.get(keyOf(paymentHash));
      used += bytes - (reply?.bytes ?? 0);
      if (reply) offers.give(reply.client, reply.bytes);
      kept.delete(keyOf(paymentHash));
    },
    set({ all, offered }) {
      forget();
      const own = [...kept.values()].reduce((sum, { bytes }) => sum + bytes, 0);
      // Replies on their way to the store are in no count.
      used = all + half - offers.free() - own;
      most = all + Math.max(0, maxBytes - all) / sharedBy;
      mostOffered = Math.min(half, own + Math.max(0, half - offered) / sharedBy);
    },
  };
}

/** The parts of the room: what offers may have, the reserve within it, and the most of a client that has not paid lately. */
function partsOf(maxBytes: number, sharedBy: number) {
  const half = Math.floor(maxBytes / OFFERS_PART);
  const reserve = Math.floor(half / BUYERS_PART / sharedBy);
  return { half, reserve, clientMost: Math.max(CLIENT_LEAST, (half / sharedBy - reserve) / CLIENT_PART) };
}

function keyOf(paymentHash: Uint8Array): string {
  return Buffer.from(paymentHash).toString('base64');
}
