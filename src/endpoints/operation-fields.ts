import { z } from 'zod';
import type { CostReads, OperationKind } from '../collector/store/costs.ts';
import type { LatestFee } from '../collector/store/fees.ts';
import { countOf, percentilesIn } from '../lib/percentile.ts';
import { formatCost } from '../lib/units.ts';
import { usdcField } from './chain-fields.ts';
import { DAY_SECONDS } from './fee-fields.ts';

const KINDS: readonly OperationKind[] = ['nativeTransfer', 'tokenTransfer', 'contractCall', 'deploy'];
/** Fees are collected in 10^-9 USDC. */
const FEE_DECIMALS = 9;

/** The cost of each type of operation. */
export const operations = z
  .array(
    z.strictObject({
      type: z.enum(['nativeTransfer', 'tokenTransfer', 'contractCall', 'deploy']),
      gas: z.int().nonnegative().nullable().meta({ description: 'Median gas used, to three digits' }),
      costUsdc: usdcField('In USDC')
        .nullable()
        .meta({ description: 'That gas at the base fee of now, rounded up; a priority fee comes on top' }),
      p50Usdc: usdcField('In USDC')
        .nullable()
        .meta({ description: 'Median of the fees paid, priority fee included, to three digits' }),
      p95Usdc: usdcField('In USDC').nullable().meta({ description: '95 % paid no more' }),
      samples: z.int().nonnegative().meta({ description: 'Transactions measured' }),
    }),
  )
  .meta({ description: 'Transactions of the last 24 hours by what they do; figures are null where none was measured' });

export function priceOperations(reads: CostReads, until: number, latest: LatestFee): z.output<typeof operations> {
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

export const EXAMPLE_OPERATIONS: z.output<typeof operations> = [
  {
    type: 'nativeTransfer',
    gas: 21_000,
    costUsdc: '0.000423',
    p50Usdc: '0.00042',
    p95Usdc: '0.000525',
    samples: 9120,
  },
  {
    type: 'tokenTransfer',
    gas: 51_000,
    costUsdc: '0.001027',
    p50Usdc: '0.00102',
    p95Usdc: '0.00158',
    samples: 17_406,
  },
  {
    type: 'contractCall',
    gas: 148_000,
    costUsdc: '0.00298',
    p50Usdc: '0.00298',
    p95Usdc: '0.0121',
    samples: 24_500,
  },
  { type: 'deploy', gas: 1_840_000, costUsdc: '0.03704', p50Usdc: '0.0371', p95Usdc: '0.0998', samples: 214 },
];
