import type { z } from 'zod';
import { whole } from './fields.ts';

/** Uncharged failures after which a payer or a client has to wait; 0 is off. */
export interface FailureLimits {
  /** Failures a minute of one payer. */
  readonly payer: number;
  /** Failures a minute of one client. */
  readonly client: number;
  /** Failed settlements a day of one client, and of one payer. A failed settlement was sent and moved no money. */
  readonly clientSettlements: number;
}

/** Payments with an unknown outcome at which a payer or a client must wait with new purchases; 0 is off. */
export interface UnknownLimits {
  readonly payer: number;
  readonly client: number;
}

/** The environment keys of these limits. */
export const failuresEnvironment = {
  PAYER_FAILURES_PER_MINUTE: whole(20),
  CLIENT_FAILURES_PER_MINUTE: whole(60),
  CLIENT_FAILED_SETTLEMENTS_PER_DAY: whole(3),
  PAYER_MAX_UNKNOWN: whole(4),
  CLIENT_MAX_UNKNOWN: whole(12),
};

/** Brings the parsed keys into the configuration's shape. */
export function assembleFailures(env: z.output<z.ZodObject<typeof failuresEnvironment>>): FailureLimits {
  return {
    payer: env.PAYER_FAILURES_PER_MINUTE,
    client: env.CLIENT_FAILURES_PER_MINUTE,
    clientSettlements: env.CLIENT_FAILED_SETTLEMENTS_PER_DAY,
  };
}

/** The same for the limits on payments with an unknown outcome. */
export function assembleUnknown(env: z.output<z.ZodObject<typeof failuresEnvironment>>): UnknownLimits {
  return { payer: env.PAYER_MAX_UNKNOWN, client: env.CLIENT_MAX_UNKNOWN };
}
