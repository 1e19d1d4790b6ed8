import { z } from 'zod';
import { type NextBaseFee, nextByEip1559, toGas } from '../../chain/fees.ts';
import type { CostReads } from '../../collector/store/costs.ts';
import type { LatestFee } from '../../collector/store/fees.ts';
import { countOf, percentilesIn } from '../../lib/percentile.ts';
import { formatCost } from '../../lib/units.ts';
import { DAY_SECONDS, field, roundTo, showPerGas } from '../fields.ts';
import type { Collected } from '../freshness.ts';

// What the three routes about fees share: base fees and the floor, what a wallet should offer, how full blocks are.

export const baseFee = field.object('Base fee of the newest collected block', {
  wei: field.bigInteger('In wei'),
  gwei: field.decimal('In gwei, exact'),
  block: field.count('The block that has it'),
});

export function showBaseFee({ baseFee: fee, number }: LatestFee): z.output<typeof baseFee> {
  return { ...showPerGas(fee), block: number };
}

export const nextBaseFee = field.objectOrNull('Base fee of the block after that one; null while unknown', {
  wei: field.bigInteger('In wei'),
  gwei: field.decimal('In gwei'),
  exact: field.boolean("true: the block announces it (as Arc's do); false: EIP-1559's rule"),
});

export function showNextBaseFee(latest: LatestFee, floor: bigint | null): z.output<typeof nextBaseFee> {
  const next = nextFeeOf(latest, floor);
  return next && { ...showPerGas(next.wei), exact: next.exact };
}

/** The base fee after `latest`, never below the floor; null when neither the block nor EIP-1559's rule gives it. */
export function nextFeeOf(
  { baseFee: fee, nextBaseFee: announced, utilisation, gasLimit }: LatestFee,
  floor: bigint | null,
): NextBaseFee | null {
  if (announced !== null) return { wei: announced, exact: true };
  if (gasLimit === null) return null;
  return notBelow({ wei: nextByEip1559(fee, toGas(utilisation, gasLimit), gasLimit), exact: false }, floor);
}

/** Lifts an estimate to the floor, which EIP-1559's rule does not know. An announced fee is the chain's word. */
export function notBelow(next: NextBaseFee, floor: bigint | null): NextBaseFee {
  return next.exact || floor === null || next.wei >= floor ? next : { wei: floor, exact: false };
}

/** The configured floor, else the last day's lowest fee. When the newest block goes below it, the floor does too. */
export function floorOf({ reads, collected }: Pick<Collected, 'reads' | 'collected'>, until: number): bigint | null {
  const configured = collected.floorWei === null ? null : [collected.floorWei];
  const known = configured ?? reads.hours(until - DAY_SECONDS, until + 1).map((hour) => hour.minBaseFee);
  const latest = reads.latestFee();
  const fees = [...known, ...(latest ? [latest.baseFee, latest.nextBaseFee ?? latest.baseFee] : [])];
  return fees.reduce<bigint | null>((least, fee) => (least === null || fee < least ? fee : least), null);
}

/** In USDC: wei are base units of Arc's native currency, which is USDC with 18 decimals. */
export function costOfGas(gas: number, weiPerGas: bigint): string {
  return formatCost(BigInt(gas) * weiPerGas);
}

/**
 * The percentile of the tips paid, and how many hundredths of the next base fee the maximum holds. On Arc the fee rises
 * by at most 2 % a block: enough for at least 11, 20 and 35 full blocks (1.02^11 < 1.25, 1.02^20 < 1.5, 1.02^35 < 2).
 */
const SPEEDS = {
  slow: { percentile: 10, headroom: 125n },
  normal: { percentile: 50, headroom: 150n },
  fast: { percentile: 90, headroom: 200n },
} as const;

const speed = (name: string, { percentile, headroom }: (typeof SPEEDS)[keyof typeof SPEEDS]) =>
  field.object(`For a ${name} transaction`, {
    maxFeePerGas: field.perGas(
      `${Number(headroom) / 100} times the next base fee, and the tip; what is not needed is not paid`,
    ),
    maxPriorityFeePerGas: field.perGas(`The tip: ${percentile} % of the transactions paid no more`),
  });

export const suggestedFees = field.objectOrNull(
  'Fields of a transaction of type 2, by the tips that were paid; null while the next base fee is unknown or no ' +
    'tip was measured',
  {
    slow: speed('slow', SPEEDS.slow),
    normal: speed('normal', SPEEDS.normal),
    fast: speed('fast', SPEEDS.fast),
    transactions: z.int().positive().meta({ description: 'Whose tips were measured: this hour and the one before it' }),
  },
);

export const EXAMPLE_SUGGESTED: z.output<typeof suggestedFees> = {
  slow: { maxFeePerGas: showPerGas(25_100_000_000n), maxPriorityFeePerGas: showPerGas(0n) },
  normal: { maxFeePerGas: showPerGas(30_130_000_000n), maxPriorityFeePerGas: showPerGas(10_000_000n) },
  fast: { maxFeePerGas: showPerGas(41_160_000_000n), maxPriorityFeePerGas: showPerGas(1_000_000_000n) },
  transactions: 51_240,
};

const HOUR_SECONDS = 3600;

/** Percentiles of the tips of this hour and the one before it, in wei a gas; null without a transaction. */
export function tipsOf(reads: CostReads, until: number) {
  const paid = reads.tips(until - HOUR_SECONDS);
  const percents = Object.values(SPEEDS).map(({ percentile }) => percentile);
  const [slow, normal, fast] = percentilesIn(paid, percents) ?? [];
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

/** A use of gas as a share, under its name and under the one that it was released with. */
export function utilisation(description: string) {
  return {
    utilisationShare: z.number().meta({ description: `${description}, 0 to 1` }),
    utilisation: z.number().meta({ description: 'The same, under its old name' }),
  };
}

/** A millionth of a block's gas limit is less gas than any transaction uses. */
export const SHARE_DECIMALS = 6;

export function showUtilisation(value: number) {
  const share = roundTo(SHARE_DECIMALS, value);
  return { utilisationShare: share, utilisation: share };
}
