import { z } from 'zod';

const whole = (fallback: number, min: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'a whole number')
    .transform(Number)
    .refine((value) => value >= min, `a whole number from ${min}`)
    .default(fallback);

/** What `/v1/health` calls well. */
export interface HealthLimits {
  /** Stalled: the head has not moved for longer. */
  readonly stalledSeconds: number;
  /** Lagging: the collector is further behind the head, in either. */
  readonly lagBlocks: number;
  readonly lagSeconds: number;
}

/** What is said of the collected data, and how its endpoints are watched. */
export interface CollectedConfig {
  readonly health: HealthLimits;
  readonly probeIntervalMs: number;
  /** The chain's lowest base fee, where it is known better than the last day shows; null: measured. */
  readonly floorWei: bigint | null;
}

/** The environment's keys of the above. */
export const collectedEnvironment = {
  // Arc makes two blocks a second: sixty of them without one is no accident.
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
