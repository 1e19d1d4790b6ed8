import type { z } from 'zod';
import { list } from './fields.ts';

/** What an operator changes in the catalogue, as it was given. `catalogue/offered.ts` checks it. */
export interface OffersConfig {
  /** Entries of PRICES, such as `chain/wallet=0.004`. */
  readonly prices: readonly string[];
  /** Entries of ROUTES_OFF, such as `web/check`. */
  readonly routesOff: readonly string[];
}

/** The environment's keys of the offers. */
export const offersEnvironment = {
  PRICES: list.default([]),
  ROUTES_OFF: list.default([]),
};

/** Builds the settings. */
export function assembleOffers(env: z.output<z.ZodObject<typeof offersEnvironment>>): OffersConfig {
  return { prices: env.PRICES, routesOff: env.ROUTES_OFF };
}
