import { z } from 'zod';
import type { CostReads } from '../collector/store/costs.ts';
import { countOf, percentilesIn } from '../lib/percentile.ts';
import { perGasField, showPerGas } from './chain-fields.ts';

const HOUR_SECONDS = 3600;
/**
 * For each speed: the percentile of the tips paid, and how many hundredths of the next base fee the maximum holds. On Arc, where the fee rises by at most
 * 2 % a block, that is enough for at least 11, 20 and 35 full blocks (1.02^11 < 1.25, 1.02^20 < 1.5, 1.02^35 < 2).
 */
const SPEEDS = {
  slow: { percentile: 10, headroom: 125n },
  normal: { percentile: 50, headroom: 150n },
  fast: { percentile: 90, headroom: 200n },
} as const;

const speed = (name: string, { percentile, headroom }: (typeof SPEEDS)[keyof typeof SPEEDS]) =>
  z
    .strictObject({
      maxFeePerGas: perGasField(
        `${Number(headroom) / 100} times the next base fee, and the tip; what is not needed is not paid`,
      ),
      maxPriorityFeePerGas: perGasField(`The tip: ${percentile} % of the transactions paid no more`),
    })
    .meta({ description: `For a ${name} transaction` });

/** What a wallet writes into a transaction of type 2. */
export const suggestedFees = z
  .strictObject({
    slow: speed('slow', SPEEDS.slow),
    normal: speed('normal', SPEEDS.normal),
    fast: speed('fast', SPEEDS.fast),
    transactions: z.int().positive().meta({ description: 'Whose tips were measured: this hour and the one before it' }),
  })
  .nullable()
  .meta({
    description:
      'Fields of a transaction of type 2, by the tips that were paid; null while the next base fee is unknown or no tip was measured',
  });

/** The tips of this hour of the clock and of the one before it: percentiles in wei a gas; null without a transaction. */
export function tipsOf(reads: CostReads, until: number) {
  const paid = reads.tips(until - HOUR_SECONDS);
  const [slow, normal, fast] =
    percentilesIn(
      paid,
      Object.values(SPEEDS).map(({ percentile }) => percentile),
    ) ?? [];
  if (slow === undefined || normal === undefined || fast === undefined) return null;
  return { slow, normal, fast, transactions: countOf(paid) };
}

export function suggestFees(
  tips: ReturnType<typeof tipsOf>,
  next: { readonly wei: bigint } | null,
): z.output<typeof suggestedFees> {
  if (tips === null || next === null) return null;
  const of = (name: keyof typeof SPEEDS) => ({
    maxFeePerGas: showPerGas((next.wei * SPEEDS[name].headroom) / 100n + tips[name]),
    maxPriorityFeePerGas: showPerGas(tips[name]),
  });
  return { slow: of('slow'), normal: of('normal'), fast: of('fast'), transactions: tips.transactions };
}

export const EXAMPLE_SUGGESTED: z.output<typeof suggestedFees> = {
  slow: {
    maxFeePerGas: { wei: '25100000000', gwei: '25.1' },
    maxPriorityFeePerGas: { wei: '0', gwei: '0' },
  },
  normal: {
    maxFeePerGas: { wei: '30130000000', gwei: '30.13' },
    maxPriorityFeePerGas: { wei: '10000000', gwei: '0.01' },
  },
  fast: {
    maxFeePerGas: { wei: '41160000000', gwei: '41.16' },
    maxPriorityFeePerGas: { wei: '1000000000', gwei: '1' },
  },
  transactions: 51_240,
};
