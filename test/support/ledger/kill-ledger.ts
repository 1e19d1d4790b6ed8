import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';

/** A payment as a ledger has it; `nonce` and `transaction` in hex. */
export interface LedgerRow {
  readonly nonce: string;
  readonly state: 'reserved' | 'settling' | 'unknown' | 'settled' | 'failed';
  readonly transaction: string | null;
  /** The reply that is kept for it. */
  readonly reply: string | null;
}

const ROWS = `
  SELECT '0x' || lower(hex(nonce)) AS nonce, state, '0x' || lower(nullif(hex(transaction_hash), '')) AS "transaction",
         CAST(body AS TEXT) AS reply
    FROM usdc_payments LEFT JOIN usdc_replies ON payment_id = id`;

/** One value out of the ledger of a running service. */
export function ask<T>(file: string, sql: string): T {
  const db = new Database(file, { readonly: true });
  try {
    return db.prepare(sql).pluck().get() as T;
  } finally {
    db.close();
  }
}

/** Rows out of the ledger of a running service. */
export function rowsOf<T>(file: string, sql: string): T[] {
  const db = new Database(file, { readonly: true });
  try {
    return db.prepare(sql).all() as T[];
  } finally {
    db.close();
  }
}

/** The rows that a dead service has left, by nonce. */
export function rowsLeft(file: string): ReadonlyMap<string, LedgerRow> {
  return new Map(left<LedgerRow>(file, ROWS).map((row) => [row.nonce, row]));
}

/**
 * What a query finds in the files that a dead service has left. It reads a copy, because opening the real files would recover them, and the service
 * itself must do that.
 */
export function left<T>(file: string, sql: string): T[] {
  const folder = mkdtempSync(join(tmpdir(), 'percall-left-'));
  try {
    const copy = join(folder, 'ledger.db');
    for (const end of ['', '-wal']) if (existsSync(file + end)) copyFileSync(file + end, copy + end);
    const db = new Database(copy);
    const rows = db.prepare(sql).all() as T[];
    db.close();
    return rows;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Polls the ledger of a running service in a busy loop until a count rises. Returns true once it has risen.
 * A timer between two reads would miss a state that lasts less than a millisecond.
 */
export function watchRise(file: string, countSql: string, longestMs: number): boolean {
  const db = new Database(file, { readonly: true });
  try {
    const count = db.prepare(countSql).pluck();
    const before = count.get() as number;
    const end = performance.now() + longestMs;
    while (performance.now() < end) if ((count.get() as number) > before) return true;
    return false;
  } finally {
    db.close();
  }
}
