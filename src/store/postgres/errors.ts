import { DatabaseError } from 'pg';

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

/** The failure without what the database repeats of the row: logs take every field of an error, and a row holds a signature. */
export function withoutRow(error: unknown): Error {
  if (error instanceof DatabaseError) return new LedgerDatabaseError(error.message, error.code ?? null);
  return error instanceof Error ? error : new Error(String(error));
}

const codeOf = (error: unknown): string | null => (error instanceof DatabaseError ? (error.code ?? null) : null);
