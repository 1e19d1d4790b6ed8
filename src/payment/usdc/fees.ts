import type { ChainClient } from '../../chain/client.ts';
import type { Clock } from '../../lib/clock.ts';

/** Fees are read at most this often; they move by 2 % a block at the most on Arc. */
const MAX_AGE_MS = 2000;
/** Enough to be taken along at once; the base fee is nearly all of the price (0.1 gwei beside 20 on Arc). */
const PRIORITY_FEE_WEI = 100_000_000n;

/** What the relayer offers for gas, in wei, and how much gas a block has. */
export function createFees(chain: ChainClient, clock: Clock) {
  let maxFeePerGas = 0n;
  let blockGas = 0n;
  let atMs = Number.NEGATIVE_INFINITY;

  return {
    async refresh(): Promise<void> {
      if (clock.nowMs() - atMs <= MAX_AGE_MS) return;
      const block = await chain.request<{ baseFeePerGas: string; gasLimit: string }>('eth_getBlockByNumber', [
        'latest',
        false,
      ]);
      blockGas = BigInt(block.gasLimit);
      // Twice the base fee outlives 35 full blocks in a row on Arc; what is not needed is not paid.
      maxFeePerGas = 2n * BigInt(block.baseFeePerGas) + PRIORITY_FEE_WEI;
      atMs = clock.nowMs();
    },
    /** The newest block's gas limit. */
    blockGas: () => blockGas,
    /** Whether a waiting transaction still pays the base fee: today's offer is twice that. */
    covers: (waiting: bigint): boolean => 2n * waiting >= maxFeePerGas,
    /** Today's offer; in place of a waiting transaction a quarter more than its own, because nodes replace for a tenth and more. */
    offer(waiting: bigint): { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint } {
      if (waiting === 0n) return { maxFeePerGas, maxPriorityFeePerGas: PRIORITY_FEE_WEI };
      const raised = (waiting * 5n) / 4n;
      const most = maxFeePerGas > raised ? maxFeePerGas : raised;
      return { maxFeePerGas: most, maxPriorityFeePerGas: (PRIORITY_FEE_WEI * 5n) / 4n };
    },
  };
}
