import { Counter, Gauge, type Registry } from 'prom-client';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/common.ts';
import { createRounds } from '../lib/tasks.ts';
import { formatUnits, USDC_DECIMALS } from '../lib/units.ts';
import type { BookEntry, BookKey, BookStore } from '../store/ports/books.ts';
import type { LedgerStore, Payment } from '../store/ports/payments.ts';
import type { RailName } from './rail.ts';
import type { BookVerdict, RailBooks } from './settler.ts';

// The books against the chain, row by row. One round:
// 1. A block that the chain has reached is asked for. Without an answer the round ends, and is tried again soon.
// 2. Open entries of earlier rounds, then the settled rows since the last round; a process's first goes back a day.
// 3. What the rails keep beside their rows, and what came in beyond the ledger.
// Each page's findings are kept. Only money that the ledger has and the chain lacks is a difference: beyond a limit, it
// stops the rail in every process (`createMismatchWatch`).

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** How soon a round that failed is tried again. */
const AGAIN_MS = 60_000;
/** A row's end is written a moment after its time was taken, by a process with a clock of its own. */
const OVERLAP_MS = 600_000;
/** Rows of one page: their receipts are one request. */
const PAGE = 100;
/** Entries of each kind that one round looks at again, the oldest first. */
const MOST_AGAIN = 1000;

export interface BookRail {
  readonly name: RailName;
  readonly contract: Uint8Array;
  readonly books?: RailBooks | undefined;
}

/** What came in beyond the ledger, in base units. */
export interface CountedSurplus {
  readonly transfers: number;
  readonly amount: bigint;
  readonly transactions: readonly string[];
}

export interface BooksOptions {
  readonly store: BookStore;
  readonly ledger: Pick<LedgerStore, 'get'>;
  readonly rails: readonly BookRail[];
  readonly network: string;
  reachedBlock(): Promise<number>;
  /** Counts what came in to the seller after a block and is in no row. `block` is the last block that was read. */
  countSurplus(after: number, head: number): Promise<CountedSurplus & { readonly block: number }>;
  onSurplus(surplus: CountedSurplus): void;
  readonly clock: Clock;
  readonly log: Log;
}

type Known = Map<string, bigint>;
const keyOf = ({ rail, kind, item }: BookKey): string => `${rail} ${kind} ${item}`;

export function createBooks(options: BooksOptions) {
  const { store, network, clock, log, rails } = options;
  const compareRows = createRowComparison(options);
  let nextMs = Number.NEGATIVE_INFINITY;
  let isFirst = true;
  let isStopped = false;

  async function compareSpan(span: { from: number; to: number }, head: number): Promise<void> {
    for (let after: { endedAt: number; id: string } | undefined; !isStopped; ) {
      const page = await store.settledBetween(network, span, PAGE, after);
      const last = page.at(-1);
      if (!last) return;
      await compareRows(page, head);
      after = { endedAt: last.endedAt ?? 0, id: last.id };
    }
  }

  async function round(): Promise<void> {
    const to = clock.nowMs();
    const head = await options.reachedBlock();
    const checked = await store.checked(network);
    const dayAgo = to - DAY_MS;
    const since = checked ? checked.endedMs - OVERLAP_MS : dayAgo;
    const span = { from: isFirst ? Math.min(since, dayAgo) : since, to };
    await compareRows.again(head);
    await compareSpan(span, head);
    for (const rail of rails) await compareRows.rest(rail, span, head);
    if (isStopped) return;
    const block = checked?.block == null ? head : await countSurplus(options, checked.block, head);
    await store.record(network, { found: [], ended: [], checked: { endedMs: to, block } });
    isFirst = false;
  }

  const rounds = createRounds(async () => {
    nextMs = clock.nowMs() + AGAIN_MS;
    await round();
    nextMs = clock.nowMs() + HOUR_MS;
  }, log);

  return {
    /** Runs a round at once, an hour after the last, and a minute after one that failed. Never rejects. */
    due: async (): Promise<void> => {
      if (!isStopped && clock.nowMs() >= nextMs) await rounds();
    },
    /** Ends after the page that is compared now. */
    stop: async (): Promise<void> => {
      isStopped = true;
      await rounds.idle();
    },
  };
}

