import type { z } from 'zod';
import type { CollectorStatus } from '../collector/store/facts.ts';
import { AppError, Unavailable, UpstreamFailed } from '../errors.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { sourceSchema } from '../lib/service.ts';
import { inTime } from '../lib/tasks.ts';
import { DAY_SECONDS, field } from './fields.ts';
import type { Sources } from './sources.ts';

// How an answer over collected data says how current it is. All time windows end at the collector's position. Before
// the first block a priced route fails, so no buyer pays for an empty answer.

export type Collected = Pick<Sources, 'chain' | 'clock' | 'collector' | 'reads' | 'collected'>;

/** Of a free endpoint: its answer changes with each write of the collector, and its lag grows even without one. */
export const keptUntilWritten = {
  cacheMs: 5000,
  version: ({ reads }: Pick<Sources, 'reads'>): number => reads.version(),
};

export const freshness = field.object('How current the collected data is; null while unknown', {
  head: field.countOrNull('The newest block of the chain, as a provider last reported it'),
  collected: field.countOrNull('The newest block that was read'),
  lagBlocks: field.integerOrNull('Blocks between the two'),
  lagSeconds: field.integerOrNull('Time between the two, and since a provider last confirmed the head'),
});

export const provenanceFields = { freshness, source: sourceSchema };

/** While no provider answers, the lag grows with the clock. */
export function freshnessOf(status: CollectorStatus, clock: Clock): z.output<typeof freshness> {
  const { head, collected, headCheckedMs, headAdvancedMs } = status;
  const checkedMs = headCheckedMs ?? headAdvancedMs;
  const known = head !== null && collected !== null;
  const unseenSeconds = checkedMs === null ? 0 : Math.max(Math.floor((clock.nowMs() - checkedMs) / 1000), 0);
  return {
    head: head?.number ?? null,
    collected: collected?.number ?? null,
    lagBlocks: known ? Math.max(head.number - collected.number, 0) : null,
    lagSeconds: known ? Math.max(head.at - collected.at, 0) + unseenSeconds : null,
  };
}

export function provenance({ chain, clock, collector }: Pick<Collected, 'chain' | 'clock' | 'collector'>) {
  const status = collector.status();
  const checkedAt = status.headCheckedMs === null ? nowSeconds(clock) : Math.floor(status.headCheckedMs / 1000);
  return {
    freshness: freshnessOf(status, clock),
    // The last read's time, not the request's: two answers over the same data have the same bytes.
    source: {
      name: `Collected from eip155:${chain.chainId} over JSON-RPC`,
      url: chain.publicUrl,
      retrievedAt: checkedAt,
    },
  };
}

/** The end of every time window, in Unix seconds: the moment up to which the chain was read. */
export function collectedUntil({ clock, collector }: Pick<Collected, 'clock' | 'collector'>): number {
  return collector.status().collected?.at ?? nowSeconds(clock);
}

/** That moment for a priced route. Throws Unavailable before the first block is collected. */
export function soldUntil({ collector }: Pick<Collected, 'collector'>): number {
  const { collected } = collector.status();
  if (collected === null) throw nothingYet();
  return collected.at;
}

export function nothingYet(): Unavailable {
  return new Unavailable('not_collected_yet', 'No block of the chain is collected yet; try again soon.');
}

export const EXAMPLE_PROVENANCE = {
  freshness: { head: 32250000, collected: 32250000, lagBlocks: 0, lagSeconds: 0 },
  source: {
    name: 'Collected from eip155:5042 over JSON-RPC',
    url: 'https://rpc.mainnet.arc.io',
    retrievedAt: 1795199401,
  },
};

/** The last 24 hours of the clock, the current one included. */
export function lastHours({ reads }: Pick<Collected, 'reads'>, until: number) {
  return reads.hours(until - DAY_SECONDS + 3600, until + 1);
}

/** So long the chain is waited for: far below the time that a handler has. */
const LIVE_MS = 3000;

/** As `liveOr`. Where `collected` is null nothing may be sold for it: then the chain's own failure is thrown. */
export async function liveOrCollected<T>(live: () => Promise<T>, collected: T | null, clock: Clock): Promise<T> {
  return collected === null ? live() : liveOr(live, collected, clock);
}

/** What `live` reads from the chain, or `other` when the chain fails, is busy or gives no answer within 3 s. */
export async function liveOr<T, O>(live: () => Promise<T>, other: O, clock: Clock): Promise<T | O> {
  const late = () => new UpstreamFailed('chain', 'no answer in time');
  return inTime(live(), LIVE_MS, clock, late).catch((error: unknown) => {
    if (error instanceof AppError && error.status >= 500) return other;
    throw error;
  });
}
