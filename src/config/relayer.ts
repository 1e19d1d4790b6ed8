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
}

/** The environment's keys of the relayer. */
export const relayerEnvironment = {
  RELAYER_GATHER_MS: whole(100, 0, 5000),
  RELAYER_BLOCK_SHARE: whole(60, 1, 100),
  RELAYER_DAILY_GAS_USDC: z
    .string()
    .regex(/^\d{1,9}(\.\d{1,6})?$/, 'a decimal number of USDC')
    .optional(),
};

/** The relayer as the environment names it. */
export function assembleRelayer(env: z.output<z.ZodObject<typeof relayerEnvironment>>): RelayerConfig {
  const [usdc = '', fraction = ''] = env.RELAYER_DAILY_GAS_USDC?.split('.') ?? [];
  return {
    gatherMs: env.RELAYER_GATHER_MS,
    blockSharePercent: env.RELAYER_BLOCK_SHARE,
    // Native USDC has 18 decimals.
    dailyGasWei: usdc === '' ? null : BigInt(usdc + fraction.padEnd(18, '0')),
  };
}
