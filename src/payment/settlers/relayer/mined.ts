import type { ChainClient } from '../../../chain/rpc/client.ts';
import { type Receipt, readReceipt } from '../../evm/evidence.ts';
import { jobsOf, type Slot, type Version } from './job.ts';
import type { Judge } from './judge.ts';
import type { Nonces } from './nonces.ts';
import type { Slots } from './slots.ts';

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

interface MinedOptions {
  chain: ChainClient;
  slots: Slots;
  nonces: Nonces;
  judge: Pick<Judge, 'mined' | 'reopen'>;
  onMined(cost: MinedCost): void;
  signal: AbortSignal;
  log: { warn(detail: object, message: string): void };
}

/**
 * Asks for the receipts of slots and ends those that have one: their nonce is used, and what else was sent under it can never be mined.
 * What was settled is told at once, and what was not is looked into meanwhile. Rejects when the chain cannot be read.
 */
export function createCollectMined({ chain, slots, nonces, judge, onMined, signal, log }: MinedOptions) {
  function end(slot: Slot, version: Version, receipt: Receipt): void {
    slots.close(slot);
    nonces.passed(slot.nonce, Number(receipt.blockNumber));
    const paid = judge.mined(version, receipt);
    const gasUsed = BigInt(receipt.gasUsed);
    const gasPrice = BigInt(receipt.effectiveGasPrice ?? version.price.maxFeePerGas);
    const payments = version.jobs.length;
    const wei = gasUsed * gasPrice;
    const failedWei = (wei * BigInt(payments - paid)) / BigInt(payments);
    onMined({ wei, gasUsed, gasPrice, payments, settled: paid, failedWei });
    const others = jobsOf(slot).filter((job) => !version.jobs.includes(job));
    if (others.length > 0) void judge.reopen(others);
  }

  return async (some: readonly Slot[]): Promise<void> => {
    const sent = some.flatMap((slot) => slot.versions.map((version) => ({ slot, version })));
    const calls = sent.map(({ version }) => ({ method: 'eth_getTransactionReceipt', params: [version.hash] }));
    const outcomes = await chain.batch(calls, { signal });
    for (const [index, { slot, version }] of sent.entries()) {
      const outcome = outcomes[index];
      if (!outcome || !('result' in outcome) || outcome.result === null || !slots.has(slot)) continue;
      const receipt = readReceipt(outcome.result, version.hash);
      if (receipt) end(slot, version, receipt);
      else log.warn({ transaction: version.hash }, 'a receipt was not understood');
    }
  };
}

export type CollectMined = ReturnType<typeof createCollectMined>;
