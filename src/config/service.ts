import { z } from 'zod';
import { usdc, whole } from './table.ts';

/** The place of the ledger, and the limits of its database's connections. */
export interface LedgerConfig {
  /** postgres://…, never logged because it may hold a password. Null: a file in the data directory. */
  readonly url: string | null;
  /** Connections of one instance. */
  readonly poolSize: number;
  readonly connectTimeoutMs: number;
  /** Time-out of one statement, its wait for locks included. */
  readonly statementTimeoutMs: number;
  /** A rail is stopped while the chain lacks more than this of what the ledger has on it, in USDC base units. */
  readonly mismatchStopsBeyond: bigint;
}

/** The environment's keys of the ledger. */
export const ledgerEnvironment = {
  LEDGER_URL: z.url({ protocol: /^postgres(ql)?$/, error: 'a postgres:// URL' }).optional(),
  LEDGER_POOL_SIZE: whole(10, 4, 1000),
  LEDGER_CONNECT_TIMEOUT_MS: whole(3000, 1, 60_000),
  LEDGER_STATEMENT_TIMEOUT_MS: whole(5000, 100, 60_000),
  LEDGER_MISMATCH_STOPS_USDC: usdc('1'),
};

/** Says what to do instead of `WORKERS`, which earlier releases had. 1 was its default, and is what a service is. */
export function ledgerProblems({ WORKERS: workers = '1' }: Record<string, string | undefined>): string[] {
  if (workers === '' || workers === '1') return [];
  return [
    'WORKERS is gone: a service is one process. Start several instances over one LEDGER_URL (PostgreSQL), each with its own PORT and DATA_DIR',
  ];
}

/** Builds the ledger's settings. */
export function assembleLedger(env: z.output<z.ZodObject<typeof ledgerEnvironment>>): LedgerConfig {
  return {
    url: env.LEDGER_URL ?? null,
    poolSize: env.LEDGER_POOL_SIZE,
    connectTimeoutMs: env.LEDGER_CONNECT_TIMEOUT_MS,
    statementTimeoutMs: env.LEDGER_STATEMENT_TIMEOUT_MS,
    mismatchStopsBeyond: env.LEDGER_MISMATCH_STOPS_USDC,
  };
}

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
