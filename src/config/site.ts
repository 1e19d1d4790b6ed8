import { z } from 'zod';
import { httpUrl } from './fields.ts';

/** What the pages for people link to, and the buyer of a demo. */
export interface SiteConfig {
  /** Where the source code is; null: no link. */
  readonly sourceUrl: string | null;
  /** The operator's terms; null: the service's own page. */
  readonly termsUrl: string | null;
  /** The key of a buyer of play money, for whom the pages may pay; null: there is none. */
  readonly demoBuyerKey: `0x${string}` | null;
}

/** The environment's keys of the pages. */
export const siteEnvironment = {
  SOURCE_URL: httpUrl.optional(),
  TERMS_URL: httpUrl.optional(),
  DEMO_BUYER_PRIVATE_KEY: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/, 'a 0x private key of 64 hex digits')
    .optional(),
};

/** Faults of the settings as they were given. A key that pages pay with must never be one of money. */
export function siteProblems(given: Readonly<Record<string, string | undefined>>): string[] {
  if (given.DEMO_BUYER_PRIVATE_KEY === undefined) return [];
  const isDemo = given.NETWORK === 'custom' && given.PLAY_MONEY === 'on' && given.NODE_ENV !== 'production';
  return isDemo
    ? []
    : ['DEMO_BUYER_PRIVATE_KEY is for play money alone (it needs NETWORK=custom and PLAY_MONEY=on, not in production)'];
}

/** Builds the settings. */
export function assembleSite(env: z.output<z.ZodObject<typeof siteEnvironment>>): SiteConfig {
  return {
    sourceUrl: env.SOURCE_URL ?? null,
    termsUrl: env.TERMS_URL ?? null,
    demoBuyerKey: (env.DEMO_BUYER_PRIVATE_KEY as `0x${string}` | undefined) ?? null,
  };
}
