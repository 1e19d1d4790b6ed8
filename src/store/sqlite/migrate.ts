import { readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { readMigrations } from '../schema-version.ts';

/**
 * Applies the numbered files of a directory that this database lacks, each in one transaction.
 * Throws for a database of a newer program, because its rows may have a meaning that this program does not know, and for one that lacks a part of its
 * own version, because no step would ever add it.
 */
export function migrate(db: Database.Database, directory: string): void {
  const done = Number(db.pragma('user_version', { simple: true }));
  const { migrations, newest } = readMigrations(directory);
  if (done > newest)
    throw new Error(`${db.name} is of version ${done}; this program knows ${newest}: start the newer program`);
  if (done > 0) {
    const [lacking] = lackingColumns(
      db,
      migrations.filter(({ version }) => version <= done),
    );
    if (lacking !== undefined)
      throw new Error(
        `${db.name} is of version ${done}, but lacks ${lacking}: a commit between two versions made it. docs/operating.md (Upgrading) says what to do`,
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
 * The columns, as `table.column`, that these steps make and the database does not have. The version alone counts the newest step. A program from between
 * two merges could write it without an older step.
 */
function lackingColumns(db: Database.Database, steps: readonly { readonly path: string }[]): string[] {
  const found = columnsOf(db);
  return [...columnsMadeBy(steps.map(({ path }) => readFileSync(path, 'utf8')))].filter((column) => !found.has(column));
}

/** What steps make, by their text. Playing them takes longer than anything else that opening a database does. */
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
