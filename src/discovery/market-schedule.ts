import { createHash } from 'node:crypto';
import { AppError } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/common.ts';
import { createLoop } from '../lib/tasks.ts';
import type { MarketStore, StoredListing } from '../store/ports/market.ts';
import { marketDomain, readStored, relist } from './market-listing.ts';
import type { Caller, Seen } from './market-probe.ts';

// The calls that keep listings true, each in its slot of the interval. Due listings are taken from the store for this
// process alone; domains are called side by side, one domain's listings with pauses. The third failure in a row sets a
// listing offline; after a week offline it is dropped.

/** Uptime and latency cover this period. */
const KEEP_MS = 7 * 86_400_000;
const TICK_MS = 15_000;
/** Listings taken at a time, and how long no other process takes them: longer than their calls can last. */
const BATCH = 40;
const TAKEN_MS = 15 * 60_000;
/** Domains called at the same time, and the pause between two calls to one. */
const MAX_PARALLEL = 4;
const SPACING_MS = 2000;

interface ScheduleOptions {
  readonly store: Pick<MarketStore, 'takeDue' | 'record' | 'drop'>;
  readonly caller: Pick<Caller, 'call'>;
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly log: Pick<Log, 'info' | 'error'>;
  readonly onRound?: () => Promise<void>;
  mayCall?(): boolean;
}

interface MarketSchedule {
  /** Returns when every due listing was called. Rejects only when the store does. */
  runDue(signal: AbortSignal): Promise<void>;
  start(): void;
  /** Aborts the current calls. Their listings become due again a little later. */
  stop(): Promise<void>;
}

/** After a standstill many are due together, and are called a few at a time. */
export function createMarketSchedule(options: ScheduleOptions): MarketSchedule {
  const { store, clock, log, onRound = async () => undefined, mayCall = () => true } = options;
  const probe = createProbe(options);

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

  async function step(signal: AbortSignal): Promise<number> {
    if (mayCall()) await runDue(signal).catch((err) => log.error({ err }, 'the calls to the listings failed'));
    return TICK_MS;
  }

  const loop = createLoop(clock, step);
  return { runDue, start: loop.start, stop: () => loop.stop(new Error('the service stops')) };
}

function createProbe({ store, caller, clock, intervalMs, log }: ScheduleOptions) {
  async function keepAnswer(stored: StoredListing, seen: Seen): Promise<void> {
    const nowMs = clock.nowMs();
    const before = readStored(stored).listing;
    const listing = relist(before, { ...seen, url: before.entry.url });
    const isSamePrice = before.entry.priceUsd === listing.entry.priceUsd;
    const row = {
      ...stored,
      // Stored ones may come from an older rule or public-suffix list.
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
      if (signal.aborted) return;
      if (!(error instanceof AppError))
        log.error({ err: error, place: stored.place }, 'a call to a listing failed on a bug');
      return keepFailure(stored, error instanceof AppError ? error.code : 'internal');
    }
    await keepAnswer(stored, seen);
  };
}

/** Times in Unix milliseconds; `failures` in a row. */
export interface Standing {
  readonly failures: number;
  readonly offlineAt: number | null;
  readonly dueAt: number;
}

export function afterAnswer(place: string, nowMs: number, intervalMs: number): Standing {
  return { failures: 0, offlineAt: null, dueAt: nextSlot(place, nowMs, intervalMs) };
}

/** Null: drop it. Only a failed call does, because time without calls proves nothing. */
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
