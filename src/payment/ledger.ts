import { hash } from 'node:crypto';
import { AppError } from '../errors.ts';
import { type Clock, createIds } from '../lib/clock.ts';
import { inTime } from '../lib/tasks.ts';
import type { LedgerStore, NewPayment, Payment, PaymentKey, PaymentState } from '../store/ports/payments.ts';
import { replyStoreFull } from './refusal.ts';
import { REVERTED } from './settler.ts';

// The ledger of USDC payments: the rules over the store's atomic steps. A row is reserved for one request, stores its
// intent, and ends as settled or failed; what the evidence has not decided is unknown. STEPS.md says when each move is
// made. A transaction's hash is on disk before the transaction is sent, so a row without one was never sent.

/** For each new state, those that a row may come from. A row may be released while no transaction of it is noted. */
const LEGAL_FROM = {
  settling: ['reserved'],
  unknown: ['settling'],
  settled: ['settling', 'unknown'],
  failed: ['settling', 'unknown'],
} as const satisfies Partial<Record<PaymentState, readonly PaymentState[]>>;

/** How long an answer is kept that was paid and not delivered: 7 days, as a granted Lightning claim is. */
const UNDELIVERED_MS = 7 * 86_400_000;

const PAGE = 500;

interface LedgerOptions {
  store: LedgerStore;
  clock: Clock;
  /** Unique to this process. Recovery finds the rows of dead processes by it. */
  bootId: string;
  storeBytes: number;
  /** How many processes keep replies in this store now. Between two counts, each may fill an equal part of the rest. */
  sharedBy?: (() => number) | undefined;
  /** Seconds that a reply is kept after its first delivery, and how often it may be redelivered. */
  keepSeconds: number;
  maxDeliveries: number;
  /** Open payments that a payer may have at once; 0 means no limit. */
  maxOpen: number;
  /** Called after each move is on disk. It must not throw. */
  onMove?: OnMove;
}

/** A payment entered this state, or its reservation was released. `sale`: the row, for a voucher's sale only. */
export type OnMove = (id: string, to: PaymentState | 'released', sale?: Payment) => void;

/** What a settlement needs after a crash, and the reply that the buyer is then owed. */
interface StoredIntent {
  readonly signature: Uint8Array;
  readonly checkedBlock: number;
  readonly payerHasCode: boolean;
  readonly body: Uint8Array;
  readonly calldata?: Uint8Array;
}

/** Stores a settled payment with its reply; null where it may not be. */
type WritePaid = (row: Pick<NewPayment, 'id' | 'bootId' | 'reservedAt'>, keepUntil: number) => Promise<Payment | null>;

export interface Ledger {
  readonly bootId: string;
  find(key: PaymentKey): Promise<Payment | null>;
  get(id: string): Promise<Payment | null>;
  /** The payment that holds this identifier. A failed payment holds none. */
  findByIdentifier(identifierHash: Uint8Array): Promise<Payment | null>;
  /**
   * Null when another request holds the authorization or identifier, or the payer has too many open payments.
   * `isReuse`: a reverted one may be used again. `onId` gets the id before the insert: reconciliation spares it.
   */
  reserve(
    payment: Omit<NewPayment, 'id' | 'bootId' | 'reservedAt'>,
    isReuse: boolean,
    onId?: (id: string) => void,
  ): Promise<string | null>;
  /** The payer's open payments before this one, in USDC base units; by default those of the key's own contract. */
  sumOfOpen(key: PaymentKey, id: string, contracts?: readonly Uint8Array[]): Promise<bigint>;
  /**
   * Takes space for the reply of a payment that needs no settlement, which `write` stores as settled beside it until
   * `keepUntil` (Unix ms). Null as `write` says it: nothing was stored. It throws only where the store may have stored
   * it: the space then stays taken until the next purge. Throws Unavailable (store full).
   */
  keepPaid(body: Uint8Array, write: WritePaid): Promise<Payment | null>;
  /** Releases a reservation, so that the authorization may buy again. False once it is being settled. */
  release(id: string): Promise<boolean>;
  /** Also releases a row whose intent only the caller may have stored. False: a transaction is noted, or it is gone. */
  abandon(id: string): Promise<boolean>;
  hasRoom(): boolean;
  /** Stores the reply and what settles it; a crash then charges only for deliverable replies. False: full, released. */
  storeIntent(id: string, intent: StoredIntent): Promise<boolean>;
  /** Notes transactions before they are sent. Returns the ids that may be; none without the lease of `fencingToken`. */
  noteBroadcast(
    entries: readonly { id: string; transaction: Uint8Array }[],
    fencingToken?: number,
  ): Promise<ReadonlySet<string>>;
  /** `paid`: what the evidence shows, in USDC base units. */
  settled(id: string, transaction: Uint8Array, block: number, paid: bigint): Promise<boolean>;
  /** Nothing can take the money any more. False when the lease of `fencingToken` has ended: another may send it. */
  failed(id: string, reason: string, fencingToken?: number): Promise<boolean>;
  /** A reverted payment can no longer be used. The row stays `failed` with this reason. */
  ruleOut(id: string, reason: string): Promise<boolean>;
  unknown(id: string): Promise<boolean>;
  /** Notes a delivery over a connection that did not break: `keepSeconds` begin. False when it was noted before. */
  delivered(id: string): Promise<boolean>;
  /** The stored reply, unless its time is over or its redeliveries are used up. */
  redeliver(id: string): Promise<Uint8Array | null>;
  /** All payments that have not ended, oldest first. With `after`: those after that id. */
  unfinished(after?: string): AsyncIterable<Payment>;
  /** Intents without a transaction, oldest first. */
  waiting(): AsyncIterable<Payment>;
  /** Whether a payment of this payer on this key's network and contract has ever settled in this ledger. */
  hasSettled(key: PaymentKey): Promise<boolean>;
  /**
   * Takes over rows of processes not in `living` and gone by `isGone`: releases those without a noted transaction,
   * marks the rest unknown under this boot id. `living` is asked for every row: a paused process may have resumed.
   */
  recover(
    living?: () => readonly string[],
    isGone?: (payment: Payment) => boolean,
  ): Promise<{ released: number; unknown: number }>;
  ping(): Promise<void>;
  purge(): Promise<void>;
  countByState(): Promise<Record<PaymentState, number>>;
}

