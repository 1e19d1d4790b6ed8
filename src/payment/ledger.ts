import { hash } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import { createIds } from '../lib/id.ts';
import type { LedgerStore, NewPayment, Payment, PaymentKey, PaymentState } from '../store/ports/sales.ts';
import { REVERTED } from './settler.ts';

/**
 * The legal moves, each `from` state by its `to`. Forgetting a row is legal from `reserved`, and from `settling` while nothing was broadcast.
 * The story of each move stands in README.md beside this file.
 */
export const LEGAL_FROM = {
  settling: ['reserved'],
  unknown: ['settling'],
  settled: ['settling', 'unknown'],
  failed: ['settling', 'unknown'],
} as const satisfies Partial<Record<PaymentState, readonly PaymentState[]>>;

/** Rows read at once where all of a state are gone through. */
const PAGE = 500;

interface LedgerOptions {
  store: LedgerStore;
  clock: Clock;
  /** Unique to this process, so that recovery can tell the dead's rows. */
  bootId: string;
  /** Replies: bytes kept in all, how long after settlement, how many redeliveries. */
  storeBytes: number;
  /** Processes that keep replies in the same store: between two counts each uses its part of the room that was left. */
  sharedBy?: number;
  keepSeconds: number;
  maxDeliveries: number;
  /** Open payments a payer may have; 0 is any number. */
  maxOpen: number;
  /** Told of each move once it is on disk, for whoever counts; it must not throw. */
  onMove?: OnMove;
}

/** A payment has come into this state, or was forgotten (`released`: the authorization may buy again). */
export type OnMove = (id: string, to: PaymentState | 'released') => void;

/** What settling needs after a crash, and what is owed for it. */
interface StoredIntent {
  readonly signature: Uint8Array;
  readonly checkedBlock: number;
  readonly payerHasCode: boolean;
  readonly body: Uint8Array;
}

export interface Ledger {
  readonly bootId: string;
  find(key: PaymentKey): Promise<Payment | null>;
  get(id: string): Promise<Payment | null>;
  /** The payment that holds this identifier; one that failed holds none. */
  findByIdentifier(identifierHash: Uint8Array): Promise<Payment | null>;
  /**
   * Reserves an authorization for one request; null when somebody else holds it or the payer has too many open.
   * `takeOver`: the caller is the first presenter of one that reverted, and may use it again. `onId` hears the id before the row can be there,
   * so that who gives up reservations that nobody serves does not meet one of which its own process has not heard yet.
   */
  reserve(
    payment: Omit<NewPayment, 'id' | 'bootId' | 'reservedAt'>,
    takeOver: boolean,
    onId?: (id: string) => void,
  ): Promise<string | null>;
  /** What the payer has promised us before this reservation, in USDC base units. */
  openBefore(key: PaymentKey, id: string): Promise<bigint>;
  /** Forgets a reservation: the authorization may buy again. False once it is being settled. */
  release(id: string): Promise<boolean>;
  /** The same for what the caller alone may have stored an intent for; false once a transaction is noted, or there is nothing. */
  abandon(id: string): Promise<boolean>;
  /** Whether another reply fits into the store now. */
  hasRoom(): boolean;
  /** Keeps the reply and the signature to settle with; from here on a crash may cost the buyer only what it delivers. False when full or released. */
  storeIntent(id: string, intent: StoredIntent): Promise<boolean>;
  /** Returns the ids that still await settlement: only their transactions may be sent; none where the lease `fencingToken` is over. */
  noteBroadcast(
    entries: readonly { id: string; transaction: Uint8Array }[],
    fencingToken?: number,
  ): Promise<ReadonlySet<string>>;
  /** `paid` is what the evidence says, in USDC base units. */
  settled(id: string, transaction: Uint8Array, block: number, paid: bigint): Promise<boolean>;
  /** Nothing will take the money any more; with `fencingToken`, false where that lease is over, because another instance may be sending it. */
  failed(id: string, reason: string, fencingToken?: number): Promise<boolean>;
  /** A payment that reverted cannot be used again after all: its row stays failed, for this reason. */
  ruleOut(id: string, reason: string): Promise<boolean>;
  unknown(id: string): Promise<boolean>;
  /** The reply once more, if its time and number are not used up. */
  redeliver(id: string): Promise<Uint8Array | null>;
  /** Everything that has not ended, oldest first, read page by page while it is gone through; with `after`, what comes after that id. */
  unfinished(after?: string): AsyncIterable<Payment>;
  /** Intents that nothing was sent for yet, oldest first, in the same way. */
  waiting(): AsyncIterable<Payment>;
  /** Whether a payment of this payer on this key's network and contract has ever settled in this ledger. */
  hasSettled(key: PaymentKey): Promise<boolean>;
  /**
   * Takes over what processes left that are none of `living` or this one, where `isGone` says so: forgets what was never broadcast, marks the
   * rest unknown and ours. `living` is asked again for every row: one that was asleep may be awake by then, and sell.
   */
  recover(
    living?: () => readonly string[],
    isGone?: (payment: Payment) => boolean,
  ): Promise<{ released: number; unknown: number }>;
  /** Rejects when the store cannot be read. */
  ping(): Promise<void>;
  /** Lets go of replies whose time is over. */
  purge(): Promise<void>;
  countByState(): Promise<Record<PaymentState, number>>;
}

