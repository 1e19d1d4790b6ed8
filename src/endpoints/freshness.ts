import { z } from 'zod';
import { Unavailable } from '../errors.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import type { CollectorStatus } from '../store/chain/collector-status.ts';
import type { Sources } from './sources.ts';

/** What every answer from collected data reads. */
export type Collected = Pick<Sources, 'chain' | 'clock' | 'collector' | 'reads' | 'collected'>;

/** The longest that a free answer's bytes are kept when the collector writes nothing: its lag grows all the same. */
export const KEEP_MS = 5000;

/** For `version` of a free endpoint: its bytes are kept until the collector writes. */
export const untilWritten = ({ reads }: Pick<Sources, 'reads'>): number => reads.version();

/** How current collected data is. */
export const freshness = z
  .strictObject({
    head: z.int().nonnegative().nullable().meta({ description: 'The newest block of the chain, as last heard' }),
    collected: z.int().nonnegative().nullable().meta({ description: 'The newest block that was read' }),
    lagBlocks: z.int().nullable().meta({ description: 'Blocks between the two' }),
    lagSeconds: z
      .int()
      .nullable()
      .meta({ description: 'Time between the two, and since a provider last confirmed the head' }),
  })
  .meta({ description: 'How current the collected data is; null while unknown' });

/** See `freshness`: with no provider answering, the lag grows with the clock, because nobody knows how far the chain went on. */
export function freshnessOf(status: CollectorStatus, clock: Clock): z.output<typeof freshness> {
  const { head, collected, headCheckedMs, headAdvancedMs } = status;
  const heardMs = headCheckedMs ?? headAdvancedMs;
  const known = head !== null && collected !== null;
  const unheardSeconds = heardMs === null ? 0 : Math.max(Math.floor((clock.nowMs() - heardMs) / 1000), 0);
  return {
    head: head?.number ?? null,
    collected: collected?.number ?? null,
    lagBlocks: known ? Math.max(head.number - collected.number, 0) : null,
    lagSeconds: known ? Math.max(head.at - collected.at, 0) + unheardSeconds : null,
  };
}

/** The part of an answer that says how current it is and where it comes from. */
export function provenance({ chain, clock, collector }: Pick<Collected, 'chain' | 'clock' | 'collector'>) {
  const status = collector.status();
  const heard = status.headCheckedMs === null ? nowSeconds(clock) : Math.floor(status.headCheckedMs / 1000);
  return {
    freshness: freshnessOf(status, clock),
    // When the chain was last read, not when it was asked about: two answers over the same data are the same bytes.
    source: { name: `Collected from eip155:${chain.chainId} over JSON-RPC`, url: chain.publicUrl, retrievedAt: heard },
  };
}

/** The moment up to which the chain was read, in Unix seconds: windows of time end here. */
export function collectedUntil({ clock, collector }: Pick<Collected, 'clock' | 'collector'>): number {
  return collector.status().collected?.at ?? nowSeconds(clock);
}

/** The same on a priced route; throws Unavailable before the first block is collected, because nobody must pay for an answer that knows nothing. */
export function soldUntil({ collector }: Pick<Collected, 'collector'>): number {
  const { collected } = collector.status();
  if (collected === null) throw nothingYet();
  return collected.at;
}

/** 503: the service has only just begun to look. */
export function nothingYet(): Unavailable {
  return new Unavailable('not_collected_yet', 'Nothing is collected yet, so there is nothing to sell; try again soon.');
}

/** Provenance as examples show it. */
export const EXAMPLE_PROVENANCE = {
  freshness: { head: 32250000, collected: 32250000, lagBlocks: 0, lagSeconds: 0 },
  source: {
    name: 'Collected from eip155:5042 over JSON-RPC',
    url: 'https://rpc.mainnet.arc.io',
    retrievedAt: 1795199401,
  },
};
