import Database from 'better-sqlite3';
import { AppError } from '../../errors.ts';
import { asFileError } from '../../lib/sqlite-file.ts';

const RETRY_SECONDS = 5;

/** Whether the write itself caused the error. Any other error of the database (full, locked, unreadable) concerns the whole transaction. */
export function isOwnFault(error: unknown): boolean {
  return !(error instanceof Database.SqliteError) || error.code.startsWith('SQLITE_CONSTRAINT');
}

/**
 * The failure of a write as the rest of the service gets it: 503 `ledger_unavailable` when the file cannot be written now, as PostgreSQL's stores say it.
 * The write may have been made all the same, so a caller must not conclude that nothing was charged. Any other error is a bug and stays as it is.
 */
export function asLedgerError(error: unknown, path: string): Error {
  const cause = asFileError(error, path);
  if (!cause) return error instanceof Error ? error : new Error(String(error));
  const detail = 'the ledger cannot be written now; try again later';
  return new AppError(503, 'ledger_unavailable', detail, { retryAfterSeconds: RETRY_SECONDS, cause });
}