async function countSurplus(
  { countSurplus: count, onSurplus, log }: BooksOptions,
  after: number,
  head: number,
): Promise<number> {
  try {
    const { block, ...counted } = await count(after, head);
    if (counted.transfers > 0) onSurplus(counted);
    return block;
  } catch (err) {
    log.warn({ err }, 'what came in beyond the ledger waits for the next round');
    return after;
  }
}

export type Books = ReturnType<typeof createBooks>;

function createRowComparison(options: BooksOptions) {
  const { store, ledger, rails, network } = options;
  const note = createNotes(options);
  const railOf = ({ contract }: Payment) => rails.find((rail) => Buffer.compare(rail.contract, contract) === 0);

  async function compare(rows: readonly Payment[], head: number): Promise<void> {
    for (const rail of rails) {
      const own = rows.filter((row) => railOf(row) === rail);
      if (!rail.books || own.length === 0) continue;
      const verdicts = await rail.books.compare(own, head);
      await note(
        rail.name,
        own.flatMap(({ id }, at) => {
          const verdict = verdicts[at];
          return verdict ? [[id, verdict] as const] : [];
        }),
      );
    }
  }

  /** Compares each row that earlier rounds left open once. One that is gone, or not settled, lacks nothing. */
  async function again(head: number): Promise<void> {
    const open = (await openEntries(store, network)).filter(({ item }) => !isRest(item));
    const ids = [...new Set(open.map(({ item }) => item))];
    for (let start = 0; start < ids.length; start += PAGE) {
      const some = ids.slice(start, start + PAGE);
      const rows = await Promise.all(some.map((id) => ledger.get(id)));
      const settled = rows.flatMap((row) => (row?.state === 'settled' ? [row] : []));
      const ended = open.filter(({ item }) => some.includes(item) && !settled.some(({ id }) => id === item));
      if (ended.length > 0) await store.record(network, { found: [], ended });
      await compare(settled, head);
    }
  }

  async function rest({ name, books }: BookRail, span: { from: number; to: number }, head: number): Promise<void> {
    if (!books?.compareRest) return;
    const open = await openEntries(store, network);
    const items = open.filter(({ rail, item }) => rail === name && isRest(item)).map(({ item }) => item);
    await note(name, [...(await books.compareRest(span, new Set(items), head))]);
  }

  return Object.assign(compare, { again, rest });
}

const isRest = (item: string): boolean => item.includes(':');

async function openEntries(store: BookStore, network: string): Promise<BookEntry[]> {
  const [missing, unread] = await Promise.all([
    store.entries(network, 'missing', MOST_AGAIN),
    store.entries(network, 'unread', MOST_AGAIN),
  ]);
  return [...missing, ...unread];
}

/** What is shown ends its entries, what is missing is an alert once, what is unread changes no difference. */
function createNotes({ store, network, clock, log, onSurplus }: BooksOptions) {
  function alert(rail: RailName, item: string, verdict: Extract<BookVerdict, { amount: bigint }>): void {
    const usdc = formatUnits(verdict.amount, USDC_DECIMALS);
    const detail = { rail, payment: item, usdc, reason: verdict.detail };
    log.error(detail, 'ALERT: the ledger has money that the chain lacks');
  }

  function changeOf(rail: RailName, [item, verdict]: readonly [string, BookVerdict], known: Known) {
    const both = [{ rail, item, kind: 'missing' } as const, { rail, item, kind: 'unread' } as const];
    const [missing, unread] = both as [BookKey, BookKey];
    const open = both.filter((key) => known.has(keyOf(key)));
    const notedMs = clock.nowMs();
    switch (verdict.kind) {
      case 'missing':
        if (verdict.amount > (known.get(keyOf(missing)) ?? 0n)) alert(rail, item, verdict);
        return { found: [{ ...missing, amount: verdict.amount, detail: verdict.detail, notedMs }], ended: [unread] };
      case 'unread':
        if (known.has(keyOf(missing))) return { found: [], ended: [] };
        return { found: [{ ...unread, amount: 0n, detail: verdict.detail, notedMs }], ended: [] };
      case 'surplus':
        onSurplus({ transfers: 1, amount: verdict.amount, transactions: [item] });
        return { found: [], ended: open };
      default:
        return { found: [], ended: open };
    }
  }

  return async (rail: RailName, verdicts: readonly (readonly [string, BookVerdict])[]): Promise<void> => {
    const known: Known = new Map((await openEntries(store, network)).map((entry) => [keyOf(entry), entry.amount]));
    const changes = verdicts.map((verdict) => changeOf(rail, verdict, known));
    const change = { found: changes.flatMap(({ found }) => found), ended: changes.flatMap(({ ended }) => ended) };
    if (change.found.length + change.ended.length > 0) await store.record(network, change);
  };
}

