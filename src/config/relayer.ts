import { z } from 'zod';
import { whole } from './fields.ts';

/** What may be spent on gas in a UTC day. */
export interface DailyGas {
  /** In wei of native USDC. */
  readonly wei: bigint;
  /** Whether what the day's payments over the relayer brought may be spent too. */
  readonly plusIncome: boolean;
}

/** The settings of our own relayer. */
export interface RelayerConfig {
  /** The batch window: while a transaction is in flight, payments wait at most this long to share the next one. */
  readonly batchWindowMs: number;
  /** The share of a block's gas that one transaction may use. */
  readonly blockSharePercent: number;
  /** The gas budget of a UTC day; null is no limit. */
  readonly dailyGas: DailyGas | null;
  /** The budget of a UTC day for transactions that settle nothing, in wei of native USDC; null is no limit. When it is used up, accounts with code cannot buy. */
  readonly dailyFailuresWei: bigint | null;
}

const USDC_AMOUNT = /^\d{1,9}(\.\d{1,6})?$/;
/** What a day of sales that bring nothing may cost. It is the gas of about 2,000 lone settlements at 20 gwei. */
const DEFAULT_DAILY_GAS = '5';

/** The environment's keys of the relayer. */
export const relayerEnvironment = {
  RELAYER_GATHER_MS: whole(100, 0, 5000),
  RELAYER_BLOCK_SHARE: whole(60, 1, 100),
  RELAYER_DAILY_GAS_USDC: z
    .string()
    .refine((text) => text === 'off' || USDC_AMOUNT.test(text), 'a decimal number of USDC, or off')
    .optional(),
  RELAYER_DAILY_FAILURES_USDC: z.string().regex(USDC_AMOUNT, 'a decimal number of USDC').default('1'),
};

/** Builds the relayer's settings. */
export function assembleRelayer(env: z.output<z.ZodObject<typeof relayerEnvironment>>): RelayerConfig {
  return {
    batchWindowMs: env.RELAYER_GATHER_MS,
    blockSharePercent: env.RELAYER_BLOCK_SHARE,
    dailyGas: dailyGasOf(env.RELAYER_DAILY_GAS_USDC),
    // 0 turns this budget off. RELAYER_DAILY_GAS_USDC=0 does not: it forbids any spending.
    dailyFailuresWei: weiOf(env.RELAYER_DAILY_FAILURES_USDC) || null,
  };
}

function dailyGasOf(given: string | undefined): DailyGas | null {
  if (given === 'off') return null;
  return { wei: weiOf(given ?? DEFAULT_DAILY_GAS), plusIncome: given === undefined };
}

/** Native USDC has 18 decimals. */
function weiOf(usdc: string): bigint {
  const [whole = '', fraction = ''] = usdc.split('.');
  return BigInt(whole + fraction.padEnd(18, '0'));
}
