import { z } from 'zod';
import { defineEndpoint } from '../../catalogue/endpoint.ts';
import { arcRule, eip1559Rule, forecastFees, HORIZON_MINUTES, smoothedUse } from '../../chain/fees.ts';
import type { CostReads, OperationKind } from '../../collector/store/costs.ts';
import type { FeeReads, LatestFee } from '../../collector/store/fees.ts';
import type { ChainReads } from '../../collector/store/reads.ts';
import { countOf, percentilesIn } from '../../lib/percentile.ts';
import { formatCost, formatGwei } from '../../lib/units.ts';
import { DAY_SECONDS, field, roundOrNull } from '../fields.ts';
import {
  type Collected,
  EXAMPLE_PROVENANCE,
  nothingYet,
  provenance,
  provenanceFields,
  soldUntil,
} from '../freshness.ts';
import {
  baseFee,
  EXAMPLE_SUGGESTED,
  floorOf,
  nextBaseFee,
  nextFeeOf,
  SHARE_DECIMALS,
  showBaseFee,
  showNextBaseFee,
  showUtilisation,
  suggestedFees,
  suggestFees,
  tipsOf,
  utilisation,
} from './fields.ts';

// The base fee now, in the next block and in the next hour, and what each type of operation costs at it.
// The outlook runs the chain's own fee rule forward with the use of gas that the last 24 hours had.

const KINDS = ['nativeTransfer', 'tokenTransfer', 'contractCall', 'deploy'] as const satisfies OperationKind[];
/** Fees are collected in 10^-9 USDC. */
const FEE_DECIMALS = 9;

const operations = field.list(
  'Transactions of the last 24 hours by what they do; figures are null where none was measured',
  {
    type: z.enum(KINDS),
    gas: field.countOrNull('Median gas used, to three digits'),
    costUsdc: field.orNull(
      'That gas at the base fee of now, rounded up; a priority fee comes on top',
      field.usdc('In USDC'),
    ),
    p50Usdc: field.orNull('Median of the fees paid, priority fee included, to three digits', field.usdc('In USDC')),
    p95Usdc: field.orNull('95 % paid no more', field.usdc('In USDC')),
    samples: field.count('Transactions measured'),
  },
);

const EXAMPLE_OPERATIONS: z.output<typeof operations> = [
  { type: 'nativeTransfer', gas: 21_000, costUsdc: '0.000423', p50Usdc: '0.00042', p95Usdc: '0.000525', samples: 9120 },
  { type: 'tokenTransfer', gas: 51_000, costUsdc: '0.001027', p50Usdc: '0.00102', p95Usdc: '0.00158', samples: 17_406 },
  { type: 'contractCall', gas: 148_000, costUsdc: '0.00298', p50Usdc: '0.00298', p95Usdc: '0.0121', samples: 24_500 },
  { type: 'deploy', gas: 1_840_000, costUsdc: '0.03704', p50Usdc: '0.0371', p95Usdc: '0.0998', samples: 214 },
];

const trend = field.object('The last two hours in steps of five minutes, oldest first, the current step included', {
  points: z.array(
    z.strictObject({
      at: field.at('Beginning of five minutes'),
      ...utilisation('Mean share of the gas limit that their blocks used'),
    }),
  ),
  slopeSharePerHour: field.numberOrNull(
    'Change of the share an hour, by least squares over the points; null with fewer than two',
  ),
  slopePerHour: field.numberOrNull('The same, under its old name'),
});

const EXAMPLE_TREND = {
  points: [
    { at: 1795198800, utilisationShare: 0.064, utilisation: 0.064 },
    { at: 1795199100, utilisationShare: 0.068, utilisation: 0.068 },
  ],
  slopeSharePerHour: 0.048,
  slopePerHour: 0.048,
};

