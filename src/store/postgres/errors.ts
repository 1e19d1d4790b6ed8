import { DatabaseError } from 'pg';
import { AppError } from '../../errors.ts';

/** SQLSTATEs of PostgreSQL and CockroachDB for a conflict of transactions. Nothing of the transaction was done, and it may be tried again. */
const CONFLICTS = new Set(['40001', '40P01', 'CR000']);

/** A failure of the database, with its SQLSTATE or null. */
export class LedgerDatabaseError extends Error {
  readonly code: string | null;
  constructor(message: string, code: string | null) {
    super(message);
    this.name = 'LedgerDatabaseError';
    this.code = code;
  }
}

/** Whether the database rolled back a transaction because of another one. */
export function isConflict(error: unknown): boolean {
  return codeOf(error) !== null && CONFLICTS.has(codeOf(error) ?? '');
}

/** Whether the statement itself caused the error (bad data, a violated constraint). */
export function isOwnFault(error: unknown): boolean {
  return /^2[23]/.test(codeOf(error) ?? '');
}

/** Error codes of the network and the client when no server has answered. */
const NETWORK = /^(ECONN|EPIPE$|ETIMEDOUT$|EHOST|ENET|ENOTFOUND$|EAI_)/;
const CLIENT = /timeout|^Connection terminated|^Client (has encountered a connection error|was closed)/;
/** SQLSTATEs of a server that is unavailable for now: connections, resources, an operator, a disk, a read-only replica, a wait that took too long. */
const SERVER = /^(08|53|57|58|25006$|25P0[34]$|55P03$|40001$|40P01$|CR000$)/;
const RETRY_SECONDS = 5;

/** Whether the outcome of a statement is unknown, because the server has not answered it. */
export function isUnanswered(error: unknown): boolean {
  if (error instanceof DatabaseError || error instanceof LedgerDatabaseError || !(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  return (typeof code === 'string' && NETWORK.test(code)) || CLIENT.test(error.message);
}

/**
 * The failure as the rest of the service gets it. It is 503 `ledger_unavailable` when the database is away or too slow; the write may have been made
 * all the same, so a caller must not conclude that nothing was charged. Any other error is a bug and stays as it is. Neither contains the row that the
 * database repeats: logs write every field of an error, and a row holds a signature.
 */
export function asLedgerError(error: unknown): Error {
  const cause = withoutRow(error);
  const isAway = isUnanswered(error) || SERVER.test(codeOf(error) ?? '');
  if (!isAway) return cause;
  const detail = 'the ledger does not answer; try again later';
  return new AppError(503, 'ledger_unavailable', detail, { retryAfterSeconds: RETRY_SECONDS, cause });
}

/** The failure without the row that the database repeats in it. */
export function withoutRow(error: unknown): Error {
  if (error instanceof DatabaseError) return new LedgerDatabaseError(error.message, error.code ?? null);
  return error instanceof Error ? error : new Error(String(error));
}

const codeOf = (error: unknown): string | null => (error instanceof DatabaseError ? (error.code ?? null) : null);
