import { bytesToHex } from '../../lib/hex.ts';
import type { Intent } from '../settler.ts';
import { SETTLE_GAS, transferCalldata } from './token.ts';

/**
 * Gas that a call of a rail's own contract gets in a batch. A deposit into a new payment channel uses 97,504 on the embedded network, and the first
 * one of all 145,000 alone. Arc's own USDC costs more: up to 200,000 are expected there.
 */
export const CALL_GAS = 200_000n;
/**
 * Gas limit of such a call alone. It is twice what is expected, because a payer whose lone transaction uses 60 % of its limit is banned
 * (settlers/relayer/judge.ts).
 */
export const LONE_CALL_GAS = 2n * CALL_GAS;

/** A call that settles one payment, and the gas limit of a transaction that holds nothing else. */
export interface SettleCall {
  readonly to: `0x${string}`;
  readonly data: `0x${string}`;
  readonly gas: bigint;
}

/** The call that moves the money of a payment: the intent's own, or the token's transfer. `usdc` is the token. */
export function settleCall(
  usdc: `0x${string}`,
  { authorization, call }: Pick<Intent, 'authorization' | 'call'>,
): SettleCall {
  if (!call) return { to: usdc, data: transferCalldata(authorization), gas: SETTLE_GAS };
  return { to: bytesToHex(call.to), data: bytesToHex(call.data), gas: LONE_CALL_GAS };
}
