import type { Receipt } from '../../evm/evidence.ts';
import type { Transaction } from './flight.ts';

/** What one mined transaction of the relayer's cost, and what it settled. */
export interface MinedCost {
  readonly wei: bigint;
  readonly gasUsed: bigint;
  /** In wei, as it was paid. */
  readonly gasPrice: bigint;
  /** How many payments were in it, and how many of them it settled. */
  readonly payments: number;
  readonly settled: number;
  /** Its part for those that it did not settle, in wei. */
  readonly failedWei: bigint;
}

/** By its receipt; a node that does not tell the price is answered for with what the transaction offered. */
export function costOf({ jobs, price }: Transaction, receipt: Receipt, settled: number): MinedCost {
  const gasUsed = BigInt(receipt.gasUsed);
  const gasPrice = BigInt(receipt.effectiveGasPrice ?? price.maxFeePerGas);
  const payments = jobs.length;
  const wei = gasUsed * gasPrice;
  return {
    wei,
    gasUsed,
    gasPrice,
    payments,
    settled,
    failedWei: (wei * BigInt(payments - settled)) / BigInt(payments),
  };
}
