import type { Receipt } from '../../evm/evidence.ts';
import type { Transaction } from './flight.ts';

/** What one mined transaction of the relayer cost, and what it settled. */
export interface MinedCost {
  readonly wei: bigint;
  readonly gasUsed: bigint;
  /** The price that was paid per unit of gas, in wei. */
  readonly gasPrice: bigint;
  /** How many payments it contained, and how many of them it settled. 0 and 0 for an operation. */
  readonly payments: number;
  readonly settled: number;
  /** The part of its cost for payments that it did not settle, in wei. */
  readonly failedWei: bigint;
}

/** Computes the cost from the receipt. If the receipt has no price, the transaction's maximum price is used. */
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
    failedWei: payments === 0 ? 0n : (wei * BigInt(payments - settled)) / BigInt(payments),
  };
}
