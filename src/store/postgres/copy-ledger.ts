import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Client } from 'pg';
import { readMigrations, type Sqlite } from '../../lib/sqlite-file.ts';
import { checkTallies, createTally, type SourceValue, type Tally, tallyTarget } from './copy-check.ts';
import { COPY_TABLES, type CopyColumn, type CopyTable, readColumns } from './copy-columns.ts';
import { asLedgerError } from './errors.ts';
import { ledgerPlace } from './ledger-place.ts';
import { countLivingInstances } from './living-instances.ts';
import { migrate } from './migrate.ts';

const SQLITE_MIGRATIONS = join(import.meta.dirname, '../sqlite/migrations');
/** The most rows and bytes in one statement. No reply is nearly as large, and neither side holds much in memory. */
const CHUNK_ROWS = 1000;
const CHUNK_BYTES = 4 * 1024 * 1024;
/** A service that writes to the target holds a queue's turn for milliseconds only. */
const LOCK_TIMEOUT_MS = 5000;

interface CopyOptions {
  /** A ledger in a file. The caller makes sure that no process writes to it. */
  readonly source: string;
  readonly url: string;
  readonly connectTimeoutMs: number;
  readonly nowMs: number;
  readonly onProgress?: (table: string, copied: number, total: number) => void;
}

/** The rows that are in the target now. */
export interface CopiedTable {
  readonly table: string;
  readonly state: string | null;
  readonly rows: number;
  /** The sum of the table's money or counts; null when it has none. */
  readonly sum: bigint | null;
}

/**
 * Copies a ledger from a file into an empty one on PostgreSQL, which it migrates first. Returns the counts, which are equal in both.
 * It is one transaction that holds every queue's turn. So the target has everything or nothing, and no service sells over half a ledger.
 * Rejects, with nothing changed but the schema, when the source is damaged or of another version, or when the target has rows or a running service.
 */
export async function copyLedger(options: CopyOptions): Promise<readonly CopiedTable[]> {
  const { url, connectTimeoutMs, nowMs } = options;
  const source = new Database(options.source, { readonly: true, fileMustExist: true, timeout: 5000 });
  const client = new Client({ connectionString: url, connectionTimeoutMillis: connectTimeoutMs, keepAlive: true });
  // A broken connection also rejects its statement, so the event needs no handling.
  client.on('error', () => {});
  try {
    source.exec('BEGIN');
    checkSource(source, options.source);
    await migrate({ url, connectTimeoutMs, name: `the ledger ${ledgerPlace(url)}`, nowMs });
    await client.connect();
    await begin(client);
    await checkTarget(client, ledgerPlace(url));
    const copied: CopiedTable[] = [];
    for (const table of COPY_TABLES) copied.push(...(await copyTable(source, client, table, options.onProgress)));
    await refuseLiving(client, ledgerPlace(url));
    await finish(client, ledgerPlace(url));
    return copied;
  } catch (error) {
    throw asLedgerError(error);
  } finally {
    // The server rolls back an uncommitted transaction.
    await client.end().catch(() => {});
    source.close();
  }
}

function checkSource(source: Sqlite, file: string): void {
  const [version, newest] = [
    Number(source.pragma('user_version', { simple: true })),
    readMigrations(SQLITE_MIGRATIONS).newest,
  ];
  if (version > newest)
    throw new Error(`${file} is of version ${version}; this program knows ${newest}: use the newer program`);
  if (version < newest)
    throw new Error(
      `${file} is of version ${version}, this program of ${newest}: start and stop this service on it once`,
    );
  const faults = source.pragma('quick_check(1)', { simple: true });
  if (faults !== 'ok') throw new Error(`${file} is damaged: ${faults}`);
  const tables = source
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .pluck()
    .all();
  const unknown = tables.filter((name) => !COPY_TABLES.some((table) => table.name === name));
  if (unknown.length > 0) throw new Error(`${file} has tables that are not copied: ${unknown.join(', ')}`);
}

async function begin(client: Client): Promise<void> {
  await client.query('SET synchronous_commit = on');
  // Copying a large table may take long, and the server gets nothing while SQLite is read. So there are no time-outs.
  for (const limit of ['statement_timeout', 'idle_in_transaction_session_timeout'])
    await client.query(`SET ${limit} = 0`);
  await client.query(`SET lock_timeout = ${LOCK_TIMEOUT_MS}`);
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  await client.query('SELECT name FROM ledger_turns ORDER BY name FOR UPDATE');
}

