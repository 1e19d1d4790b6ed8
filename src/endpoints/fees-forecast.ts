import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { arcRule, eip1559Rule, forecastFees, HORIZON_MINUTES, smoothedUse } from '../chain/fees.ts';
import type { LatestFee } from '../collector/store/fees.ts';
import type { ChainReads } from '../collector/store/reads.ts';
import { countOf, percentilesIn } from '../lib/percentile.ts';
import { sourceSchema } from '../lib/source.ts';
import { formatGwei } from '../lib/units.ts';
import { decimal } from './chain-fields.ts';
import { baseFee, DAY_SECONDS, floorOf, nextBaseFee, nextFeeOf, showBaseFee, showNextBaseFee } from './fee-fields.ts';
import { type Collected, EXAMPLE_PROVENANCE, freshness, nothingYet, provenance, soldUntil } from './freshness.ts';
import { EXAMPLE_OPERATIONS, operations, priceOperations } from './operation-fields.ts';
import { EXAMPLE_SUGGESTED, suggestedFees, suggestFees, tipsOf } from './suggested-fees.ts';
import { EXAMPLE_TREND, trend, trendOf } from './utilisation-trend.ts';

/** The fee rule starts from a smoothed gas use. After 64 blocks that value no longer depends on earlier blocks. */
const SMOOTHING_BLOCKS = 64;
const MINUTE = 60;

const result = z.strictObject({
  now: baseFee,
  next: nextBaseFee,
  suggested: suggestedFees,
  band24h: z
    .strictObject({
      minGwei: decimal('Lowest'),
      p5Gwei: decimal('5 % of the blocks had no more'),
      medianGwei: decimal('Half of the blocks had no more'),
      p95Gwei: decimal('95 % of the blocks had no more'),
      maxGwei: decimal('Highest'),
      blocks: z.int().positive().meta({ description: 'Over how many blocks; a day of Arc has about 172,800' }),
    })
    .nullable()
    .meta({ description: 'Base fees of the last 24 hours in gwei; null before the first block' }),
  utilisationTrend: trend,
  outlook: z
    .array(
      z.strictObject({
        horizonSeconds: z.int().positive(),
        lowGwei: decimal('If blocks are used as in the calmest 5 % of such periods'),
        expectedGwei: decimal('If blocks are used as in the median period'),
        highGwei: decimal('If blocks are used as in the busiest 5 % of such periods'),
      }),
    )
    .meta({
      description: `Base fees in gwei after ${HORIZON_MINUTES.join(', ')} minutes: the chain's own fee rule run forward from the next block's fee, with the mean use of gas that periods of that length had over the last 24 hours. Horizons of which no whole period was collected are left out`,
    }),
  rule: z.enum(['arc', 'eip1559']).nullable().meta({
    description:
      'The rule behind the outlook. arc: use smoothed by a fifth a block, at most 2 % a block towards or away from the target of half the gas limit, never below the floor; eip1559: where blocks do not announce the next base fee. null without an outlook',
  }),
  operations,
  freshness,
  source: sourceSchema,
});

/** Base fees now and in the next minutes. */
export const feesForecast = defineEndpoint({
  path: '/fees/forecast',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Fee forecast',
  summary:
    'Base fee now and in the next block, the 24-hour band, the utilisation trend, an outlook by the chain’s own fee rule, and the cost of each type of operation.',
  freeSummary: '/v1/fees',
  params: z.object({}),
  result,
  example: {
    params: {},
    result: {
      now: { wei: '20130000000', gwei: '20.13', block: 32250000 },
      next: { wei: '20080000000', gwei: '20.08', exact: true },
      suggested: EXAMPLE_SUGGESTED,
      band24h: { minGwei: '20', p5Gwei: '20', medianGwei: '20', p95Gwei: '20.2', maxGwei: '57.01', blocks: 172_801 },
      utilisationTrend: EXAMPLE_TREND,
      outlook: [
        { horizonSeconds: 60, lowGwei: '20', expectedGwei: '20', highGwei: '20' },
        { horizonSeconds: 3600, lowGwei: '20', expectedGwei: '20', highGwei: '20.4' },
      ],
      rule: 'arc',
      operations: EXAMPLE_OPERATIONS,
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run(_params, sources: Collected) {
    const { reads } = sources;
    const until = soldUntil(sources);
    const latest = reads.latestFee();
    if (latest === null) throw nothingYet();
    const floor = floorOf(sources, until);
    return {
      now: showBaseFee(latest),
      next: showNextBaseFee(latest, floor),
      suggested: suggestFees(tipsOf(reads, until), nextFeeOf(latest, floor)),
      band24h: bandOf(reads, until),
      utilisationTrend: trendOf(reads, until),
      ...outlookOf(sources, latest, until),
      operations: priceOperations(reads, until, latest),
      ...provenance(sources),
    };
  },
});

function bandOf(reads: ChainReads, until: number) {
  const fees = reads.baseFees(until - DAY_SECONDS, until + 1);
  const [min, p5, median, p95, max] = (percentilesIn(fees, [0, 5, 50, 95, 100]) ?? []).map(formatGwei);
  if (min === undefined || p5 === undefined || median === undefined || p95 === undefined || max === undefined)
    return null;
  return { minGwei: min, p5Gwei: p5, medianGwei: median, p95Gwei: p95, maxGwei: max, blocks: countOf(fees) };
}

function outlookOf(sources: Collected, latest: LatestFee, until: number) {
  const { reads, collector } = sources;
  const { blockTimeSeconds } = collector.status();
  const floor = floorOf(sources, until);
  const next = nextFeeOf(latest, floor);
  if (!latest.gasLimit || next === null || floor === null || !blockTimeSeconds) return { outlook: [], rule: null };
  const bounds = { gasLimit: latest.gasLimit, floor };
  const outlook = forecastFees({
    state: { baseFee: next.wei, smoothed: smoothedUse(reads.recentUse(SMOOTHING_BLOCKS), bounds.gasLimit) },
    rule: next.exact ? arcRule(bounds) : eip1559Rule(bounds),
    gasLimit: bounds.gasLimit,
    blockTimeSeconds,
    minutes: minutesOf(reads, until),
  });
  const shown = outlook.map(({ horizonSeconds, low, expected, high }) => ({
    horizonSeconds,
    lowGwei: formatGwei(low),
    expectedGwei: formatGwei(expected),
    highGwei: formatGwei(high),
  }));
  return { outlook: shown, rule: shown.length === 0 ? null : next.exact ? ('arc' as const) : ('eip1559' as const) };
}

/** Utilisation of each ended minute of the last day; null for a minute without a known block. */
function minutesOf(reads: ChainReads, until: number): (number | null)[] {
  const end = Math.floor(until / MINUTE) * MINUTE;
  const begin = end - DAY_SECONDS;
  const minutes: (number | null)[] = new Array(DAY_SECONDS / MINUTE).fill(null);
  for (const { at, utilisation } of reads.minutes(begin, end)) minutes[(at - begin) / MINUTE] = utilisation;
  return minutes;
}
