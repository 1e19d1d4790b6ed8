import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Clock, DAY_MS } from '../lib/clock.ts';
import type { Log } from '../lib/common.ts';
import { createLoop, createRounds, inTime, keepReading, shareRun } from '../lib/tasks.ts';
import type { RefusalStore, RefusedCalls } from '../store/ports/stores.ts';

// What an operator without Prometheus sees of the money, in UTC days:
// 1. today's payments by the way they came in, of which only the last minute is read again;
// 2. those of the days before, each read once;
// 3. the calls that were refused, by code: counted in memory by the hour, and written to the ledger once an hour.

export interface SettledSource {
  settledBetween(
    from: number,
    to: number,
  ): Promise<
    readonly {
      readonly rail: 'usdc' | 'lightning';
      readonly contract: Uint8Array | null;
      readonly count: number;
      readonly amount: bigint;
    }[]
  >;
}

/** Payments received in one way: `amount` in base units of USDC, or in millisatoshis. */
export interface RailSum {
  readonly rail: string;
  readonly count: number;
  readonly amount: bigint;
}

interface Held {
  readonly dayStart: number;
  /** `sums` covers every payment before this time. */
  readonly until: number;
  readonly sums: Sums;
}

/** A payment is written soon after its own time. Older sums do not change any more. */
const MOMENTS_MS = 60_000;

type Sums = ReadonlyMap<string, RailSum>;
type RailOf = (contract: Uint8Array | null) => string;

/** By the hour, with a turn of the event loop after each: millions of payments delay a sale by milliseconds. */
function createAdding(source: SettledSource, railOf: RailOf) {
  return async (sums: Sums, from: number, to: number): Promise<Sums> => {
    const total = new Map(sums);
    for (let at = from; at < to; at += HOUR_MS) {
      for (const { contract, count, amount } of await source.settledBetween(at, Math.min(at + HOUR_MS, to))) {
        const rail = railOf(contract);
        const before = total.get(rail) ?? { rail, count: 0, amount: 0n };
        total.set(rail, { rail, count: before.count + count, amount: before.amount + amount });
      }
      await nextTurn();
    }
    return total;
  };
}

/** Payments since midnight UTC; only the last minute is read again. `railOf`: null is Lightning. `always`: listed. */
export function createSettledToday(
  source: SettledSource,
  railOf: RailOf,
  clock: Clock,
  always: readonly string[] = [],
): () => Promise<readonly RailSum[]> {
  const nothing = new Map(always.map((rail) => [rail, { rail, count: 0, amount: 0n }]));
  let held: Held | null = null;

  const add = createAdding(source, railOf);

  return async () => {
    const now = clock.nowMs();
    const dayStart = Math.floor(now / DAY_MS) * DAY_MS;
    const before = held?.dayStart === dayStart ? held : { dayStart, until: dayStart, sums: nothing };
    const until = Math.max(before.until, now - MOMENTS_MS);
    const sums = await add(before.sums, before.until, until);
    held = { dayStart, until, sums };
    return [...(await add(sums, until, until + HOUR_MS)).values()];
  };
}

/** What is shown: today, and the days before. */
export const SHOWN_DAYS = 30;
const HOUR_MS = 3_600_000;
/** How long a page waits for days that nobody has read yet. */
const WAIT_MS = 300;

/** A day's payments. `sums`: null while they are not read. */
export interface SettledDay {
  /** Its start, in Unix milliseconds. */
  readonly dayMs: number;
  readonly sums: readonly RailSum[] | null;
}

/**
 * The whole days before today, the oldest first. A past day's sums do not change, so each is read once, the newest day
 * first. Who asks meanwhile, or while the ledger does not answer, gets what is read so far.
 */
export function createSettledDays(
  source: SettledSource,
  railOf: RailOf,
  clock: Clock,
): () => Promise<readonly SettledDay[]> {
  const add = createAdding(source, railOf);
  const kept = new Map<number, readonly RailSum[]>();
  const shownDays = () => {
    const today = Math.floor(clock.nowMs() / DAY_MS) * DAY_MS;
    return Array.from({ length: SHOWN_DAYS - 1 }, (_, before) => today - (before + 1) * DAY_MS);
  };
  const isLacking = (day: number) => !kept.has(day) && clock.nowMs() >= day + DAY_MS + MOMENTS_MS;

  const readDays = shareRun(async () => {
    for (const day of shownDays().filter(isLacking)) {
      kept.set(day, [...(await add(new Map(), day, day + DAY_MS)).values()]);
    }
  });

  return async () => {
    const days = shownDays();
    for (const day of kept.keys()) if (!days.includes(day)) kept.delete(day);
    await inTime(readDays(), WAIT_MS, clock, () => new Error('the days are still being read')).catch(() => {});
    return days.reverse().map((dayMs) => ({ dayMs, sums: kept.get(dayMs) ?? null }));
  };
}

const KEPT_MS = SHOWN_DAYS * DAY_MS;
/** Other instances write once an hour. */
const REFUSED_READ_MS = 60_000;

/**
 * Counts refused calls by hour and code. A process that is killed loses its last hour; after a write whose end is not
 * known, an hour may count twice. No sale waits for any of it.
 */
export function createRefusalCounts(store: RefusalStore, clock: Clock, log: Log) {
  const pending = new Map<number, Map<string, number>>();
  const hourNow = (): number => Math.floor(clock.nowMs() / HOUR_MS) * HOUR_MS;
  const monthAgo = (): number => clock.nowMs() - KEPT_MS;
  const dayAgo = (): number => clock.nowMs() - DAY_MS;
  const readStored = () => keepReading(() => store.since(monthAgo(), dayAgo()), REFUSED_READ_MS, clock);
  let stored = readStored();

  async function write(): Promise<void> {
    // Without refusals, what is too old is deleted all the same.
    const hours = pending.size > 0 ? [...pending] : [[hourNow(), new Map<string, number>()] as const];
    for (const [hour, codes] of hours) {
      const written = new Map(codes);
      await store.add(hour, written, monthAgo());
      stored = readStored();
      for (const [code, count] of written) {
        const left = (codes.get(code) ?? 0) - count;
        if (left > 0) codes.set(code, left);
        else codes.delete(code);
      }
      if (codes.size === 0) pending.delete(hour);
    }
  }
  const rounds = createRounds(write, log);

  const untilTurn = (): number => HOUR_MS - (clock.nowMs() % HOUR_MS);
  const { start, stop } = createLoop(clock, () => rounds().then(untilTurn), untilTurn());

  return {
    count: (code: string): void => {
      const codes = pending.get(hourNow()) ?? new Map<string, number>();
      pending.set(hourNow(), codes.set(code, (codes.get(code) ?? 0) + 1));
    },
    /** Of the last 30 days, and in them of the last 24 hours, the highest count first; this process's own at once. */
    read: async (): Promise<readonly RefusedCalls[]> => {
      const byCode = new Map((await stored()).map((row) => [row.code, row]));
      for (const [hour, codes] of pending) {
        for (const [code, more] of codes) {
          const { count, recentCount } = byCode.get(code) ?? { count: 0, recentCount: 0 };
          byCode.set(code, { code, count: count + more, recentCount: recentCount + (hour >= dayAgo() ? more : 0) });
        }
      }
      return [...byCode.values()].sort((a, b) => b.count - a.count || (a.code < b.code ? -1 : 1));
    },
    start,
    /** Writes what is counted. Never rejects. */
    stop: async (): Promise<void> => {
      await stop();
      if (pending.size > 0) await rounds();
    },
  };
}

export type RefusalCounts = ReturnType<typeof createRefusalCounts>;
