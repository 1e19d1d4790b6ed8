import { DatabaseError } from 'pg';
import { AppError } from '../../errors.ts';

/** What PostgreSQL and CockroachDB tell whose transaction met another's: nothing of it was done, and it may be tried again. */
const CONFLICTS = new Set(['40001', '40P01', 'CR000']);

/** A failure of the database, with the SQLSTATE that it told, or null. */
export class LedgerDatabaseError extends Error {
  readonly code: string | null;
  constructor(message: string, code: string | null) {
    super(message);
    this.name = 'LedgerDatabaseError';
    this.code = code;
  }
}

/** Whether the database undid a transaction because of another's. */
export function isConflict(error: unknown): boolean {
  return codeOf(error) !== null && CONFLICTS.has(codeOf(error) ?? '');
}

/** Whether a statement itself is at fault (bad data, a broken constraint), and not what it shared a transaction with. */
export function isOwnFault(error: unknown): boolean {
  return /^2[23]/.test(codeOf(error) ?? '');
}

/** What the network and the client tell where no server has answered. */
const NETWORK = /^(ECONN|EPIPE$|ETIMEDOUT$|EHOST|ENET|ENOTFOUND$|EAI_)/;
const CLIENT = /timeout|^Connection terminated|^Client (has encountered a connection error|was closed)/;
/** What a server tells that is away for now: connections, resources, an operator, a disk, a replica that takes no writes, a wait too long. */
const SERVER = /^(08|53|57|58|25006$|25P0[34]$|55P03$|40001$|40P01$|CR000$)/;
const RETRY_SECONDS = 5;

/** Whether nobody knows what became of a statement, because the server has not answered it. */
export function isUnanswered(error: unknown): boolean {
  if (error instanceof DatabaseError || error instanceof LedgerDatabaseError || !(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  return (typeof code === 'string' && NETWORK.test(code)) || CLIENT.test(error.message);
}

/**
 * The failure as the rest of the service hears it: 503 `ledger_unavailable` where the database is away or too slow, which whoever stored an
 * intent before must not take for "nothing was charged"; everything else stays the bug that it is. Either comes without what the database
 * repeats of the row: logs take every field of an error, and a row holds a signature.
 */
export function asLedgerError(error: unknown): Error {
  const cause = withoutRow(error);
  const isAway = isUnanswered(error) || SERVER.test(codeOf(error) ?? '');
  if (!isAway) return cause;
  const detail = 'the ledger does not answer, and nothing is sold without it; try again later';
  return new AppError(503, 'ledger_unavailable', detail, { retryAfterSeconds: RETRY_SECONDS, cause });
}

/** The failure without what the database repeats of the row. */
export function withoutRow(error: unknown): Error {
  if (error instanceof DatabaseError) return new LedgerDatabaseError(error.message, error.code ?? null);
  return error instanceof Error ? error : new Error(String(error));
}

const codeOf = (error: unknown): string | null => (error instanceof DatabaseError ? (error.code ?? null) : null);
