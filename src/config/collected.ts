import { z } from 'zod';

const whole = (fallback: number, min: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'a whole number')
    .transform(Number)
    .refine((value) => value >= min, `a whole number from ${min}`)
    .default(fallback);

/** The limits of `/v1/health`. */
export interface HealthLimits {
  /** The service is stalled when the head has not moved for longer. */
  readonly stalledSeconds: number;
  /** The service is lagging when the collector is further behind the head, in blocks or in seconds. */
  readonly lagBlocks: number;
  readonly lagSeconds: number;
}

/** Settings of the routes over collected data, and of the RPC probes. */
export interface CollectedConfig {
  readonly health: HealthLimits;
  readonly probeIntervalMs: number;
  /** The chain's lowest base fee, when the operator knows it; null: measured over the last day. */
  readonly floorWei: bigint | null;
}

/** The environment keys of these settings. */
export const collectedEnvironment = {
  // Arc makes two blocks a second, so 30 s without a block are sixty missing blocks.
  HEALTH_STALLED_SECONDS: whole(30, 1),
  HEALTH_LAG_BLOCKS: whole(60, 0),
  HEALTH_LAG_SECONDS: whole(30, 0),
  PROBE_INTERVAL_MS: whole(5000, 100),
  FEE_FLOOR_GWEI: z
    .string()
    .regex(/^\d{1,9}(\.\d{1,9})?$/, 'an amount of gwei')
    .transform((text) => {
      const [gwei = '0', fraction = ''] = text.split('.');
      return BigInt(gwei + fraction.padEnd(9, '0'));
    })
    .optional(),
};

type CollectedEnvironment = z.output<z.ZodObject<typeof collectedEnvironment>>;

export function assembleCollected(env: CollectedEnvironment): CollectedConfig {
  return {
    health: {
      stalledSeconds: env.HEALTH_STALLED_SECONDS,
      lagBlocks: env.HEALTH_LAG_BLOCKS,
      lagSeconds: env.HEALTH_LAG_SECONDS,
    },
    probeIntervalMs: env.PROBE_INTERVAL_MS,
    floorWei: env.FEE_FLOOR_GWEI ?? null,
  };
}