export function createLedger(options: LedgerOptions): Ledger {
  const { store, clock, bootId, storeBytes, sharedBy = () => 1 } = options;
  const { keepSeconds, maxDeliveries, maxOpen, onMove = () => {} } = options;
  const keepMs = keepSeconds * 1000;
  const nextId = createIds(clock);
  // Bytes that this process counts as kept, and how many it may reach. Both are read anew at every purge.
  let replyBytes = 0;
  let mostBytes = storeBytes / sharedBy();

  function report(id: string, to: PaymentState | 'released', moved: boolean): boolean {
    if (moved) onMove(id, to);
    return moved;
  }

  async function purge(): Promise<void> {
    const now = clock.nowMs();
    await store.purgeReplies(now);
    // Undelivered answers may fill half of the store. Otherwise buyers who leave early could stop the sale for days.
    await store.trimReplies(now + keepMs, now + UNDELIVERED_MS - keepMs, storeBytes / 2);
    replyBytes = await store.replyBytes();
    mostBytes = replyBytes + Math.max(0, storeBytes - replyBytes) / sharedBy();
  }

  return {
    bootId,
    find: store.find,
    get: store.get,
    findByIdentifier: store.findByIdentifier,
    sumOfOpen: store.sumOfOpen,
    ping: store.ping,
    countByState: store.countByState,
    purge,
    hasRoom: () => replyBytes < mostBytes,
    noteBroadcast: (entries, fencingToken) => store.noteBroadcast(entries, LEGAL_FROM.settled, fencingToken),
    unfinished: (after) => inStates(store, ['reserved', 'settling', 'unknown'], after),
    hasSettled: store.hasSettled,

    reserve: async (payment, isReuse, onId) => {
      const id = nextId();
      onId?.(id);
      const row = { ...payment, id, bootId, reservedAt: clock.nowMs() };
      const reserved = await store.reserve(row, maxOpen, isReuse ? REVERTED : null);
      return report(id, 'reserved', reserved) ? id : null;
    },
    release: async (id) => report(id, 'released', await store.release(id, ['reserved'])),
    abandon: async (id) => report(id, 'released', await store.release(id, ['reserved', 'settling'])),
    keepPaid: async (body, write) => {
      if (replyBytes + body.length > mostBytes) throw replyStoreFull();
      const now = clock.nowMs();
      replyBytes += body.length;
      const row = { id: nextId(), bootId, reservedAt: now };
      const sold = await write(row, now + Math.max(UNDELIVERED_MS, keepMs));
      if (sold) onMove(sold.id, 'settled', sold);
      else replyBytes -= body.length;
      return sold;
    },
    storeIntent: async (id, { signature, checkedBlock, payerHasCode, body, calldata }) => {
      if (replyBytes + body.length > mostBytes) return false;
      const change = {
        signature,
        checkedBlock,
        payerHasCode,
        settlingAt: clock.nowMs(),
        ...(calldata && { calldata }),
      };
      // Counted before it is stored, so that two concurrent calls cannot fill the same space.
      replyBytes += body.length;
      const moved = await store.move(id, LEGAL_FROM.settling, 'settling', change, { store: body });
      if (!moved) replyBytes -= body.length;
      return report(id, 'settling', moved);
    },
    settled: async (id, transaction, block, paid) => {
      const now = clock.nowMs();
      const change = { transaction, block, charged: paid, signature: null, calldata: null, reason: null, endedAt: now };
      const reply = { keepUntil: now + Math.max(UNDELIVERED_MS, keepMs) };
      return report(id, 'settled', await store.move(id, LEGAL_FROM.settled, 'settled', change, reply));
    },
    failed: async (id, reason, fencingToken) => {
      const change = { reason, signature: null, calldata: null, endedAt: clock.nowMs() };
      return report(id, 'failed', await store.move(id, LEGAL_FROM.failed, 'failed', change, 'drop', fencingToken));
    },
    ruleOut: (id, reason) => store.move(id, ['failed'], 'failed', { reason }),
    unknown: async (id) => report(id, 'unknown', await store.move(id, LEGAL_FROM.unknown, 'unknown', {})),
    delivered: (id) => store.delivered(id, clock.nowMs(), clock.nowMs() + keepMs),
    redeliver: (id) => store.takeReply(id, maxDeliveries, clock.nowMs()),
    waiting: async function* () {
      for await (const payment of inStates(store, ['settling']))
        if (!payment.transaction && payment.reason === null) yield payment;
    },
    recover: (living = () => [], isGone = () => true) =>
      recover(store, bootId, { living, isGone }, onMove).finally(purge),
  };
}

