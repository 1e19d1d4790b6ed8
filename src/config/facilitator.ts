import type { z } from 'zod';
import { whole } from './fields.ts';

/** The facilitator's limits. The facilitator's descriptor publishes them. */
export interface FacilitatorConfig {
  /** Settle calls a minute for a client, and four times as many for an IPv6 site; 0 is off. */
  readonly perMinute: number;
  /** Claims a UTC day for all clients together. `facilitator/limits.ts` has the parts of a client and of payees. */
  readonly dailyCap: number;
  /** The longest `maxTimeoutSeconds` that is settled. */
  readonly maxTimeoutSeconds: number;
}

/** The environment's keys of these limits. */
export const facilitatorEnvironment = {
  FACILITATOR_PER_MINUTE: whole(60),
  FACILITATOR_DAILY_CAP: whole(20_000, 1),
  FACILITATOR_MAX_TIMEOUT: whole(3600, 1),
};

/** The limits as the environment names them. */
export function assembleFacilitator(env: z.output<z.ZodObject<typeof facilitatorEnvironment>>): FacilitatorConfig {
  return {
    perMinute: env.FACILITATOR_PER_MINUTE,
    dailyCap: env.FACILITATOR_DAILY_CAP,
    maxTimeoutSeconds: env.FACILITATOR_MAX_TIMEOUT,
  };
}
