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

/** The environment keys of these limits. */
export const failuresEnvironment = {
  PAYER_FAILURES_PER_MINUTE: whole(20),
  CLIENT_FAILURES_PER_MINUTE: whole(60),
  CLIENT_FAILED_SETTLEMENTS_PER_DAY: whole(3),
};

/** Brings the parsed keys into the configuration's shape. */
export function assembleFailures(env: z.output<z.ZodObject<typeof failuresEnvironment>>): FailureLimits {
  return {
    payer: env.PAYER_FAILURES_PER_MINUTE,
    client: env.CLIENT_FAILURES_PER_MINUTE,
    clientSettlements: env.CLIENT_FAILED_SETTLEMENTS_PER_DAY,
  };
}