/** A row that enters one of the states during the read may be included. */
function inStates(store: LedgerStore, states: readonly PaymentState[], after?: string): AsyncIterable<Payment> {
  return pages((last) => store.listByState(states, PAGE, last), after);
}

async function* pages(read: (after: string) => Promise<Payment[]>, after = ''): AsyncIterable<Payment> {
  for (let last: string | undefined = after; last !== undefined; ) {
    const page: Payment[] = await read(last);
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
  let found: number;
  do {
    found = 0;
    // Page by page: any number of rows of processes that may live can stand before the first one that is taken over.
    for await (const row of pages((last) => store.listLeftBehind([bootId, ...living()], PAGE, last))) {
      if (!isGone(row)) continue;
      found++;
      if (living().includes(row.bootId)) continue;
      // The store releases no row with a noted transaction.
      if (await store.release(row.id, [row.state])) {
        count.released++;
        onMove(row.id, 'released');
      } else if (await store.move(row.id, [row.state], 'unknown', { bootId })) {
        count.unknown++;
        onMove(row.id, 'unknown');
      }
    }
  } while (found > 0);
  return count;
}

/** Hashes a client's identity, salted with the nonce, so that two rows do not show that they have one client. */
export function hashClient(nonce: Uint8Array, client: string): Uint8Array {
  return hash('sha256', Buffer.concat([nonce, Buffer.from(client, 'utf8')]), 'buffer');
}

/** Hashes the request that a payment is for. Aliases and transports of one request have one hash. */
export function hashRequest(endpointPath: string, params: unknown): Uint8Array {
  const sorted = Object.entries(params as Record<string, unknown>).sort(([a], [b]) => (a < b ? -1 : 1));
  return hash('sha256', JSON.stringify([endpointPath, sorted]), 'buffer');
}

/** In milliseconds. A busy ledger answers a read sooner; buyers' HTTP clients time out a few seconds later. */
const TIMEOUT_MS = 4000;

export type ReadSoon = <T>(asked: Promise<T>) => Promise<T>;

/**
 * Bounds a read (never a write, which may still be made). Throws 503 `ledger_unavailable`, `charged: "unknown"`: the
 * money may have moved before, and after `charged: false` the buyer would pay twice.
 */
export function createReadSoon(clock: Clock): ReadSoon {
  const timedOut = () => new Error(`the ledger did not answer in ${TIMEOUT_MS} ms`);
  return async (asked) => {
    try {
      return await inTime(asked, TIMEOUT_MS, clock, timedOut);
    } catch (cause) {
      const detail = 'the ledger does not answer; present the same payment again, it is never taken twice';
      throw new AppError(503, 'ledger_unavailable', detail, { charged: 'unknown', retryAfterSeconds: 5, cause });
    }
  };
}
