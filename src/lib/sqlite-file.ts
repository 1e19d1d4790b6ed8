import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';

// How a SQLite file is opened and brought to the newest version, and what is said when it fails.

export type Sqlite = Database.Database;

/** For a file, a disk or a lock that fails for now. All others are bugs. */
const CODES = /^SQLITE_(FULL|IOERR|CANTOPEN|READONLY|BUSY|LOCKED|CORRUPT|NOTADB|PROTOCOL|PERM)/;

/** The file cannot be written or read. The message names the path, for logs. */
export class DatabaseFileError extends Error {
  /** SQLite's, which names the operation, or the system's, such as `EIO`. */
  readonly code: string;
  readonly path: string;
  /** Without the path, for `/readyz`. */
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

/** Null for an error that is not of a file. */
export function asFileError(error: unknown, path: string): DatabaseFileError | null {
  if (error instanceof DatabaseFileError) return error;
  const isOfFile = error instanceof Database.SqliteError && CODES.test(error.code);
  return isOfFile ? new DatabaseFileError(path, error.code, error) : null;
}

/** Throws a failure of the file as one that names the path. */
export function openNamed<T>(path: string, open: (path: string) => T): T {
  try {
    return open(path);
  } catch (error) {
    throw asFileError(error, path) ?? error;
  }
}

export interface Migration {
  readonly version: number;
  readonly sql: string;
}

/** Numbered files, from `first` on. Throws when a number is missing or there twice. */
export function readMigrations(directory: string, first = 1): readonly Migration[] {
  const names = readdirSync(directory).filter((name) => /^\d{3}-.+\.sql$/.test(name));
  return names.sort().map((name, at) => {
    const version = first + at;
    if (Number(name.slice(0, 3)) !== version)
      throw new Error(`${name} stands where migration ${version} belongs: a number is missing, or is there twice`);
    return { version, sql: readFileSync(join(directory, name), 'utf8') };
  });
}

/** Each missing step in one transaction. Throws for a newer program's database, and an incomplete one. */
export function migrate(db: Database.Database, migrations: readonly Migration[]): void {
  const done = Number(db.pragma('user_version', { simple: true }));
  const newest = migrations.at(-1)?.version ?? 0;
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
  for (const { version, sql } of migrations) {
    if (version <= done) continue;
    db.transaction(() => {
      db.exec(sql);
      db.pragma(`user_version = ${version}`);
    }).immediate();
  }
}

/** As `table.column`. The version tells the newest step alone: a program between two merges may lack an older one. */
function lackingColumns(db: Database.Database, steps: readonly Migration[]): string[] {
  const found = columnsOf(db);
  return [...columnsMadeBy(steps.map(({ sql }) => sql))].filter((column) => !found.has(column));
}

/** By the steps' text. Playing them takes longer than all else in opening a database. */
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
