import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { MinedTransaction } from '../../operation.ts';

const WEI_PER_USDC = 1e18;

/** How long after the end of its alarm a channel is not claimed early again, in milliseconds. */
const QUIET_MS = 3_600_000;

/**
 * The channels whose charges one RPC provider says are in danger, while no two providers agree about them. Each is
 * claimed early, once, until two confirm or deny it, and not again within an hour of that: a provider that lies costs
 * the seller the gas of one claim a channel and hour, also where it drops its alarm and raises it again. One that tells
 * the truth saves the charges. Kept in memory: a process that starts anew may claim once more.
 */
export function createWithdrawalAlarms(clock: Clock) {
  /** The block at which a provider said it, by channel. */
  const raised = new Map<string, number>();
  /** Until when a channel is not claimed early again. Without an end while the alarm that led to its claim lasts. */
  const quiet = new Map<string, number>();
  /** The cost of the early claims that were mined, by transaction. */
  const costs = new Map<string, number>();

  return {
    /** One provider says that the channel's charges are in danger at this block. */
    raise: (id: Uint8Array, block: number): void => void raised.set(bytesToHex(id), block),
    /** The block of the channel's alarm; null without one. */
    blockOf: (id: Uint8Array): number | null => raised.get(bytesToHex(id)) ?? null,
    /** Two providers agree about the channel. */
    end(id: Uint8Array): void {
      const key = bytesToHex(id);
      raised.delete(key);
      // A later alarm makes the wait no longer.
      if (quiet.get(key) === Number.POSITIVE_INFINITY) quiet.set(key, clock.nowMs() + QUIET_MS);
    },
    /** Whether the channel is to be claimed early. */
    isDue(id: Uint8Array): boolean {
      const key = bytesToHex(id);
      const isQuiet = clock.nowMs() < (quiet.get(key) ?? 0);
      if (!isQuiet) quiet.delete(key);
      return raised.has(key) && !isQuiet;
    },
    /** An early claim of the channel was mined, and recorded its charges. */
    noteClaim(id: Uint8Array): void {
      const key = bytesToHex(id);
      quiet.set(key, raised.has(key) ? Number.POSITIVE_INFINITY : clock.nowMs() + QUIET_MS);
    },
    /** A transaction with an early claim was mined, whether or not it reverted. */
    noteCost({ transactionHash, gasUsed, effectiveGasPrice }: MinedTransaction): void {
      costs.set(transactionHash, Number(BigInt(gasUsed ?? 0) * BigInt(effectiveGasPrice ?? 0)) / WEI_PER_USDC);
    },
    /** What the gas of early claims has cost since the start, in USDC. */
    costUsdc: (): number => [...costs.values()].reduce((sum, cost) => sum + cost, 0),
  };
}

export type WithdrawalAlarms = ReturnType<typeof createWithdrawalAlarms>;