/** Entries that are read. More of them would stop the same rails. */
const MOST_READ = 10_000;
const USDC_UNIT = 1_000_000;

/** What the chain lacks of a rail, in USDC base units, without what the operator has accepted. */
interface Missing {
  readonly amount: bigint;
  readonly entries: number;
}

/**
 * Every process that sells reads the entries in its rounds, so it does not matter which one compares the books.
 * `stopsBeyond` is in USDC base units.
 */
export function createMismatchWatch(
  log: Pick<Log, 'info' | 'error'>,
  store: Pick<BookStore, 'entries'>,
  network: string,
  stopsBeyond: bigint,
) {
  let missing: ReadonlyMap<RailName, Missing> = new Map();
  const stops = (rail: RailName): Missing | null => {
    const own = missing.get(rail);
    return own && own.amount > stopsBeyond ? own : null;
  };

  return {
    /** Reads the entries. Rejects when the ledger cannot be read; what was read last counts on. */
    async refresh(): Promise<void> {
      const before = [...missing.keys()].filter(stops);
      missing = await readMissing(store, network);
      const now = [...missing.keys()].filter(stops);
      for (const rail of now.filter((one) => !before.includes(one)))
        log.error({ rail, reason: this.why(rail) }, 'ALERT: a rail is stopped: its books do not agree with the chain');
      for (const rail of before.filter((one) => !now.includes(one)))
        log.info({ rail }, 'a rail sells again: its books agree with the chain, or the difference is accepted');
    },
    why(rail: RailName): string | null {
      const own = stops(rail);
      if (!own) return null;
      const usdc = formatUnits(own.amount, USDC_DECIMALS);
      return `the chain lacks ${usdc} USDC of what the ledger has on this rail (entries: ${own.entries})`;
    },
  };
}

export type MismatchWatch = ReturnType<typeof createMismatchWatch>;

async function readMissing(store: Pick<BookStore, 'entries'>, network: string): Promise<Map<RailName, Missing>> {
  const sums = new Map<RailName, Missing>();
  for (const { rail, amount, acceptedMs } of await store.entries(network, 'missing', MOST_READ)) {
    if (acceptedMs !== null) continue;
    const sum = sums.get(rail);
    sums.set(rail, { amount: (sum?.amount ?? 0n) + amount, entries: (sum?.entries ?? 0) + 1 });
  }
  return sums;
}

/** For the process that may settle. What the chain lacks is read at each scrape. */
export function createBookMetrics(
  registry: Registry,
  store: Pick<BookStore, 'entries'>,
  network: string,
  rails: readonly RailName[],
) {
  const registers = [registry];
  new Gauge({
    name: 'ledger_mismatch_usdc',
    help: 'USDC that the ledger has and the chain lacks, by rail, without what the operator accepted',
    labelNames: ['rail'],
    registers,
    async collect() {
      const missing = await readMissing(store, network).catch(() => null);
      this.reset();
      if (missing === null) return;
      for (const rail of rails) this.set({ rail }, Number(missing.get(rail)?.amount ?? 0n) / USDC_UNIT);
    },
  });
  new Gauge({
    name: 'ledger_unread_rows',
    help: `Rows whose payment could not be read on the chain yet; at most ${MOST_READ} are counted`,
    registers,
    async collect() {
      const unread = await store.entries(network, 'unread', MOST_READ).catch(() => null);
      this.remove();
      if (unread !== null) this.set(unread.length);
    },
  });
  const transfers = new Counter({
    name: 'ledger_surplus_total',
    help: 'Transfers to the seller that are in no row of the ledger: gifts, dust, authorizations that others sent',
    registers,
  });
  const usdc = new Counter({ name: 'ledger_surplus_usdc_total', help: 'Their USDC', registers });
  return {
    onSurplus: ({ transfers: count, amount }: CountedSurplus): void => {
      transfers.inc(count);
      usdc.inc(Number(amount) / USDC_UNIT);
    },
  };
}