async function checkTarget(client: Client, place: string): Promise<void> {
  await refuseLiving(client, place);
  for (const { name, own } of COPY_TABLES) {
    const { rowCount } = await client.query(`SELECT 1 FROM ${name} ${own === undefined ? '' : `WHERE ${own}`} LIMIT 1`);
    if (rowCount !== 0)
      throw new Error(`${place} is not empty (${name} has rows): a ledger is copied into an empty database`);
  }
}

async function refuseLiving(client: Client, place: string): Promise<void> {
  const living = await countLivingInstances(client);
  if (living > 0)
    throw new Error(`a service is running over ${place}: stop it first (one that was killed is forgotten in 15 s)`);
}

async function copyTable(
  source: Sqlite,
  client: Client,
  table: CopyTable,
  onProgress: CopyOptions['onProgress'],
): Promise<CopiedTable[]> {
  const columns = await readColumns(source, client, table.name);
  if (table.own !== undefined) await client.query(`DELETE FROM ${table.name}`);
  const total = source.prepare<[], number>(`SELECT count(*) FROM ${table.name}`).pluck().get() ?? 0;
  const tally = createTally(columns, table);
  const insert = insertInto(table.name, columns);
  let copied = 0;
  for (const chunk of chunksOf(source, table.name, columns)) {
    for (const row of chunk) tally.add(row);
    await client.query(
      insert,
      columns.map((column, at) => chunk.map((row) => valueFor(column, row[at] ?? null))),
    );
    copied += chunk.length;
    onProgress?.(table.name, copied, total);
  }
  const wanted = tally.read();
  if (copied !== total) throw new Error(`${table.name} gave ${copied} rows instead of ${total}`);
  checkTallies(table.name, columns, wanted, await tallyTarget(client, columns, table));
  return copiedTables(table, columns, wanted);
}

function copiedTables(table: CopyTable, columns: readonly CopyColumn[], tallies: readonly Tally[]): CopiedTable[] {
  const at = columns.findIndex(({ name }) => name === table.amount);
  const groups = tallies.map(({ state, rows, sums }) => ({ table: table.name, state, rows, sum: sums[at] ?? null }));
  return groups.length > 0 ? groups : [{ table: table.name, state: null, rows: 0, sum: at < 0 ? null : 0n }];
}

function insertInto(table: string, columns: readonly CopyColumn[]): string {
  const names = columns.map(({ name }) => name).join(', ');
  const arrays = columns.map(({ type }, at) => `unnest($${at + 1}::${type}[])`).join(', ');
  return `INSERT INTO ${table} (${names}) SELECT * FROM ROWS FROM (${arrays}) AS copied (${names})`;
}

function* chunksOf(source: Sqlite, table: string, columns: readonly CopyColumn[]): Generator<SourceValue[][]> {
  const sql = `SELECT ${columns.map((column) => column.source).join(', ')} FROM ${table}`;
  let chunk: SourceValue[][] = [];
  let bytes = 0;
  for (const row of source.prepare<[], SourceValue[]>(sql).raw().safeIntegers().iterate()) {
    chunk.push(row);
    for (const value of row) bytes += value instanceof Uint8Array || typeof value === 'string' ? value.length : 8;
    if (chunk.length < CHUNK_ROWS && bytes < CHUNK_BYTES) continue;
    yield chunk;
    chunk = [];
    bytes = 0;
  }
  if (chunk.length > 0) yield chunk;
}

function valueFor({ type }: CopyColumn, value: SourceValue): SourceValue | boolean {
  if (value === null) return null;
  if (type === 'boolean') return value === 1n;
  return typeof value === 'bigint' ? String(value) : value;
}

async function finish(client: Client, place: string): Promise<void> {
  try {
    const { command } = await client.query('COMMIT');
    if (command !== 'COMMIT') throw new Error('the transaction was undone');
  } catch (cause) {
    const advice = 'if it has rows now, it has all of them, else it is empty and the copy can be made again';
    throw new Error(`${place} did not confirm the copy: ${advice}`, { cause });
  }
}
