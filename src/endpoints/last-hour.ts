import type { Header } from '../chain/block.ts';
import { readFeeWindow } from '../chain/fee-history.ts';
import { countOf, type Histogram, percentilesIn } from '../lib/percentile.ts';
import type { Sources } from './sources.ts';

const PERCENTILES = [5, 25, 50, 75, 95];
const HOUR_SECONDS = 3600;
/** The share of an hour's blocks that must be present. It is below 1, because the expected count comes from the measured mean block time. */
const MIN_SHARE = 0.98;
/** Blocks that the collector may be behind. On Arc they are seconds of the hour. */
export const MAX_BEHIND = 10;

type HourSources = Pick<Sources, 'chain' | 'collector' | 'reads'>;

/** The base fees of the hour before a block. */
interface LastHour {
  readonly blocks: number;
  /** The time that they cover, in seconds. Less than an hour on a young chain. */
  readonly seconds: number;
  readonly percentiles: readonly { readonly percentile: number; readonly wei: bigint }[];
}

/** The last result of each database, with the key of its inputs. */
const newest = new WeakMap<HourSources['reads'], { readonly key: string; readonly hour: Promise<LastHour> }>();

/**
 * The hour before `head`, from the collector's rows where it has them, else from the chain.
 * One read serves every caller until the head changes or the collector writes, because a read covers thousands of blocks.
 */
export function readLastHour(sources: HourSources, head: Header): Promise<LastHour> {
  const { reads } = sources;
  const key = `${head.number}/${reads.version()}`;
  const known = newest.get(reads);
  if (known?.key === key) return known.hour;
  const hour = read(sources, head);
  newest.set(reads, { key, hour });
  // Drops a failed read, so that the next caller reads again.
  hour.catch(() => newest.get(reads)?.hour === hour && newest.delete(reads));
  return hour;
}

async function read(sources: HourSources, head: Header): Promise<LastHour> {
  const { fees, seconds } = collectedHour(sources, head) ?? (await liveHour(sources, head));
  const found = percentilesIn(fees, PERCENTILES) ?? [];
  const percentiles = found.map((wei, at) => ({ percentile: PERCENTILES[at] ?? 0, wei }));
  return { blocks: countOf(fees), seconds, percentiles };
}

interface Hour {
  readonly fees: Histogram;
  readonly seconds: number;
}

/**
 * The hour from the collector's own rows. Null unless they reach from an hour ago to at most MAX_BEHIND blocks behind the head, nearly without gaps.
 */
function collectedHour({ collector, reads }: HourSources, head: Header): Hour | null {
  const { blockTimeSeconds } = collector.status();
  const latest = reads.latestFee();
  if (latest === null || blockTimeSeconds === null || head.number - latest.number > MAX_BEHIND) return null;
  const fees = reads.baseFees(latest.at - HOUR_SECONDS + 1, latest.at + 1);
  const expected = HOUR_SECONDS / blockTimeSeconds;
  return countOf(fees) >= expected * MIN_SHARE ? { fees, seconds: HOUR_SECONDS } : null;
}

async function liveHour({ chain }: HourSources, head: Header): Promise<Hour> {
  const { fees, seconds } = await readFeeWindow(chain, head, HOUR_SECONDS, {});
  const counts = new Map<bigint, number>();
  for (const fee of fees) counts.set(fee, (counts.get(fee) ?? 0) + 1);
  return { fees: counts, seconds };
}
