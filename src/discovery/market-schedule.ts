import { createHash } from 'node:crypto';
import { AppError } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { MarketStore, StoredListing } from '../store/ports/market.ts';
import { marketDomain, readStored, relist } from './market-listing.ts';
import type { Caller, Seen } from './market-probe.ts';

// The calls that keep the listings true. A listing has one slot per interval, which its place fixes:
// 1. every 15 s the due listings are taken from the store, for this process alone;
// 2. their domains are called side by side, the listings of one domain with pauses between;
// 3. an answer renews the listing; the third failure in a row sets it offline, and it is called less and less often;
// 4. a listing that stays offline for a week is dropped.

/** The period over which uptime and latency are computed. */
const KEEP_MS = 7 * 86_400_000;
const TICK_MS = 15_000;
/** Listings taken at a time, and for how long no other process takes them: longer than their calls can last. */
const BATCH = 40;
const TAKEN_MS = 15 * 60_000;
/** Domains that are called at the same time, and the pause between two calls to one of them. */
const MAX_PARALLEL = 4;
const SPACING_MS = 2000;

interface ScheduleOptions {
  readonly store: Pick<MarketStore, 'takeDue' | 'record' | 'drop'>;
  readonly caller: Pick<Caller, 'call'>;
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly log: { info(fields: object, message: string): void; error(fields: object, message: string): void };
  readonly onRound?: () => Promise<void>;
  /** Whether this process makes the calls now. Always by default. */
  mayCall?(): boolean;
}

/** One loop per process. Several processes share the work through the store. */
interface MarketSchedule {
  /** Calls every due listing and returns afterwards. Rejects only when the store does. */
  runDue(signal: AbortSignal): Promise<void>;
  start(): void;
  /** Aborts the current calls and returns when none runs. Their listings become due again a little later. */
  stop(): Promise<void>;
}

/** Calls each listing once per interval. After a standstill many are due together, and are called a few at a time. */
export function createMarketSchedule(options: ScheduleOptions): MarketSchedule {
  const { store, clock, log, onRound = async () => undefined, mayCall = () => true } = options;
  const probe = createProbe(options);
  const ended = new AbortController();
  let running: Promise<void> | null = null;

  async function probeDomain(listings: readonly StoredListing[], signal: AbortSignal): Promise<void> {
    for (const [index, stored] of listings.entries()) {
      if (index > 0) await clock.sleep(SPACING_MS, signal).catch(() => undefined);
      if (signal.aborted) return;
      await probe(stored, signal);
    }
  }

  async function runDue(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const nowMs = clock.nowMs();
      const due = await store.takeDue(nowMs, nowMs + TAKEN_MS, BATCH);
      if (due.length === 0) return;
      const waiting = [...Map.groupBy(due, ({ domain }) => domain).values()];
      const work = async () => {
        for (let next = waiting.shift(); next; next = waiting.shift()) await probeDomain(next, signal);
      };
      await Promise.all(Array.from({ length: MAX_PARALLEL }, work));
      await onRound();
    }
  }

  async function loop(): Promise<void> {
    while (!ended.signal.aborted) {
      if (mayCall())
        await runDue(ended.signal).catch((error) => log.error({ err: error }, 'the calls to the listings failed'));
      await clock.sleep(TICK_MS, ended.signal).catch(() => undefined);
    }
  }

  return {
    runDue,
    start: () => {
      running ??= loop();
    },
    async stop() {
      ended.abort(new Error('the service stops'));
      await running;
    },
  };
}

function createProbe({ store, caller, clock, intervalMs, log }: ScheduleOptions) {
  async function keepAnswer(stored: StoredListing, seen: Seen): Promise<void> {
    const nowMs = clock.nowMs();
    const before = readStored(stored).listing;
    const listing = relist(before, { ...seen, url: before.entry.url });
    const isSamePrice = before.entry.priceUsd === listing.entry.priceUsd;
    const row = {
      ...stored,
      // Computed again: the stored one may come from another rule or an older public-suffix list.
      domain: marketDomain(new URL(listing.entry.url)),
      listing: JSON.stringify(listing),
      pricedAt: isSamePrice ? stored.pricedAt : nowMs,
      checkedAt: nowMs,
      reason: null,
      ...afterAnswer(stored.place, nowMs, intervalMs),
    };
    await store.record(row, seen.latencyMs, nowMs - KEEP_MS);
  }

  async function keepFailure(stored: StoredListing, reason: string): Promise<void> {
    const nowMs = clock.nowMs();
    const standing = afterFailure(stored.place, stored, nowMs, intervalMs);
    if (standing !== null) {
      return store.record({ ...stored, checkedAt: nowMs, reason, ...standing }, null, nowMs - KEEP_MS);
    }
    await store.drop(stored.place);
    log.info({ place: stored.place, reason }, 'a listing that stayed away was dropped');
  }

  return async (stored: StoredListing, signal: AbortSignal): Promise<void> => {
    let seen: Seen;
    try {
      seen = await caller.call(new URL(readStored(stored).listing.entry.url), stored.method, { signal });
    } catch (error) {
      // A call that we aborted says nothing about the seller.
      if (signal.aborted) return;
      if (!(error instanceof AppError))
        log.error({ err: error, place: stored.place }, 'a call to a listing failed on a bug');
      return keepFailure(stored, error instanceof AppError ? error.code : 'internal');
    }
    await keepAnswer(stored, seen);
  };
}

/** The state of a listing between two calls. Times in Unix milliseconds. */
export interface Standing {
  /** Failed calls in a row. */
  readonly failures: number;
  /** Since when it is offline; null while it is online. */
  readonly offlineAt: number | null;
  readonly dueAt: number;
}

export function afterAnswer(place: string, nowMs: number, intervalMs: number): Standing {
  return { failures: 0, offlineAt: null, dueAt: nextSlot(place, nowMs, intervalMs) };
}

/** The state after a failed call. Null: drop it. Only a failed call does, because time without calls proves nothing. */
export function afterFailure(place: string, before: Standing, nowMs: number, intervalMs: number): Standing | null {
  const failures = before.failures + 1;
  const offlineAt = before.offlineAt ?? (failures >= OFFLINE_AFTER ? nowMs : null);
  if (offlineAt !== null && nowMs - offlineAt >= DROP_AFTER_MS) return null;
  const pause = Math.min(2 ** Math.max(0, failures - OFFLINE_AFTER), MAX_PAUSE);
  return { failures, offlineAt, dueAt: nextSlot(place, nowMs + (pause - 1) * intervalMs, intervalMs) };
}

/** One or two failures may be a short disturbance. */
const OFFLINE_AFTER = 3;
const DROP_AFTER_MS = 7 * 86_400_000;
/** The longest pause of an offline listing, in intervals. Hourly calls become four a day, at different hours. */
const MAX_PAUSE = 6;

/** The next slot after a moment. So calls are spread evenly, however listings came in, and stay so over restarts. */
export function nextSlot(place: string, afterMs: number, intervalMs: number): number {
  const offsetMs = createHash('sha256').update(place).digest().readUInt32BE(0) % intervalMs;
  return afterMs + intervalMs - ((((afterMs - offsetMs) % intervalMs) + intervalMs) % intervalMs);
}
