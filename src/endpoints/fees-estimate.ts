import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { integerParam } from '../catalogue/params.ts';
import type { LatestFee } from '../collector/store/fees.ts';
import { secondsSince } from '../lib/clock.ts';
import { sourceSchema } from '../lib/source.ts';
import { formatGwei } from '../lib/units.ts';
import { asOfBlock, bigInteger, decimal, usdcField } from './chain-fields.ts';
import { costOfGas } from './fee-fields.ts';
import { type Collected, provenance } from './freshness.ts';
import { MAX_BEHIND, readLastHour } from './last-hour.ts';
import { readNewestFee } from './newest-fee.ts';
import { detailField, paidDetail } from './paid-detail.ts';

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
  baseFeeGwei: decimal('Base fee of the newest block in gwei, exact'),
  costUsdc: usdcField('That gas at that base fee in USDC, rounded up to six decimals; a priority fee comes on top'),
  costWei: bigInteger('The same, exact, in 10^-18 USDC'),
};

/** How old the figures are. */
const ageSeconds = z.int().nonnegative().meta({
  description:
    'Time since that block by our clock, never negative. While the chain is away the newest collected block is priced, as long as it is at most ten minutes old',
});

/** At most this long after a provider last reported the head: a few polls. */
const MAX_UNSEEN_MS = 5000;

const lastHour = z
  .strictObject({
    blocks: z.int().positive().meta({ description: 'How many blocks the percentiles are taken over' }),
    seconds: z.int().nonnegative().meta({
      description:
        'How much time they cover; less than 3600 on a young chain, and while neither the chain nor the collector has the whole hour',
    }),
    percentiles: z.array(
      z.strictObject({
        percentile: z.int(),
        baseFeeGwei: decimal('Base fee in gwei that this share of the blocks did not exceed'),
        costUsdc: usdcField('The gas at that base fee in USDC, rounded up to six decimals'),
      }),
    ),
  })
  .meta({ description: 'Base fees of the blocks of the last hour' });

const example = {
  gas: 51_000,
  baseFeeGwei: '20.13',
  costUsdc: '0.001027',
  costWei: '1026630000000000',
  asOfBlock: 32250000,
  ageSeconds: 1,
  source: { name: 'JSON-RPC of eip155:5042', url: 'https://rpc.mainnet.arc.io', retrievedAt: 1795199401 },
};

/** The cost now and in the next block, compared with the last hour. */
export const feesEstimatePaid = defineEndpoint({
  path: '/fees/estimate',
  access: 'paid',
  priceUsd: '0.0005',
  label: 'Fee estimate, next block',
  summary:
    'Cost in USDC of a transaction with the given gas at the current and the next base fee, with the percentiles of the last hour.',
  freeSummary: '/v1/fees/estimate',
  params,
  result: z.strictObject({
    ...current,
    nextBaseFeeGwei: decimal('Base fee of the next block in gwei'),
    costNextUsdc: usdcField('The gas at the next base fee in USDC, rounded up to six decimals'),
    costNextWei: bigInteger('The same, exact, in 10^-18 USDC'),
    nextBaseFeeExact: z.boolean().meta({
      description: "true: the newest header announces it (as Arc's do); false: computed by EIP-1559's rule",
    }),
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
    const { number, baseFee, next, source } = fee;
    const { blocks, seconds, percentiles } = await readLastHour(sources, fee);
    return {
      ...priced(gas, baseFee),
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
      asOfBlock: number,
      ageSeconds: secondsSince(fee.at, sources.clock),
      source,
    };
  },
});

const DETAIL = paidDetail(
  feesEstimatePaid,
  'the next block’s base fee and the cost at it, and the percentiles of the last hour',
);

/** The cost of a transaction at this moment. */
export const feesEstimateFree = defineEndpoint({
  path: '/fees/estimate',
  access: 'free',
  label: 'Fee estimate',
  summary: 'Cost in USDC of a transaction with the given gas at the current base fee.',
  params,
  result: z.strictObject({ ...current, asOfBlock, ageSeconds, detail: detailField, source: sourceSchema }),
  cacheMs: 500,
  example: { params: { gas: '51000' }, result: { ...example, detail: DETAIL } },
  async run({ gas }, sources: Collected) {
    const { clock } = sources;
    // Answers from collected data where they are current. The route is free and takes any gas value, so its requests must not each cost a request to the
    // chain.
    const collected = currentFee(sources);
    const fee = collected ? { ...collected, source: provenance(sources).source } : await readNewestFee(sources);
    const { number, baseFee, source } = fee;
    return {
      ...priced(gas, baseFee),
      asOfBlock: number,
      ageSeconds: secondsSince(fee.at, clock),
      detail: DETAIL,
      source,
    };
  },
});

/** The newest collected fee. Null when the collector is more than a few blocks behind, or has not seen the head for MAX_UNSEEN_MS. */
function currentFee({ clock, collector, reads }: Collected): LatestFee | null {
  const { head, headCheckedMs } = collector.status();
  const latest = reads.latestFee();
  if (latest === null || head === null || headCheckedMs === null) return null;
  const seen = clock.nowMs() - headCheckedMs < MAX_UNSEEN_MS;
  return seen && head.number - latest.number <= MAX_BEHIND ? latest : null;
}

function priced(gas: number, baseFeeWei: bigint) {
  return {
    gas,
    baseFeeGwei: formatGwei(baseFeeWei),
    costUsdc: costOfGas(gas, baseFeeWei),
    costWei: String(BigInt(gas) * baseFeeWei),
  };
}
