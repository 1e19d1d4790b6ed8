import { z } from 'zod';
import { whole } from './fields.ts';

/** How our own relayer settles. */
export interface RelayerConfig {
  /** While a transaction is in flight, payments wait at the most this long to share the next. */
  readonly gatherMs: number;
  /** How much of a block one transaction may take. */
  readonly blockSharePercent: number;
  /** What it may spend on gas in a UTC day, in wei of native USDC; null is any amount. */
  readonly dailyGasWei: bigint | null;
  /** What transactions that settle nothing may cost in a UTC day, in wei of native USDC; then accounts with code are not sold to; null is any amount. */
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

/** The relayer as the environment names it. */
export function assembleRelayer(env: z.output<z.ZodObject<typeof relayerEnvironment>>): RelayerConfig {
  return {
    gatherMs: env.RELAYER_GATHER_MS,
    blockSharePercent: env.RELAYER_BLOCK_SHARE,
    dailyGasWei: weiOf(env.RELAYER_DAILY_GAS_USDC),
    // 0 turns this budget off. RELAYER_DAILY_GAS_USDC=0 does not: it lets nothing be spent.
    dailyFailuresWei: weiOf(env.RELAYER_DAILY_FAILURES_USDC) || null,
  };
}

/** Native USDC has 18 decimals. */
function weiOf(usdc: string | undefined): bigint | null {
  if (usdc === undefined) return null;
  const [whole = '', fraction = ''] = usdc.split('.');
  return BigInt(whole + fraction.padEnd(18, '0'));
}
