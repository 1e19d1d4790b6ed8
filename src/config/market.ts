import type { z } from 'zod';
import { whole } from './fields.ts';

/** The settings of the market of other sellers' routes. */
export interface MarketConfig {
  /** The time between two calls to one listing. */
  readonly probeIntervalMs: number;
  /** Submissions an hour of one client; 0 is off. */
  readonly submitsPerHour: number;
  readonly maxListings: number;
  /** Listings of one host, counted with all hosts of the same registered domain. */
  readonly maxPerHost: number;
  /** Time-out of one call to a seller. */
  readonly timeoutMs: number;
}

/** The environment's keys of these settings. */
export const marketEnvironment = {
  MARKET_PROBE_INTERVAL_SECONDS: whole(3600, 60, 86_400),
  MARKET_SUBMITS_PER_HOUR: whole(20),
  MARKET_MAX_LISTINGS: whole(1000, 1, 10_000),
  MARKET_MAX_PER_HOST: whole(30, 1, 10_000),
  MARKET_TIMEOUT_MS: whole(8000, 100, 60_000),
};

/** Builds the settings. */
export function assembleMarket(env: z.output<z.ZodObject<typeof marketEnvironment>>): MarketConfig {
  return {
    probeIntervalMs: env.MARKET_PROBE_INTERVAL_SECONDS * 1000,
    submitsPerHour: env.MARKET_SUBMITS_PER_HOUR,
    maxListings: env.MARKET_MAX_LISTINGS,
    maxPerHost: env.MARKET_MAX_PER_HOST,
    timeoutMs: env.MARKET_TIMEOUT_MS,
  };
}