/** The ledger of USDC payments: the rules over the store's atomic steps. */
export function createLedger(options: LedgerOptions): Ledger {
  const {
    store,
    clock,
    bootId,
    storeBytes,
    sharedBy = 1,
    keepSeconds,
    maxDeliveries,
    maxOpen,
    onMove = () => {},
  } = options;
  const nextId = createIds(clock);
  // Bytes kept by this process's account, and how many they may become here; counted anew at every purge.
  let replyBytes = 0;
  let mostBytes = storeBytes / sharedBy;

  /** Tells of a move that happened. */
  function tell(id: string, to: PaymentState | 'released', moved: boolean): boolean {
    if (moved) onMove(id, to);
    return moved;
  }

  async function purge(): Promise<void> {
    await store.purgeReplies(clock.nowMs());
    replyBytes = await store.replyBytes();
    mostBytes = replyBytes + Math.max(0, storeBytes - replyBytes) / sharedBy;
  }

  return {
    bootId,
    find: store.find,
    get: store.get,
    findByIdentifier: store.findByIdentifier,
    openBefore: store.openBefore,
    ping: store.ping,
    countByState: store.countByState,
    purge,
    hasRoom: () => replyBytes < mostBytes,
    noteBroadcast: (entries, fencingToken) => store.noteBroadcast(entries, LEGAL_FROM.settled, fencingToken),
    unfinished: (after) => pages(store, ['reserved', 'settling', 'unknown'], after),
    hasSettled: store.hasSettled,

    reserve: async (payment, takeOver, onId) => {
      const id = nextId();
      onId?.(id);
      const row = { ...payment, id, bootId, reservedAt: clock.nowMs() };
      const reserved = await store.reserve(row, maxOpen, takeOver ? REVERTED : null);
      return tell(id, 'reserved', reserved) ? id : null;
    },
    release: async (id) => tell(id, 'released', await store.release(id, ['reserved'])),
    abandon: async (id) => tell(id, 'released', await store.release(id, ['reserved', 'settling'])),
    storeIntent: async (id, { signature, checkedBlock, payerHasCode, body }) => {
      if (replyBytes + body.length > mostBytes) return false;
      const change = { signature, checkedBlock, payerHasCode, settlingAt: clock.nowMs() };
      // Counted before it is stored: two at once must not both see the same room.
      replyBytes += body.length;
      const moved = await store.move(id, LEGAL_FROM.settling, 'settling', change, { store: body });
      if (!moved) replyBytes -= body.length;
      return tell(id, 'settling', moved);
    },
    settled: async (id, transaction, block, paid) => {
      const now = clock.nowMs();
      const change = { transaction, block, charged: paid, signature: null, reason: null, endedAt: now };
      const reply = { keepUntil: now + keepSeconds * 1000 };
      return tell(id, 'settled', await store.move(id, LEGAL_FROM.settled, 'settled', change, reply));
    },
    failed: async (id, reason, fencingToken) => {
      const change = { reason, signature: null, endedAt: clock.nowMs() };
      return tell(id, 'failed', await store.move(id, LEGAL_FROM.failed, 'failed', change, 'drop', fencingToken));
    },
    ruleOut: (id, reason) => store.move(id, ['failed'], 'failed', { reason }),
    unknown: async (id) => tell(id, 'unknown', await store.move(id, LEGAL_FROM.unknown, 'unknown', {})),
    redeliver: (id) => store.takeReply(id, maxDeliveries, clock.nowMs()),
    waiting: async function* () {
      for await (const payment of pages(store, ['settling']))
        if (!payment.transaction && payment.reason === null) yield payment;
    },
    recover: (living = () => [], isGone = () => true) =>
      recover(store, bootId, { living, isGone }, onMove).finally(purge),
  };
}

/** Rows in these states, oldest first, however many; those that came into one of them meanwhile may be among them. */
async function* pages(store: LedgerStore, states: readonly PaymentState[], after = ''): AsyncIterable<Payment> {
  for (let last: string | undefined = after; last !== undefined; ) {
    const page: Payment[] = await store.listByState(states, PAGE, last);
    yield* page;
    last = page.length < PAGE ? undefined : page.at(-1)?.id;
  }
}

async function recover(
  store: LedgerStore,
  bootId: string,
  { living, isGone }: { living: () => readonly string[]; isGone: (payment: Payment) => boolean },
  onMove: OnMove,
): Promise<{ released: number; unknown: number }> {
  const count = { released: 0, unknown: 0 };
  for (;;) {
    const left = (await store.listLeftBehind([bootId, ...living()], 1000)).filter(isGone);
    if (left.length === 0) return count;
    for (const row of left) {
      if (living().includes(row.bootId)) continue;
      // The hash is on disk before the transaction is on its way: without one, nothing was sent.
      if (row.transaction === null && (await store.release(row.id, [row.state]))) {
        count.released++;
        onMove(row.id, 'released');
      } else if (await store.move(row.id, [row.state], 'unknown', { bootId })) {
        count.unknown++;
        onMove(row.id, 'unknown');
      }
    }
  }
}

/** What a client is told apart by on redelivery. Salted with the authorization's nonce: equal clients do not show as equal rows. */
export function hashClient(nonce: Uint8Array, client: string): Uint8Array {
  return hash('sha256', Buffer.concat([nonce, Buffer.from(client, 'utf8')]), 'buffer');
}

/** The request an authorization was spent on: endpoint and parsed parameters, whatever the alias or transport. */
export function hashRequest(endpointPath: string, params: unknown): Uint8Array {
  const sorted = Object.entries(params as Record<string, unknown>).sort(([a], [b]) => (a < b ? -1 : 1));
  return hash('sha256', JSON.stringify([endpointPath, sorted]), 'buffer');
}
