import { z } from 'zod';
import { whole } from './fields.ts';

/** How the service buys its own endpoint, to see that buying works. */
export interface SelfTestConfig {
  /** Of the wallet that buys; null: nothing is bought. */
  readonly privateKey: `0x${string}` | null;
  readonly intervalMs: number;
  /** What it buys: a USDC route, with its query. */
  readonly path: string;
}

/** The environment's keys of the self-test. */
export const selfTestEnvironment = {
  SELFTEST_PRIVATE_KEY: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/, 'a 0x private key of 64 hex digits')
    .optional(),
  // Runs of a day are counted, so there is at least one; and one takes up to half a minute.
  SELFTEST_INTERVAL_SECONDS: whole(3600, 30, 86_400),
  SELFTEST_PATH: z
    .string()
    .regex(/^\/v1\/paid\/[!-~]+$/, 'a path below /v1/paid/, with its query')
    .default('/v1/paid/rpc/health'),
};

/** Why the wallet cannot be used, a line each. */
export function selfTestProblems(given: Record<string, string | undefined>): string[] {
  const { SELFTEST_PRIVATE_KEY: key, RELAYER_PRIVATE_KEY: relayer } = given;
  if (key === undefined || key.toLowerCase() !== relayer?.toLowerCase()) return [];
  return [
    'SELFTEST_PRIVATE_KEY is the relayer’s (the gas it pays would look like charges; give the self-test a wallet of its own)',
  ];
}

/** The self-test as the environment names it; its problems were told before. */
export function assembleSelfTest(env: z.output<z.ZodObject<typeof selfTestEnvironment>>): SelfTestConfig {
  return {
    privateKey: (env.SELFTEST_PRIVATE_KEY as `0x${string}` | undefined) ?? null,
    intervalMs: env.SELFTEST_INTERVAL_SECONDS * 1000,
    path: env.SELFTEST_PATH,
  };
}
