import { Counter, Gauge, type Registry } from 'prom-client';
import { formatUnits, USDC_DECIMALS } from '../lib/units.ts';
import type { BookStore } from '../store/ports/books.ts';
import type { CountedSurplus } from './books.ts';
import type { RailName } from './rail.ts';

/** Entries that are read. More of them would stop the same rails. */
const MOST_READ = 10_000;
const USDC_UNIT = 1_000_000;

interface MismatchWatchOptions {
  readonly store: Pick<BookStore, 'entries'>;
  readonly network: string;
  /** A rail is stopped while more than this is missing on it, in USDC base units. */
  readonly stopsBeyond: bigint;
  readonly log: { info(detail: object, message: string): void; error(detail: object, message: string): void };
}

/** What the chain lacks of a rail, without what the operator has accepted. Amount in USDC base units. */
interface Missing {
  readonly amount: bigint;
  readonly entries: number;
}

/**
 * Stops a rail while the ledger has more money than the chain shows. Every process that sells reads the ledger's
 * entries in each round of maintenance, so it does not matter which process compares the books.
 */
export function createMismatchWatch({ store, network, stopsBeyond, log }: MismatchWatchOptions) {
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
    /** Why nothing is sold over the rail, or null. */
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

interface BookMetricsOptions extends Pick<MismatchWatchOptions, 'store' | 'network'> {
  /** The names of all rails, each of which has a sample from the start. */
  readonly rails: readonly RailName[];
}

/**
 * Publishes what the chain lacks, read at each scrape, and counts what came in beyond the ledger. For the process that
 * may settle.
 */
export function createBookMetrics(registry: Registry, { store, network, rails }: BookMetricsOptions) {
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
    /** For the books' `onSurplus`. */
    onSurplus: ({ transfers: count, amount }: CountedSurplus): void => {
      transfers.inc(count);
      usdc.inc(Number(amount) / USDC_UNIT);
    },
  };
}