export const feesForecast = defineEndpoint({
  path: '/fees/forecast',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Fee forecast',
  summary:
    'Base fee now and in the next block, the 24-hour band, the utilisation trend, an outlook by the chain’s own fee ' +
    'rule, and the cost of each type of operation.',
  notFor: 'gas prices of Ethereum or of other chains',
  tags:
    'gas price prediction outlook, fees going up or down, rising, falling, cheap or expensive, in the next hour, ' +
    'when to send',
  ofChain: true,
  freeSummary: '/v1/fees',
  params: z.object({}),
  result: z.strictObject({
    now: baseFee,
    next: nextBaseFee,
    suggested: suggestedFees,
    band24h: field.objectOrNull('Base fees of the last 24 hours in gwei; null before the first block', {
      minGwei: field.decimal('Lowest'),
      p5Gwei: field.decimal('5 % of the blocks had no more'),
      medianGwei: field.decimal('Half of the blocks had no more'),
      p95Gwei: field.decimal('95 % of the blocks had no more'),
      maxGwei: field.decimal('Highest'),
      blocks: z.int().positive().meta({ description: 'Over how many blocks; a day of Arc has about 172,800' }),
    }),
    utilisationTrend: trend,
    outlook: field.list(
      `Base fees in gwei after ${HORIZON_MINUTES.join(', ')} minutes: the chain's own fee rule run forward from ` +
        "the next block's fee, with the mean use of gas that periods of that length had over the last 24 hours. " +
        'Horizons of which no whole period was collected are left out',
      {
        horizonSeconds: z.int().positive(),
        lowGwei: field.decimal('If blocks are used as in the calmest 5 % of such periods'),
        expectedGwei: field.decimal('If blocks are used as in the median period'),
        highGwei: field.decimal('If blocks are used as in the busiest 5 % of such periods'),
      },
    ),
    rule: field.orNull(
      'The rule behind the outlook. arc: use smoothed by a fifth a block, at most 2 % a block towards or away from ' +
        'the target of half the gas limit, never below the floor; eip1559: where blocks do not announce the next ' +
        'base fee. null without an outlook',
      z.enum(['arc', 'eip1559']),
    ),
    operations,
    ...provenanceFields,
  }),
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

/** Long enough to show a trend, short enough to show the present one. */
const TREND_SECONDS = 2 * 3600;
const POINT_SECONDS = 300;
const HOUR = 3600;

function trendOf(reads: Pick<FeeReads, 'minutes'>, until: number): z.output<typeof trend> {
  const stepOf = (at: number) => Math.floor(at / POINT_SECONDS) * POINT_SECONDS;
  const begin = stepOf(until - TREND_SECONDS) + POINT_SECONDS;
  const steps = Map.groupBy(reads.minutes(begin, until + 1), ({ at }) => stepOf(at));
  const points = [...steps].map(([at, minutes]) => {
    const blocks = minutes.reduce((sum, minute) => sum + minute.blocks, 0);
    const used = minutes.reduce((sum, minute) => sum + minute.utilisation * minute.blocks, 0);
    return { at, ...showUtilisation(used / blocks) };
  });
  const slope = slopeOf(points.map(({ at, utilisationShare }) => [(at - begin) / HOUR, utilisationShare]));
  const perHour = roundOrNull(SHARE_DECIMALS, slope);
  return { points, slopeSharePerHour: perHour, slopePerHour: perHour };
}

/** The slope of the least-squares line; null when the points determine none. */
export function slopeOf(points: readonly (readonly [number, number])[]): number | null {
  const mean = (of: 0 | 1) => points.reduce((sum, point) => sum + point[of], 0) / points.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  if (points.length < 2 || spread === 0) return null;
  return points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spread;
}

/** The fee rule smooths the use of gas: after 64 blocks earlier ones do not count. */
const SMOOTHING_BLOCKS = 64;

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

const MINUTE = 60;

/** Utilisation of each ended minute of the last day; null for a minute without a known block. */
function minutesOf(reads: ChainReads, until: number): (number | null)[] {
  const end = Math.floor(until / MINUTE) * MINUTE;
  const begin = end - DAY_SECONDS;
  const minutes: (number | null)[] = new Array(DAY_SECONDS / MINUTE).fill(null);
  for (const { at, utilisation } of reads.minutes(begin, end)) minutes[(at - begin) / MINUTE] = utilisation;
  return minutes;
}

function priceOperations(reads: CostReads, until: number, latest: LatestFee): z.output<typeof operations> {
  const since = until - DAY_SECONDS;
  return KINDS.map((type) => {
    const used = reads.costs(type, 'gas', since);
    const [gas] = percentilesIn(used, [50]) ?? [];
    const [p50, p95] = percentilesIn(reads.costs(type, 'fee', since), [50, 95]) ?? [];
    return {
      type,
      gas: gas === undefined ? null : Number(gas),
      costUsdc: gas === undefined ? null : formatCost(gas * latest.baseFee),
      p50Usdc: p50 === undefined ? null : formatCost(p50, FEE_DECIMALS),
      p95Usdc: p95 === undefined ? null : formatCost(p95, FEE_DECIMALS),
      samples: countOf(used),
    };
  });
}
