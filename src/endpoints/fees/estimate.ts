import { z } from 'zod';
import { defineEndpoint } from '../../catalogue/endpoint.ts';
import { integerParam } from '../../catalogue/params.ts';
import { readNewestHeader } from '../../chain/block.ts';
import { baseFeeOf, type NextBaseFee, nextBaseFee, readFeeWindow } from '../../chain/fees.ts';
import type { LatestFee } from '../../collector/store/fees.ts';
import { AppError } from '../../errors.ts';
import { type Clock, secondsSince } from '../../lib/clock.ts';
import { countOf, type Histogram, percentilesIn } from '../../lib/percentile.ts';
import { sourceSchema } from '../../lib/service.ts';
import { formatGwei } from '../../lib/units.ts';
import { asOfBlock, chainSource, detailField, EXAMPLE_CHAIN_SOURCE, field, paidDetail } from '../fields.ts';
import { type Collected, liveOrCollected, provenance } from '../freshness.ts';
import type { Sources } from '../sources.ts';
import { costOfGas, floorOf, nextFeeOf, notBelow } from './fields.ts';

// What a given amount of gas costs, free at the base fee of now, paid also in the next block and over the last hour.
// The fee comes from the chain, else from a young collected block; the free route asks the chain only where it must.

const params = z.object({
  gas: integerParam({
    // 21,000 is a native transfer. The upper bound is Arc's block gas limit.
    default: 21_000,
    min: 1,
    max: 30_000_000,
    description: 'Gas that the transaction uses; 21000 is a plain transfer',
  }),
});

const current = {
  gas: z.int().positive().meta({ description: 'The gas that was priced' }),
  baseFeeGwei: field.decimal('Base fee of the newest block in gwei, exact'),
  costUsdc: field.usdc('That gas at that base fee in USDC, rounded up to six decimals; a priority fee comes on top'),
  costWei: field.bigInteger('The same, exact, in 10^-18 USDC'),
};

const ageSeconds = field.count(
  'Time since that block by our clock, never negative. While the chain is away the newest collected block is ' +
    'priced, as long as it is at most ten minutes old',
);

const lastHour = field.object('Base fees of the blocks of the last hour', {
  blocks: z.int().positive().meta({ description: 'How many blocks the percentiles are taken over' }),
  seconds: field.count(
    'How much time they cover; less than 3600 on a young chain, and while neither the chain nor the collector ' +
      'has the whole hour',
  ),
  percentiles: z.array(
    z.strictObject({
      percentile: z.int(),
      baseFeeGwei: field.decimal('Base fee in gwei that this share of the blocks did not exceed'),
      costUsdc: field.usdc('The gas at that base fee in USDC, rounded up to six decimals'),
    }),
  ),
});

const example = {
  gas: 51_000,
  baseFeeGwei: '20.13',
  costUsdc: '0.001027',
  costWei: '1026630000000000',
  asOfBlock: 32250000,
  ageSeconds: 1,
  source: EXAMPLE_CHAIN_SOURCE,
};

export const feesEstimatePaid = defineEndpoint({
  path: '/fees/estimate',
  access: 'paid',
  priceUsd: '0.0005',
  label: 'Fee estimate, next block',
  summary:
    'Cost in USDC of a transaction with the given gas at the current and the next base fee, with the percentiles of ' +
    'the last hour.',
  notFor: 'bridge, exchange or card fees, or for sending anything',
  tags: 'gas calculator, cost of sending a transaction in dollars',
  ofChain: true,
  freeSummary: '/v1/fees/estimate',
  params,
  result: z.strictObject({
    ...current,
    nextBaseFeeGwei: field.decimal('Base fee of the next block in gwei'),
    costNextUsdc: field.usdc('The gas at the next base fee in USDC, rounded up to six decimals'),
    costNextWei: field.bigInteger('The same, exact, in 10^-18 USDC'),
    nextBaseFeeExact: field.boolean(
      "true: the newest header announces it (as Arc's do); false: computed by EIP-1559's rule",
    ),
    lastHour,
    asOfBlock,
    ageSeconds,
    source: sourceSchema,
  }),
  example: {
    params: { gas: '51000' },
    result: {
      ...example,
      nextBaseFeeGwei: '20.08',
      costNextUsdc: '0.001025',
      costNextWei: '1024080000000000',
      nextBaseFeeExact: true,
      lastHour: {
        blocks: 7186,
        seconds: 3600,
        percentiles: [
          { percentile: 5, baseFeeGwei: '20', costUsdc: '0.00102' },
          { percentile: 25, baseFeeGwei: '20', costUsdc: '0.00102' },
          { percentile: 50, baseFeeGwei: '20', costUsdc: '0.00102' },
          { percentile: 75, baseFeeGwei: '20.09', costUsdc: '0.001025' },
          { percentile: 95, baseFeeGwei: '21.4', costUsdc: '0.001092' },
        ],
      },
    },
  },
  async run({ gas }, sources: Collected) {
    const fee = await readNewestFee(sources);
    const { next } = fee;
    const { blocks, seconds, percentiles } = await readLastHour(sources, fee);
    return {
      ...showPriced(gas, fee, sources.clock),
      nextBaseFeeGwei: formatGwei(next.wei),
      costNextUsdc: costOfGas(gas, next.wei),
      costNextWei: String(BigInt(gas) * next.wei),
      nextBaseFeeExact: next.exact,
      lastHour: {
        blocks,
        seconds,
        percentiles: percentiles.map(({ percentile, wei }) => ({
          percentile,
          baseFeeGwei: formatGwei(wei),
          costUsdc: costOfGas(gas, wei),
        })),
      },
    };
  },
});

