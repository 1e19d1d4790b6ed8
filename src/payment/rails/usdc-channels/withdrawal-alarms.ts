import { bytesToHex } from '../../../lib/hex.ts';
import type { MinedTransaction } from '../../operation.ts';

const WEI_PER_USDC = 1e18;

/**
 * The channels whose charges one RPC provider says are in danger, while no two providers agree about them. Each is
 * claimed early, once, until two confirm or deny it: a provider that lies costs the seller the gas of one claim a
 * channel, and one that tells the truth saves the charges. Kept in memory: a process that starts anew may claim once
 * more.
 */
export function createWithdrawalAlarms() {
  const raised = new Map<string, 'raised' | 'claimed'>();
  /** The cost of the early claims that were mined, by transaction. */
  const costs = new Map<string, number>();

  return {
    /** One provider says that the channel's charges are in danger. */
    raise(id: Uint8Array): void {
      const key = bytesToHex(id);
      if (!raised.has(key)) raised.set(key, 'raised');
    },
    /** Two providers agree about the channel. */
    end: (id: Uint8Array): void => void raised.delete(bytesToHex(id)),
    /** Whether the channel is to be claimed early. */
    isDue: (id: Uint8Array): boolean => raised.get(bytesToHex(id)) === 'raised',
    /** An early claim of the channel is about to be sent. */
    noteClaim(id: Uint8Array): void {
      if (raised.has(bytesToHex(id))) raised.set(bytesToHex(id), 'claimed');
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
