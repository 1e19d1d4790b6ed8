import { z } from 'zod';
import { type NextBaseFee, nextByEip1559, toGas } from '../chain/fees.ts';
import type { LatestFee } from '../collector/store/fees.ts';
import { formatCost, formatGwei } from '../lib/units.ts';
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
  .meta({ description: 'Base fee of the newest collected block' });

/** The base fee of the block after the newest one. */
export const nextBaseFee = z
  .strictObject({
    wei: bigInteger('In wei'),
    gwei: decimal('In gwei'),
    exact: z.boolean().meta({ description: "true: the block announces it (as Arc's do); false: EIP-1559's rule" }),
  })
  .nullable()
  .meta({ description: 'Base fee of the block after that one; null while unknown' });

export function showBaseFee({ baseFee: fee, number }: LatestFee): z.output<typeof baseFee> {
  return { wei: fee.toString(), gwei: formatGwei(fee), block: number };
}

export function showNextBaseFee(latest: LatestFee, floor: bigint | null): z.output<typeof nextBaseFee> {
  const next = nextFeeOf(latest, floor);
  return next && { wei: next.wei.toString(), gwei: formatGwei(next.wei), exact: next.exact };
}

/** The base fee of the block after `latest`, never below the floor; null when neither the block nor EIP-1559's rule gives it. */
export function nextFeeOf(
  { baseFee: fee, nextBaseFee: announced, utilisation, gasLimit }: LatestFee,
  floor: bigint | null,
): NextBaseFee | null {
  if (announced !== null) return { wei: announced, exact: true };
  if (gasLimit === null) return null;
  return notBelow({ wei: nextByEip1559(fee, toGas(utilisation, gasLimit), gasLimit), exact: false }, floor);
}

/** Lifts an estimate to the floor: EIP-1559's rule knows no floor, and a chain has its own. An announced fee is the chain's word. */
export function notBelow(next: NextBaseFee, floor: bigint | null): NextBaseFee {
  return next.exact || floor === null || next.wei >= floor ? next : { wei: floor, exact: false };
}

/**
 * The chain's lowest base fee: the configured one, else the lowest of the last day. The newest block's fees are never below it: when the chain goes below
 * what was configured or seen, the floor goes with it.
 */
export function floorOf({ reads, collected }: Pick<Collected, 'reads' | 'collected'>, until: number): bigint | null {
  const configured = collected.floorWei === null ? null : [collected.floorWei];
  const known = configured ?? reads.hours(until - DAY_SECONDS, until + 1).map((hour) => hour.minBaseFee);
  const latest = reads.latestFee();
  const fees = [...known, ...(latest ? [latest.baseFee, latest.nextBaseFee ?? latest.baseFee] : [])];
  return fees.reduce<bigint | null>((least, fee) => (least === null || fee < least ? fee : least), null);
}

/** Gas times wei, in USDC. Wei are base units of the native currency, which on Arc is USDC with 18 decimals. */
export function costOfGas(gas: number, weiPerGas: bigint): string {
  return formatCost(BigInt(gas) * weiPerGas);
}
