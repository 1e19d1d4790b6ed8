import { z } from 'zod';
import { usdc, whole } from './fields.ts';

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