const DETAIL = paidDetail(
  feesEstimatePaid,
  'the next block’s base fee and the cost at it, and the percentiles of the last hour',
);

export const feesEstimateFree = defineEndpoint({
  path: '/fees/estimate',
  access: 'free',
  label: 'Fee estimate',
  summary: 'Cost in USDC of a transaction with the given gas at the current base fee.',
  notFor: 'bridge, exchange or card fees, or for sending anything',
  tags: null,
  ofChain: true,
  params,
  result: z.strictObject({ ...current, asOfBlock, ageSeconds, detail: detailField, source: sourceSchema }),
  cacheMs: 500,
  example: { params: { gas: '51000' }, result: { ...example, detail: DETAIL } },
  async run({ gas }, sources: Collected) {
    // Collected data come first: the route is free, so its calls must not each cost a request to the chain.
    const collected = currentFee(sources);
    const fee = collected ? { ...collected, source: provenance(sources).source } : await readNewestFee(sources);
    return { ...showPriced(gas, fee, sources.clock), detail: DETAIL };
  },
});

/** Since a provider last reported the head: a few polls. */
const MAX_UNSEEN_MS = 5000;

/** So many blocks the collector may be behind: on Arc a few seconds. */
const MAX_BEHIND = 10;

/** Null when the collector is behind, or has not seen the head lately. */
function currentFee({ clock, collector, reads }: Collected): LatestFee | null {
  const { head, headCheckedMs } = collector.status();
  const latest = reads.latestFee();
  if (latest === null || head === null || headCheckedMs === null) return null;
  const seen = clock.nowMs() - headCheckedMs < MAX_UNSEEN_MS;
  return seen && head.number - latest.number <= MAX_BEHIND ? latest : null;
}

type PricedFee = Pick<NewestFee, 'number' | 'at' | 'baseFee' | 'source'>;

/** What both answers say: the gas at a block's base fee, and which block that is. */
function showPriced(gas: number, { number, at, baseFee, source }: PricedFee, clock: Clock) {
  return {
    gas,
    baseFeeGwei: formatGwei(baseFee),
    costUsdc: costOfGas(gas, baseFee),
    costWei: String(BigInt(gas) * baseFee),
    asOfBlock: number,
    ageSeconds: secondsSince(at, clock),
    source,
  };
}

interface NewestFee {
  readonly number: number;
  /** Unix seconds. */
  readonly at: number;
  readonly baseFee: bigint;
  readonly next: NextBaseFee;
  /** False: it is the collector's newest. */
  readonly isLive: boolean;
  readonly source: ReturnType<typeof chainSource>;
}

/** The fees of the chain's newest block; while the chain is away those of a young collected block. */
function readNewestFee(sources: Collected): Promise<NewestFee> {
  const { chain, clock } = sources;
  const live = async (): Promise<NewestFee> => {
    const header = await readNewestHeader(chain);
    const next = notBelow(nextBaseFee(header), floorOf(sources, header.at));
    const { number, at } = header;
    return { number, at, baseFee: baseFeeOf(header), next, isLive: true, source: chainSource(chain, clock) };
  };
  return liveOrCollected(live, collectedFee(sources), clock);
}

/** In ten minutes a fee can leave the floor and return to it, so older is no estimate. */
const MAX_AGE_SECONDS = 600;

/** Null without a young block, or where the next block's fee cannot be known. */
function collectedFee(sources: Collected): NewestFee | null {
  const latest = sources.reads.latestFee();
  if (latest === null || secondsSince(latest.at, sources.clock) > MAX_AGE_SECONDS) return null;
  const next = nextFeeOf(latest, floorOf(sources, latest.at));
  const { number, at, baseFee } = latest;
  return next && { number, at, baseFee, next, isLive: false, source: provenance(sources).source };
}

type HourSources = Pick<Sources, 'chain' | 'reads'>;
type Head = Pick<NewestFee, 'number' | 'at' | 'baseFee' | 'isLive'>;

interface LastHour {
  readonly blocks: number;
  /** The time that they cover; less than an hour on a young chain. */
  readonly seconds: number;
  readonly percentiles: readonly { readonly percentile: number; readonly wei: bigint }[];
}

/** The last result of each database, with the key of its inputs. */
const newest = new WeakMap<HourSources['reads'], { readonly key: string; readonly hour: Promise<LastHour> }>();

/** A read covers thousands of blocks: it serves every caller until the head changes or the collector writes. */
function readLastHour(sources: HourSources, head: Head): Promise<LastHour> {
  const { reads } = sources;
  const key = `${head.number}/${reads.version()}`;
  const known = newest.get(reads);
  if (known?.key === key) return known.hour;
  const hour = read(sources, head);
  newest.set(reads, { key, hour });
  // The next caller reads again after a failure.
  hour.catch(() => newest.get(reads)?.hour === hour && newest.delete(reads));
  return hour;
}

const PERCENTILES = [5, 25, 50, 75, 95];

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

/** From the collector's rows where they reach back so far, else the chain's history, else the rows that there are. */
async function hourOf(sources: HourSources, head: Head): Promise<Hour> {
  const collected = collectedHour(sources, head);
  if (collected && (collected.reachesBack || !head.isLive)) return collected;
  return liveHour(sources, head).catch((error: unknown) => {
    if (collected && error instanceof AppError && error.status >= 500) return collected;
    throw error;
  });
}

const HOUR_SECONDS = 3600;
/** The share of the blocks that the rows must have to stand for the time between them. */
const MIN_SHARE = 0.98;

/** The whole hour, or its newest part; null where the rows end too early or have gaps. */
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
