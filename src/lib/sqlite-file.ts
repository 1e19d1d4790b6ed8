import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';

// How a SQLite database's file is opened and brought to the newest version, and what is said when the file fails.

export type Sqlite = Database.Database;

/** SQLite's codes for a file, a disk or a lock that fails for now. All others are bugs. */
const CODES = /^SQLITE_(FULL|IOERR|CANTOPEN|READONLY|BUSY|LOCKED|CORRUPT|NOTADB|PROTOCOL|PERM)/;

/** A database file that cannot be written or read. The message names the path, for logs. */
export class DatabaseFileError extends Error {
  /** SQLite's code, which names the operation, or the system's, such as `EIO`. */
  readonly code: string;
  readonly path: string;
  /** What is wrong, without the path, for `/readyz`. */
  readonly reason: string;
  constructor(path: string, code: string, cause: Error) {
    const reason = cause.message.includes(code) ? cause.message : `${cause.message} (${code})`;
    super(`${path}: ${reason}`, { cause });
    this.name = new.target.name;
    this.code = code;
    this.path = path;
    this.reason = reason;
  }
}

/** The failure of a file as one that names its path. Null for any other error. */
export function asFileError(error: unknown, path: string): DatabaseFileError | null {
  if (error instanceof DatabaseFileError) return error;
  const isOfFile = error instanceof Database.SqliteError && CODES.test(error.code);
  return isOfFile ? new DatabaseFileError(path, error.code, error) : null;
}

/** Opens a database. Throws a failure of its file as one that names the path. */
export function openNamed<T>(path: string, open: (path: string) => T): T {
  try {
    return open(path);
  } catch (error) {
    throw asFileError(error, path) ?? error;
  }
}

/** The numbered files of a directory, oldest first, and the number of the last, which is the newest version. */
export function readMigrations(directory: string) {
  const names = readdirSync(directory).filter((name) => /^\d{3}-.+\.sql$/.test(name));
  const migrations = names.sort().map((name) => ({ version: Number(name.slice(0, 3)), path: join(directory, name) }));
  return { migrations, newest: migrations.at(-1)?.version ?? 0 };
}

/**
 * Applies the numbered files that this database lacks, each in one transaction. Throws for a database of a newer
 * program, whose rows may mean something else, and for one that lacks a part of its own version, because no step would
 * add it.
 */
export function migrate(db: Database.Database, directory: string): void {
  const done = Number(db.pragma('user_version', { simple: true }));
  const { migrations, newest } = readMigrations(directory);
  if (done > newest)
    throw new Error(`${db.name} is of version ${done}; this program knows ${newest}: start the newer program`);
  if (done > 0) {
    const steps = migrations.filter(({ version }) => version <= done);
    const [lacking] = lackingColumns(db, steps);
    if (lacking !== undefined)
      throw new Error(
        `${db.name} is of version ${done}, but lacks ${lacking}: a commit between two versions made it. ` +
          'docs/operating.md (Upgrading) says what to do',
      );
  }
  for (const { version, path } of migrations) {
    if (version <= done) continue;
    const sql = readFileSync(path, 'utf8');
    db.transaction(() => {
      db.exec(sql);
      db.pragma(`user_version = ${version}`);
    }).immediate();
  }
}

/**
 * The columns, as `table.column`, that these steps make and the database lacks. The version counts the newest step
 * alone: a program from between two merges could write it without an older step.
 */
function lackingColumns(db: Database.Database, steps: readonly { readonly path: string }[]): string[] {
  const found = columnsOf(db);
  return [...columnsMadeBy(steps.map(({ path }) => readFileSync(path, 'utf8')))].filter((column) => !found.has(column));
}

/** What steps make, by their text. Playing them takes longer than all else in opening a database. */
const madeBy = new Map<string, ReadonlySet<string>>();

function columnsMadeBy(steps: readonly string[]): ReadonlySet<string> {
  const text = steps.join('\n');
  const known = madeBy.get(text);
  if (known) return known;
  const fresh = new Database(':memory:');
  try {
    for (const step of steps) fresh.exec(step);
    const made = columnsOf(fresh);
    madeBy.set(text, made);
    return made;
  } finally {
    fresh.close();
  }
}

function columnsOf(db: Database.Database): Set<string> {
  const columns =
    "SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'";
  return new Set(db.prepare<[], string>(columns).pluck().all());
}
