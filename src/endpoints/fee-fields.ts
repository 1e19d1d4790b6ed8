import { z } from 'zod';
import { nextByEip1559 } from '../chain/base-fee.ts';
import { toGas } from '../chain/fee-rule.ts';
import { formatGwei } from '../lib/units.ts';
import type { LatestFee } from '../store/chain/fee-reads.ts';
import { bigInteger, decimal } from './chain-fields.ts';
import type { Collected } from './freshness.ts';

export const DAY_SECONDS = 86_400;

/** The base fee of the newest block. */
export const baseFee = z
  .strictObject({
    wei: bigInteger('In wei'),
    gwei: decimal('In gwei, exact'),
    block: z.int().nonnegative().meta({ description: 'The block that has it' }),
  })
  .nullable()
  .meta({ description: 'Base fee of the newest collected block; null before the first' });

/** The base fee of the block after the newest one. */
export const nextBaseFee = z
  .strictObject({
    wei: bigInteger('In wei'),
    gwei: decimal('In gwei'),
    exact: z.boolean().meta({ description: "true: the block announces it (as Arc's do); false: EIP-1559's rule" }),
  })
  .nullable()
  .meta({ description: 'Base fee of the block after that one; null while unknown' });

export function showBaseFee(latest: LatestFee | null): z.output<typeof baseFee> {
  return latest && { wei: latest.baseFee.toString(), gwei: formatGwei(latest.baseFee), block: latest.number };
}

export function showNextBaseFee(latest: LatestFee | null): z.output<typeof nextBaseFee> {
  const next = latest && nextFeeOf(latest);
  return next && { wei: next.wei.toString(), gwei: formatGwei(next.wei), exact: next.exact };
}

/** The base fee of the block after `latest`; null when neither the block nor EIP-1559's rule gives it. */
export function nextFeeOf({ baseFee: fee, nextBaseFee: announced, utilisation, gasLimit }: LatestFee) {
  if (announced !== null) return { wei: announced, exact: true };
  if (gasLimit === null) return null;
  return { wei: nextByEip1559(fee, toGas(utilisation, gasLimit), gasLimit), exact: false };
}

/** The chain's lowest base fee: the configured one, else the lowest of the last day. */
export function floorOf({ reads, collected }: Pick<Collected, 'reads' | 'collected'>, until: number): bigint | null {
  if (collected.floorWei !== null) return collected.floorWei;
  const lows = reads.hours(until - DAY_SECONDS, until + 1).map((hour) => hour.minBaseFee);
  return lows.reduce<bigint | null>((least, fee) => (least === null || fee < least ? fee : least), null);
}
