import type { Receipt } from '../../usdc/evidence.ts';
import type { Transaction } from './flight.ts';
import type { Job } from './job.ts';

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

/**
 * Computes the cost from the receipt. Its price of gas is one provider's word: no two are asked for it. Where it is
 * missing, 0 or above the transaction's maximum, the maximum counts, because no transaction pays more or nothing.
 */
export function costOf({ jobs, price }: Transaction, receipt: Receipt, settled: number): MinedCost {
  const gasUsed = BigInt(receipt.gasUsed);
  const said = BigInt(receipt.effectiveGasPrice ?? 0);
  const gasPrice = said > 0n && said <= price.maxFeePerGas ? said : price.maxFeePerGas;
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

/** What one mined transaction cost one rail, and what it settled for that rail. */
export interface RailCost {
  readonly rail: string;
  readonly wei: number;
  readonly gasUsed: number;
  /** How many payments of the rail it settled. 0 for an operation. */
  readonly settled: number;
}

/** Parts of a shared transaction's gas: in a batch, a deposit into a channel used 97,504 and a transfer 48,700 (docs/benchmarks.md). */
const SHARES = { call: 2, transfer: 1 };
const UNNAMED = 'other';

/** Splits a transaction's cost among the rails of its payments, or gives it to the rail of its operation. */
export function railCostsOf(
  { jobs, operationJob }: Transaction,
  { wei, gasUsed }: Pick<MinedCost, 'wei' | 'gasUsed'>,
  settled: ReadonlySet<Job>,
): RailCost[] {
  const parts = new Map<string, { share: number; settled: number }>();
  const add = (rail = UNNAMED, share: number, paid: number): void => {
    const before = parts.get(rail) ?? { share: 0, settled: 0 };
    parts.set(rail, { share: before.share + share, settled: before.settled + paid });
  };
  if (operationJob) add(operationJob.operation.rail, 1, 0);
  for (const job of jobs)
    add(job.intent.rail, job.intent.call ? SHARES.call : SHARES.transfer, settled.has(job) ? 1 : 0);
  const whole = [...parts.values()].reduce((sum, { share }) => sum + share, 0);
  return [...parts].map(([rail, part]) => ({
    ...{ rail, settled: part.settled },
    wei: (Number(wei) * part.share) / whole,
    gasUsed: (Number(gasUsed) * part.share) / whole,
  }));
}
