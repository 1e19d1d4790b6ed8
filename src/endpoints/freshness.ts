import { z } from 'zod';
import type { CollectorStatus } from '../collector/store/facts.ts';
import { AppError, Unavailable, UpstreamFailed } from '../errors.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { inTime } from '../lib/tasks.ts';
import { countOrNull } from './fields.ts';
import type { Sources } from './sources.ts';

/** The sources of every answer from collected data. */
export type Collected = Pick<Sources, 'chain' | 'clock' | 'collector' | 'reads' | 'collected'>;

/** The longest that a free answer's bytes are kept when the collector writes nothing. The collector's lag grows even then. */
export const KEEP_MS = 5000;

/** The `version` of a free endpoint over collected data. It changes with each write of the collector. */
export const untilWritten = ({ reads }: Pick<Sources, 'reads'>): number => reads.version();

/** The collector's position, and how far it is behind the chain. */
export const freshness = z
  .strictObject({
    head: countOrNull('The newest block of the chain, as a provider last reported it'),
    collected: countOrNull('The newest block that was read'),
    lagBlocks: z.int().nullable().meta({ description: 'Blocks between the two' }),
    lagSeconds: z
      .int()
      .nullable()
      .meta({ description: 'Time between the two, and since a provider last confirmed the head' }),
  })
  .meta({ description: 'How current the collected data is; null while unknown' });

/** See `freshness`. When no provider answers, the lag grows with the clock, because the chain's height is unknown. */
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

/** The members of an answer that say how current it is and where it comes from. */
export function provenance({ chain, clock, collector }: Pick<Collected, 'chain' | 'clock' | 'collector'>) {
  const status = collector.status();
  const checkedAt = status.headCheckedMs === null ? nowSeconds(clock) : Math.floor(status.headCheckedMs / 1000);
  return {
    freshness: freshnessOf(status, clock),
    // The time of the last chain read, not of the request. So two answers over the same data have the same bytes.
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

/** The same for a priced route. Throws Unavailable before the first block is collected, so that no buyer pays for an empty answer. */
export function soldUntil({ collector }: Pick<Collected, 'collector'>): number {
  const { collected } = collector.status();
  if (collected === null) throw nothingYet();
  return collected.at;
}

/** 503: the collector has not read a block yet. */
export function nothingYet(): Unavailable {
  return new Unavailable('not_collected_yet', 'No block of the chain is collected yet; try again soon.');
}

/** The provenance members of the documented examples. */
export const EXAMPLE_PROVENANCE = {
  freshness: { head: 32250000, collected: 32250000, lagBlocks: 0, lagSeconds: 0 },
  source: {
    name: 'Collected from eip155:5042 over JSON-RPC',
    url: 'https://rpc.mainnet.arc.io',
    retrievedAt: 1795199401,
  },
};

/** How long the chain is waited for when collected data can take its place: far below the time that a handler has, so that the answer still comes. */
const LIVE_MS = 3000;

/**
 * What `live` reads from the chain. When the chain fails, is busy or gives no answer within 3 s, `collected` takes its place.
 * `collected` is null when the collector has nothing that may be sold for it; then the chain's own failure is thrown.
 */
export async function liveOrCollected<T>(live: () => Promise<T>, collected: T | null, clock: Clock): Promise<T> {
  if (collected === null) return live();
  const late = () => new UpstreamFailed('chain', 'no answer in time');
  return inTime(live(), LIVE_MS, clock, late).catch((error: unknown) => {
    if (error instanceof AppError && error.status >= 500) return collected;
    throw error;
  });
}
