import type { ChainClient } from '../../chain/client.ts';

/** Fees are read at most this often; they move by 2 % a block at the most on Arc. */
const FEES_MAX_AGE_MS = 2000;
/** Enough to be taken along at once; the base fee is nearly all of the price (0.1 gwei beside 20 on Arc). */
const PRIORITY_FEE_WEI = 100_000_000n;

/** The relayer's one nonce sequence: a number is given once, or given back and given again before any higher one. */
export function createSequence(chain: ChainClient, address: `0x${string}`, nowMs: () => number) {
  let next: number | null = null;
  const returned: number[] = [];
  let fees = { maxFeePerGas: 0n, maxPriorityFeePerGas: PRIORITY_FEE_WEI };
  let feesAt = Number.NEGATIVE_INFINITY;

  return {
    /** Reads what it lacks from the chain; `highestInFlight` keeps a node that hides pending transactions from repeating a number. */
    async prepare(highestInFlight: number | null): Promise<void> {
      if (next === null) {
        const count = await chain.request<string>('eth_getTransactionCount', [address, 'pending']);
        next = Math.max(Number(count), highestInFlight === null ? 0 : highestInFlight + 1);
      }
      if (nowMs() - feesAt > FEES_MAX_AGE_MS) {
        const block = await chain.request<{ baseFeePerGas: string }>('eth_getBlockByNumber', ['latest', false]);
        // Twice the base fee outlives 35 full blocks in a row on Arc; what is not needed is not paid.
        fees = { ...fees, maxFeePerGas: 2n * BigInt(block.baseFeePerGas) + PRIORITY_FEE_WEI };
        feesAt = nowMs();
      }
    },
    /** The next number; `prepare` comes first. */
    take(): number {
      const again = returned.shift();
      if (again !== undefined) return again;
      if (next === null) throw new Error('the nonce sequence was not prepared');
      return next++;
    },
    /** Gives a number back whose transaction no node took. */
    giveBack(nonce: number): void {
      returned.push(nonce);
      returned.sort((a, b) => a - b);
    },
    /** Forgets what it believes; the chain is asked before the next number. */
    resync(): void {
      next = null;
      returned.length = 0;
      feesAt = Number.NEGATIVE_INFINITY;
    },
    fees: () => fees,
  };
}

export type Sequence = ReturnType<typeof createSequence>;
