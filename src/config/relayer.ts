import { z } from 'zod';
import { whole } from './fields.ts';

/** The settings of our own relayer. */
export interface RelayerConfig {
  /** The batch window: while a transaction is in flight, payments wait at most this long to share the next one. */
  readonly batchWindowMs: number;
  /** The share of a block's gas that one transaction may use. */
  readonly blockSharePercent: number;
  /** The gas budget of a UTC day, in wei of native USDC; null is no limit. */
  readonly dailyGasWei: bigint | null;
  /** The budget of a UTC day for transactions that settle nothing, in wei of native USDC; null is no limit. When it is used up, accounts with code cannot buy. */
  readonly dailyFailuresWei: bigint | null;
}

const usdcAmount = z.string().regex(/^\d{1,9}(\.\d{1,6})?$/, 'a decimal number of USDC');

/** The environment's keys of the relayer. */
export const relayerEnvironment = {
  RELAYER_GATHER_MS: whole(100, 0, 5000),
  RELAYER_BLOCK_SHARE: whole(60, 1, 100),
  RELAYER_DAILY_GAS_USDC: usdcAmount.optional(),
  RELAYER_DAILY_FAILURES_USDC: usdcAmount.default('1'),
};

/** Builds the relayer's settings. */
export function assembleRelayer(env: z.output<z.ZodObject<typeof relayerEnvironment>>): RelayerConfig {
  return {
    batchWindowMs: env.RELAYER_GATHER_MS,
    blockSharePercent: env.RELAYER_BLOCK_SHARE,
    dailyGasWei: weiOf(env.RELAYER_DAILY_GAS_USDC),
    // 0 turns this budget off. RELAYER_DAILY_GAS_USDC=0 does not: it forbids any spending.
    dailyFailuresWei: weiOf(env.RELAYER_DAILY_FAILURES_USDC) || null,
  };
}

/** Native USDC has 18 decimals. */
function weiOf(usdc: string | undefined): bigint | null {
  if (usdc === undefined) return null;
  const [whole = '', fraction = ''] = usdc.split('.');
  return BigInt(whole + fraction.padEnd(18, '0'));
}
