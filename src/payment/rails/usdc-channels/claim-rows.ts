import type { ChannelsConfig } from '../../../config/rails.ts';
import type { Channel } from '../../../store/ports/channels.ts';
import type { ClaimRow } from './calldata.ts';

/** When a channel's charges are claimed. */
export interface ClaimLimits {
  /** Unclaimed charges of one channel, in base units of the token. A row costs about 24,000 gas: 0.0005 USDC at 20 gwei. */
  readonly threshold: bigint;
  /** The longest that a charge waits, in milliseconds. */
  readonly ageMs: number;
}

/** The limits that the operator has set. */
export function claimLimits({ claimFrom, claimAfterSeconds }: ChannelsConfig): ClaimLimits {
  return { threshold: claimFrom, ageMs: claimAfterSeconds * 1000 };
}

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** What is charged and neither claimed nor written off, in base units. */
function unclaimedOf({ charged, writtenOff, state }: Channel): bigint {
  return charged - writtenOff - state.totalClaimed;
}

/** Whether a pending withdrawal could take money that is charged. It cannot where the rest of the balance covers all charges. */
export function isEndangered({ charged, writtenOff, state }: Channel): boolean {
  return charged - writtenOff > state.balance - state.withdrawAmount;
}

/**
 * Whether a channel's charges are to be claimed now: they have reached the threshold or the age, a withdrawal could
 * take them, or the contract has refused them before.
 */
export function isDue(channel: Channel, { threshold, ageMs }: ClaimLimits, nowMs: number): boolean {
  if (unclaimedOf(channel) <= 0n || channel.unclaimedSince === null) return false;
  const isOld = nowMs - channel.unclaimedSince >= ageMs;
  const isRefused = channel.claimRefusedAt !== null;
  return unclaimedOf(channel) >= threshold || isOld || isRefused || isEndangered(channel);
}

/** What the channel's balance can no longer cover, and is not written off yet, in base units. The state must be a fresh one. */
export function shortfallOf({ charged, writtenOff, state: { balance, totalClaimed } }: Channel): bigint {
  const covered = balance > totalClaimed ? balance : totalClaimed;
  const missing = charged - covered - writtenOff;
  return missing > 0n ? missing : 0n;
}

/**
 * The row that claims a channel's charges, as far as its balance covers them. Null when there is nothing to claim, and without a voucher. The voucher
 * was charged up to its ceiling, so both are `charged`.
 */
export function rowOf(channel: Channel): ClaimRow | null {
  const { charged, signature, state } = channel;
  const totalClaimed = least(charged, state.balance);
  if (!signature || totalClaimed <= state.totalClaimed) return null;
  return { config: channel, maxClaimableAmount: charged, signature, totalClaimed };
}
