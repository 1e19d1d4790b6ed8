import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import type { Sqlite } from '../lib/sqlite-file.ts';

// A copy of a database that other processes write to. The target appears whole or not at all:
// 1. reserve a draft, which only its owner may read, because it holds signatures;
// 2. copy the pages in one transaction, so that they are of one instant;
// 3. make one file of it, check it against what the source held then, sync it, and give it its name.

/** Pages that are copied between two calls of `onProgress`: 1 MiB of SQLite's default pages. */
const PAGES_PER_STEP = 256;

/** The rows of each table. */
type Counts = Readonly<Record<string, number>>;

type Progress = (copiedPages: number, totalPages: number) => void;

/**
 * Makes the copy, and returns the number of rows of each table in it. Throws and leaves no file when the target exists,
 * the source is damaged or the disk is full. The target's directory is made.
 */
export async function backUpDatabase(source: string, target: string, onProgress?: Progress): Promise<Counts> {
  const db = new Database(source, { readonly: true, timeout: 5000 });
  const draft = `${target}.part`;
  try {
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    // Before the check for the target, so that no other process comes between that and the rename.
    closeSync(openSync(draft, 'wx', 0o600));
    try {
      if (existsSync(target)) throw new Error(`${target} exists; it is not overwritten`);
      const rows = await copy(db, draft, onProgress);
      checkCopy(draft, rows);
      flush(draft);
      renameSync(draft, target);
      flush(dirname(target));
      return rows;
    } finally {
      rmSync(draft, { force: true });
    }
  } finally {
    db.close();
  }
}

async function copy(db: Sqlite, draft: string, onProgress?: Progress): Promise<Counts> {
  // Without the transaction each commit of a writer would start the copy over, under load for ever.
  db.exec('BEGIN');
  const rows = countRows(db);
  await db.backup(draft, {
    progress: ({ totalPages, remainingPages }) => {
      onProgress?.(totalPages - remainingPages, totalPages);
      return PAGES_PER_STEP;
    },
  });
  // While the copy is checked, the source's log may begin anew.
  db.exec('COMMIT');
  return rows;
}

/** Throws unless the copy is sound and holds what the source held. */
function checkCopy(draft: string, expected: Counts): void {
  const db = new Database(draft);
  try {
    // A single file, until it is opened as a ledger again.
    db.pragma('journal_mode = DELETE');
    const faults = db.pragma('integrity_check(1)', { simple: true });
    if (faults !== 'ok') throw new Error(`the copy is damaged, and so may be its source: ${faults}`);
    if ((db.pragma('foreign_key_check') as unknown[]).length > 0)
      throw new Error('the copy has rows without their parents');
    if (JSON.stringify(countRows(db)) !== JSON.stringify(expected))
      throw new Error('the copy has other rows than its source');
  } finally {
    db.close();
  }
}

function countRows(db: Sqlite): Counts {
  const tables = db
    .prepare<[], string>(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    )
    .pluck()
    .all();
  const count = (name: string) => db.prepare<[], number>(`SELECT count(*) FROM "${name}"`).pluck().get() ?? 0;
  return Object.fromEntries(tables.map((name) => [name, count(name)]));
}

/** Syncs a file or a folder. */
export function flush(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
