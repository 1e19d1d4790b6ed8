import { z } from 'zod';
import { whole } from './fields.ts';

/** The settings of the self-test, in which the service buys from itself. */
export interface SelfTestConfig {
  /** The private key of the buying wallet; null: no self-test. */
  readonly privateKey: `0x${string}` | null;
  readonly intervalMs: number;
  /** The route that it buys: a USDC route with its query. */
  readonly path: string;
}

/** The environment's keys of the self-test. */
export const selfTestEnvironment = {
  SELFTEST_PRIVATE_KEY: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/, 'a 0x private key of 64 hex digits')
    .optional(),
  // The runs of a day are counted, so there is at least one a day. A run takes up to half a minute.
  SELFTEST_INTERVAL_SECONDS: whole(3600, 30, 86_400),
  SELFTEST_PATH: z
    .string()
    .regex(/^\/v1\/paid\/[!-~]+$/, 'a path below /v1/paid/, with its query')
    .default('/v1/paid/rpc/health'),
};

/** The reasons why the wallet cannot be used, one line each. */
export function selfTestProblems(given: Record<string, string | undefined>): string[] {
  const { SELFTEST_PRIVATE_KEY: key, RELAYER_PRIVATE_KEY: relayer } = given;
  if (key === undefined || key.toLowerCase() !== relayer?.toLowerCase()) return [];
  return [
    'SELFTEST_PRIVATE_KEY is the relayer’s (the gas it pays would look like charges; give the self-test a wallet of its own)',
  ];
}

/** Builds the self-test's settings. `selfTestProblems` has found no problem before. */
export function assembleSelfTest(env: z.output<z.ZodObject<typeof selfTestEnvironment>>): SelfTestConfig {
  return {
    privateKey: (env.SELFTEST_PRIVATE_KEY as `0x${string}` | undefined) ?? null,
    intervalMs: env.SELFTEST_INTERVAL_SECONDS * 1000,
    path: env.SELFTEST_PATH,
  };
}
