import { readFeeWindow } from '../chain/fees.ts';
import { AppError } from '../errors.ts';
import { countOf, type Histogram, percentilesIn } from '../lib/percentile.ts';
import type { NewestFee } from './newest-fee.ts';
import type { Sources } from './sources.ts';

const PERCENTILES = [5, 25, 50, 75, 95];
const HOUR_SECONDS = 3600;
/** The share of the blocks between the ends that must be present, for the rows to count as the time between them. */
const MIN_SHARE = 0.98;
/** Blocks that the collector may be behind. On Arc they are seconds of the hour. */
export const MAX_BEHIND = 10;

type HourSources = Pick<Sources, 'chain' | 'reads'>;
type Head = Pick<NewestFee, 'number' | 'at' | 'baseFee' | 'isLive'>;

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
 * The hour before `head`, from the collector's rows where they reach back so far (or to the chain's first block), else from the chain. When the chain is
 * away or has no fee history of that time, the part of the hour that the collector has; `seconds` says how much that is.
 * One read serves every caller until the head changes or the collector writes, because a read covers thousands of blocks.
 */
export function readLastHour(sources: HourSources, head: Head): Promise<LastHour> {
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

async function read(sources: HourSources, head: Head): Promise<LastHour> {
  const { fees, seconds } = await hourOf(sources, head);
  const found = percentilesIn(fees, PERCENTILES) ?? [];
  const percentiles = found.map((wei, at) => ({ percentile: PERCENTILES[at] ?? 0, wei }));
  return { blocks: countOf(fees), seconds, percentiles };
}

interface Hour {
  readonly fees: Histogram;
  readonly seconds: number;
}

async function hourOf(sources: HourSources, head: Head): Promise<Hour> {
  const collected = collectedHour(sources, head);
  if (collected?.reachesBack) return collected;
  if (collected && !head.isLive) return collected;
  return liveHour(sources, head).catch((error: unknown) => {
    if (collected && error instanceof AppError && error.status >= 500) return collected;
    throw error;
  });
}

/**
 * The hour from the collector's own rows, or the newest part of it. Null unless they end at most MAX_BEHIND blocks behind the head and are nearly
 * without gaps.
 */
function collectedHour({ reads }: HourSources, head: Head): (Hour & { readonly reachesBack: boolean }) | null {
  const latest = reads.latestFee();
  if (latest === null || head.number - latest.number > MAX_BEHIND) return null;
  const [from, to] = [latest.at - HOUR_SECONDS + 1, latest.at + 1];
  const edges = reads.feeEdges(from, to);
  const fees = reads.baseFees(from, to);
  if (edges === null || countOf(fees) < (edges.last - edges.first + 1) * MIN_SHARE) return null;
  const { reachesBack, first, firstAt } = edges;
  return { fees, seconds: reachesBack && first > 1 ? HOUR_SECONDS : latest.at - firstAt, reachesBack };
}

async function liveHour({ chain }: HourSources, head: Head): Promise<Hour> {
  const { fees, seconds } = await readFeeWindow(chain, head, HOUR_SECONDS, {});
  const counts = new Map<bigint, number>();
  for (const fee of fees) counts.set(fee, (counts.get(fee) ?? 0) + 1);
  return { fees: counts, seconds };
}
