import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { whole } from './fields.ts';

/** How the collector reads the chain. */
export interface CollectorConfig {
  /** When false, nothing is collected: routes read the chain live or return null. */
  readonly enabled: boolean;
  readonly requestsPerSecond: number;
  readonly pollIntervalMs: number;
  readonly backfillHours: number;
  readonly retentionDays: number;
  /** Websocket endpoints that announce new blocks. May be empty. */
  readonly wsUrls: readonly string[];
  /** The hash of block 0. When set, a provider with another one is excluded from the first request on. */
  readonly genesisHash: `0x${string}` | null;
  /** A copy of another service's chain database, which replaces our own database. The file may be replaced by newer copies. */
  readonly copyFile: string | null;
}

/** The environment keys of these settings. */
export const collectorEnvironment = {
  COLLECTOR: z.enum(['on', 'off'], 'on or off').default('on'),
  COLLECTOR_REQUESTS_PER_SECOND: z
    .string()
    .regex(/^\d{1,4}(\.\d{1,3})?$/, 'a number of requests a second')
    .transform(Number)
    .refine((value) => value >= 0.1, 'at least 0.1')
    // Arc's public endpoint accepts about 2 a second, and the rest of the service reads the chain too.
    .default(1.5),
  COLLECTOR_POLL_MS: whole(1000, 50, 60_000),
  COLLECTOR_BACKFILL_HOURS: whole(24, 1, 24 * 30),
  COLLECTOR_RETENTION_DAYS: whole(3, 2, 90),
  WS_URLS: z
    .string()
    .transform((text) => text.split(',').flatMap((part) => part.trim() || []))
    .pipe(z.array(z.url({ protocol: /^wss?$/, error: 'a ws or wss URL' })))
    .default([]),
  GENESIS_HASH: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/, 'a block hash of 64 hex digits')
    .optional(),
  CHAIN_DB_URL: z
    .string()
    .transform((text, context) => {
      try {
        if (!/^[a-z][a-z0-9+.-]*:/i.test(text)) return text;
        return fileURLToPath(text);
      } catch {
        context.addIssue({ code: 'custom', message: 'a path, or a file:// URL of this machine' });
        return z.NEVER;
      }
    })
    .optional(),
};

type CollectorEnvironment = z.output<z.ZodObject<typeof collectorEnvironment>>;

/** Conflicting settings, one line each. */
export function collectorProblems(given: Record<string, string | undefined>): string[] {
  return given.CHAIN_DB_URL !== undefined && given.COLLECTOR !== 'off'
    ? ['CHAIN_DB_URL is set without COLLECTOR=off (a copy is only read; collecting needs a database of its own)']
    : [];
}

export function assembleCollector(env: CollectorEnvironment): CollectorConfig {
  return {
    enabled: env.COLLECTOR === 'on',
    requestsPerSecond: env.COLLECTOR_REQUESTS_PER_SECOND,
    pollIntervalMs: env.COLLECTOR_POLL_MS,
    backfillHours: env.COLLECTOR_BACKFILL_HOURS,
    retentionDays: env.COLLECTOR_RETENTION_DAYS,
    wsUrls: env.WS_URLS,
    genesisHash: (env.GENESIS_HASH?.toLowerCase() as `0x${string}` | undefined) ?? null,
    copyFile: env.CHAIN_DB_URL ?? null,
  };
}
