import { z } from 'zod';
import { type Given, privateKey, type Read, usdc, whole } from './table.ts';

export const ledgerEnvironment = {
  LEDGER_URL: z.url({ protocol: /^postgres(ql)?$/, error: 'a postgres:// URL' }).optional(),
  LEDGER_POOL_SIZE: whole(10, 4, 1000),
  LEDGER_CONNECT_TIMEOUT_MS: whole(3000, 1, 60_000),
  LEDGER_STATEMENT_TIMEOUT_MS: whole(5000, 100, 60_000),
  LEDGER_MISMATCH_STOPS_USDC: usdc('1'),
};

/** Says what to do instead of `WORKERS`, which earlier releases had. Its default, 1, is what a service is. */
export function ledgerProblems({ WORKERS: workers = '1' }: Given): string[] {
  if (workers === '' || workers === '1') return [];
  return [
    'WORKERS is gone: a service is one process. Start several instances over one LEDGER_URL (PostgreSQL), each with ' +
      'its own PORT and DATA_DIR',
  ];
}

export function assembleLedger(env: Read<typeof ledgerEnvironment>) {
  return {
    /** postgres://…, never logged because it may hold a password. Null: a file in the data folder. */
    url: env.LEDGER_URL ?? null,
    poolSize: env.LEDGER_POOL_SIZE,
    connectTimeoutMs: env.LEDGER_CONNECT_TIMEOUT_MS,
    /** Of one statement, with its wait for locks. */
    statementTimeoutMs: env.LEDGER_STATEMENT_TIMEOUT_MS,
    /** A rail stops while the chain lacks more than this of the ledger's sum, in USDC base units. */
    mismatchStopsBeyond: env.LEDGER_MISMATCH_STOPS_USDC,
  };
}

export const selfTestEnvironment = {
  SELFTEST_PRIVATE_KEY: privateKey.optional(),
  // At least one run a day, because a day's runs are counted. A run takes up to half a minute.
  SELFTEST_INTERVAL_SECONDS: whole(3600, 30, 86_400),
  SELFTEST_PATH: z
    .string()
    .regex(/^\/v1\/paid\/[!-~]+$/, 'a path below /v1/paid/, with its query')
    .default('/v1/paid/rpc/health'),
};

/** Why the wallet cannot be used, in at most one line. */
export function selfTestProblems(given: Given): string[] {
  const { SELFTEST_PRIVATE_KEY: key, RELAYER_PRIVATE_KEY: relayer } = given;
  if (key === undefined || key.toLowerCase() !== relayer?.toLowerCase()) return [];
  return [
    'SELFTEST_PRIVATE_KEY is the relayer’s (the gas it pays would look like charges; give the self-test a wallet ' +
      'of its own)',
  ];
}

export function assembleSelfTest(env: Read<typeof selfTestEnvironment>) {
  return {
    /** Of the buying wallet; null: no self-test. */
    privateKey: (env.SELFTEST_PRIVATE_KEY as `0x${string}` | undefined) ?? null,
    intervalMs: env.SELFTEST_INTERVAL_SECONDS * 1000,
    /** The USDC route that it buys, with its query. */
    path: env.SELFTEST_PATH,
  };
}

export const facilitatorEnvironment = {
  FACILITATOR_PER_MINUTE: whole(60),
  FACILITATOR_DAILY_CAP: whole(20_000, 1),
  FACILITATOR_MAX_TIMEOUT: whole(3600, 1),
};

/** The facilitator's limits, which its descriptor publishes. */
export function assembleFacilitator(env: Read<typeof facilitatorEnvironment>) {
  return {
    /** Settle calls a minute of a client, and four times as many of an IPv6 site; 0 is off. */
    perMinute: env.FACILITATOR_PER_MINUTE,
    /** Claims a UTC day of all clients. `facilitator/limits.ts` has the parts of a client and of payees. */
    dailyCap: env.FACILITATOR_DAILY_CAP,
    /** The longest `maxTimeoutSeconds` that is settled. */
    maxTimeoutSeconds: env.FACILITATOR_MAX_TIMEOUT,
  };
}

export type FacilitatorConfig = Readonly<ReturnType<typeof assembleFacilitator>>;
