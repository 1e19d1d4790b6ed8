import type { z } from 'zod';
import { whole } from './fields.ts';

/** How much may fail uncharged before a payer or a client waits; 0 is off. */
export interface FailureLimits {
  /** A minute, for one payer. */
  readonly payer: number;
  /** A minute, for one client. */
  readonly client: number;
  /** A day, for one client: settlements that left our hands and moved nothing. */
  readonly clientSettlements: number;
}

/** The keys that bound what may fail uncharged. */
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
