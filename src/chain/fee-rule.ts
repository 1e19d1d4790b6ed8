// Arc's base fee rule and mainnet parameters: the node's source, as `arc.md` of the project's facts (1.6) copies it.

const GWEI = 1_000_000_000n;
/** Weight of the newest block in the smoothed use of gas, in percent. */
const ALPHA = 20n;
/** The most that the fee moves in a block, in hundredths of a percent. */
const K_RATE_BPS = 200n;
const BPS = 10_000n;
const MAX_BASE_FEE = 20_000n * GWEI;
/** EIP-1559: the fee moves by at most an eighth in a block, and the target is half of the gas limit. */
const EIP1559_STEP = 8n;

/** What the fee of the next block is computed from. */
export interface FeeState {
  /** Wei. */
  readonly baseFee: bigint;
  /** Gas used, smoothed over blocks. EIP-1559 does not use it. */
  readonly smoothed: bigint;
}

/** How a chain moves its base fee after a block that used `gasUsed`. */
export type FeeRule = (state: FeeState, gasUsed: bigint) => FeeState;

/** The limits that a rule works within. */
export interface FeeBounds {
  readonly gasLimit: bigint;
  /** The lowest base fee of the chain, in wei. */
  readonly floor: bigint;
  /** The target use, in hundredths of a percent of the gas limit; half on Arc's mainnet. */
  readonly targetBps?: bigint;
}

/** Arc's rule: the smoothed use above or below the target moves the fee by at most 2 % a block. All divisions round down, as in the node. */
export function arcRule({ gasLimit, floor, targetBps = 5000n }: FeeBounds): FeeRule {
  const target = (gasLimit * targetBps) / BPS;
  const scale = (target * BPS) / K_RATE_BPS;
  return ({ baseFee, smoothed: before }, gasUsed) => {
    const smoothed = ((100n - ALPHA) * before + ALPHA * gasUsed) / 100n;
    if (scale === 0n || smoothed === target) return { baseFee: clamp(baseFee, floor), smoothed };
    if (smoothed < target) {
      return { baseFee: clamp(baseFee - (baseFee * (target - smoothed)) / scale, floor), smoothed };
    }
    const rise = (baseFee * (smoothed - target)) / scale;
    return { baseFee: clamp(baseFee + (rise > 1n ? rise : 1n), floor), smoothed };
  };
}

/** EIP-1559's rule, for chains that do not announce their fees; only an estimate where the chain has a rule of its own. */
export function eip1559Rule({ gasLimit, floor }: FeeBounds): FeeRule {
  const target = gasLimit / 2n;
  return ({ baseFee, smoothed }, gasUsed) => {
    if (target === 0n) return { baseFee, smoothed };
    const step = (baseFee * abs(gasUsed - target)) / target / EIP1559_STEP;
    const moved = gasUsed > target ? baseFee + (step > 0n ? step : 1n) : baseFee - step;
    return { baseFee: moved < floor ? floor : moved, smoothed };
  };
}

function abs(value: bigint): bigint {
  return value < 0n ? -value : value;
}

function clamp(fee: bigint, floor: bigint): bigint {
  if (fee < floor) return floor;
  return fee > MAX_BASE_FEE ? MAX_BASE_FEE : fee;
}

/**
 * The smoothed use of gas after these blocks (oldest first, 0 to 1). Headers do not contain it.
 * Blocks before them have the weight 0.8^n, n being the number of given blocks: practically nothing after 64 blocks.
 */
export function smoothedUse(utilisations: readonly number[], gasLimit: bigint): bigint {
  const [first = 0] = utilisations;
  return utilisations.reduce(
    (smoothed, use) => ((100n - ALPHA) * smoothed + ALPHA * toGas(use, gasLimit)) / 100n,
    toGas(first, gasLimit),
  );
}

/** The gas of a utilisation (0 to 1) of the limit. Exact when the utilisation is a header's own quotient. */
export function toGas(utilisation: number, gasLimit: bigint): bigint {
  return BigInt(Math.round(utilisation * Number(gasLimit)));
}
