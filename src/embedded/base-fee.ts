const GWEI = 1_000_000_000n;

/** Arc's parameters on mainnet: the floor and the ceiling of the base fee, in wei. */
export const MIN_BASE_FEE = 20n * GWEI;
const MAX_BASE_FEE = 20_000n * GWEI;

/** What the next block's base fee is computed from. */
export interface FeeState {
  readonly baseFee: bigint;
  /** Gas used, smoothed over blocks. */
  readonly smoothed: bigint;
}

/**
 * The fee state after a block, by Arc's rule: gas used is smoothed (a fifth of the newest block), and the fee moves by at most
 * 2 % towards or away from the floor, as that is above or below the target share of the gas limit. All floor division.
 * The node's own rule (EIP-1559) would let the fee of a quiet chain fall to nearly zero within a minute, which does not happen on Arc.
 */
export function nextFeeState(
  state: FeeState,
  gasUsed: bigint,
  gasLimit: bigint,
  rule: { targetBps: bigint; min: bigint } = { targetBps: 5_000n, min: MIN_BASE_FEE },
): FeeState {
  const smoothed = (80n * state.smoothed + 20n * gasUsed) / 100n;
  const target = (gasLimit * rule.targetBps) / 10_000n;
  const scale = (target * 10_000n) / 200n;
  let baseFee = state.baseFee;
  if (smoothed > target) {
    const rise = (baseFee * (smoothed - target)) / scale;
    baseFee += rise > 1n ? rise : 1n;
  } else {
    baseFee -= (baseFee * (target - smoothed)) / scale;
  }
  if (baseFee < rule.min) baseFee = rule.min;
  if (baseFee > MAX_BASE_FEE) baseFee = MAX_BASE_FEE;
  return { baseFee, smoothed };
}
