import { isIP } from 'node:net';
import { z } from 'zod';
import { whole } from './fields.ts';

/** Settings for fetching and reading third parties' pages, and for the User-Agent of outgoing requests. */
export interface WebConfig {
  /** The contact in the User-Agent, for the operators of the servers that we ask; null: the public origin. */
  readonly contactUrl: string | null;
  /** Time-out of fetching one page, all redirects included. */
  readonly timeoutMs: number;
  /** Requests a minute to one host, for all payers together; 0 is off. */
  readonly hostPerMinute: number;
  /** Threads that read pages. */
  readonly pageWorkers: number;
  /** Host names with an address and a port that replace DNS. Empty in production. */
  readonly testHosts: ReadonlyMap<string, { readonly address: string; readonly port: number }>;
}

const FORM = 'comma-separated name=address:port, each name with a dot in it';

const testHosts = z
  .string()
  .default('')
  .transform((text, context) => {
    const hosts = new Map<string, { address: string; port: number }>();
    for (const entry of text.split(',').filter((part) => part.trim() !== '')) {
      const [, name, address, port] = /^([a-z0-9.-]+\.[a-z0-9-]+)=([\d.]+):(\d{1,5})$/.exec(entry.trim()) ?? [];
      if (name === undefined || address === undefined || isIP(address) === 0) {
        context.addIssue({ code: 'custom', message: FORM });
        return z.NEVER;
      }
      hosts.set(name, { address, port: Number(port) });
    }
    return hosts;
  });

/** The environment's keys of these settings. */
export const webEnvironment = {
  CONTACT_URL: z.url({ protocol: /^(https?|mailto)$/, error: 'an http, https or mailto URL' }).optional(),
  // The endpoint's own time-out is 15 s.
  WEB_TIMEOUT_MS: whole(12_000, 100, 60_000),
  WEB_HOST_PER_MINUTE: whole(60, 0, 100_000),
  WEB_PAGE_WORKERS: whole(1, 1, 16),
  ALLOW_TEST_HOSTS: testHosts,
};

/** Builds the settings. */
export function assembleWeb(env: z.output<z.ZodObject<typeof webEnvironment>>): WebConfig {
  return {
    contactUrl: env.CONTACT_URL ?? null,
    timeoutMs: env.WEB_TIMEOUT_MS,
    hostPerMinute: env.WEB_HOST_PER_MINUTE,
    pageWorkers: env.WEB_PAGE_WORKERS,
    testHosts: env.ALLOW_TEST_HOSTS,
  };
}
