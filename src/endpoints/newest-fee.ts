import { readNewestHeader } from '../chain/block.ts';
import { baseFeeOf, type NextBaseFee, nextBaseFee } from '../chain/fees.ts';
import { secondsSince } from '../lib/clock.ts';
import { chainSource } from './chain-fields.ts';
import { floorOf, nextFeeOf, notBelow } from './fee-fields.ts';
import { type Collected, provenance } from './freshness.ts';
import { liveOrCollected } from './live-or-collected.ts';

/**
 * The oldest collected fee that is still answered while the chain is away. Within ten minutes a fee can leave the floor and return to it, so an older
 * one is no estimate.
 */
const MAX_AGE_SECONDS = 600;

/** The base fee of a block and of the one after it, with where they were read. */
export interface NewestFee {
  readonly number: number;
  /** Unix seconds. */
  readonly at: number;
  /** Wei. */
  readonly baseFee: bigint;
  readonly next: NextBaseFee;
  /** Read from the chain for this answer; false: the collector's newest block. */
  readonly isLive: boolean;
  readonly source: ReturnType<typeof chainSource>;
}

/** The newest block's fees, read from the chain; while the chain is away the collector's newest block, at most ten minutes old. */
export function readNewestFee(sources: Collected): Promise<NewestFee> {
  const { chain, clock } = sources;
  const live = async (): Promise<NewestFee> => {
    const header = await readNewestHeader(chain);
    const next = notBelow(nextBaseFee(header), floorOf(sources, header.at));
    const { number, at } = header;
    return { number, at, baseFee: baseFeeOf(header), next, isLive: true, source: chainSource(chain, clock) };
  };
  return liveOrCollected(live, collectedFee(sources), clock);
}

/** Null when the collector has no recent block, or cannot know the next block's fee. */
function collectedFee(sources: Collected): NewestFee | null {
  const latest = sources.reads.latestFee();
  if (latest === null || secondsSince(latest.at, sources.clock) > MAX_AGE_SECONDS) return null;
  const next = nextFeeOf(latest, floorOf(sources, latest.at));
  const { number, at, baseFee } = latest;
  return next && { number, at, baseFee, next, isLive: false, source: provenance(sources).source };
}
