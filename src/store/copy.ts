import Database from 'better-sqlite3';
import type { Client, ClientBase } from 'pg';
import type { Sqlite } from '../lib/sqlite-file.ts';
import { ledgerPlace, withOwnClient } from './db/connections.ts';
import { countLivingInstances, migratePostgres, newestVersion } from './db/migrate.ts';

// Copies a ledger from a file into an empty database on PostgreSQL:
// 1. check the source, and migrate the target;
// 2. begin one transaction that holds every turn, and check that the target is empty and serves nobody;
// 3. copy each table in chunks, and compare counts and sums of every column;
// 4. commit: the target has everything or nothing, and no service sells over half a ledger.

/** Of one statement. No reply is nearly as large, and neither side holds much in memory. */
const CHUNK_ROWS = 1000;
const CHUNK_BYTES = 4 * 1024 * 1024;
/** A service that writes to the target holds a queue's turn for milliseconds only. */
const LOCK_TIMEOUT_MS = 5000;

/** A value as SQLite gives it, whole numbers as bigint. */
type SourceValue = string | bigint | number | Uint8Array | null;

const TYPES = ['text', 'bytea', 'bigint', 'integer', 'numeric', 'boolean'] as const;
/** Of a column on PostgreSQL. Each has its own form as an array and in a sum. */
type ColumnType = (typeof TYPES)[number];

interface CopyTable {
  readonly name: string;
  /** That the one row of the migrations was changed, in SQL. */
  readonly own?: string;
  readonly hasStates?: true;
  /** The column whose sum is reported: money, or a count. */
  readonly amount?: string;
}

/** Every table of a ledger, parents before their children. */
export const COPY_TABLES: readonly CopyTable[] = [
  { name: 'usdc_payments', hasStates: true, amount: 'amount' },
  { name: 'usdc_replies' },
  { name: 'channels', amount: 'charged' },
  { name: 'channel_operations', hasStates: true, amount: 'amount' },
  { name: 'gateway_transfers' },
  { name: 'lightning_invoices', amount: 'amount_msat' },
  { name: 'lightning_kept_replies' },
  { name: 'lightning_claims', hasStates: true, amount: 'amount_msat' },
  { name: 'lightning_answers' },
  { name: 'lightning_facilitator_totals', own: 'claims <> 0 OR nodes <> 0', amount: 'claims' },
  { name: 'lightning_facilitator_nodes', amount: 'claims' },
  { name: 'lightning_facilitator_days', amount: 'claims' },
  { name: 'lightning_facilitator_clients', amount: 'claims' },
  { name: 'lightning_facilitator_payees', amount: 'claims' },
  { name: 'self_tests' },
  { name: 'relayer_spending', amount: 'wei' },
  { name: 'catalogue_copy' },
  { name: 'market_listings' },
  { name: 'market_calls' },
  { name: 'market_state', own: 'revision <> 0' },
  { name: 'service_keys' },
  { name: 'provider_notes' },
  { name: 'book_entries', amount: 'amount' },
  { name: 'refused_calls', amount: 'count' },
];

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
 * Returns the counts, which are equal in both. Rejects, with nothing changed but the schema, when the source is damaged
 * or of another version, or when the target has rows or a running service.
 */
export async function copyLedger(options: CopyOptions): Promise<readonly CopiedTable[]> {
  const { url, connectTimeoutMs, nowMs } = options;
  const place = ledgerPlace(url);
  const source = new Database(options.source, { readonly: true, fileMustExist: true, timeout: 5000 });
  try {
    source.exec('BEGIN');
    checkSource(source, options.source);
    return await withOwnClient(url, connectTimeoutMs, async (client) => {
      await migratePostgres(client, `the ledger ${place}`, nowMs);
      await begin(client);
      await checkTarget(client, place);
      const copied: CopiedTable[] = [];
      for (const table of COPY_TABLES) copied.push(...(await copyTable(source, client, table, options.onProgress)));
      await refuseLiving(client, place);
      await finish(client, place);
      return copied;
    });
  } finally {
    source.close();
  }
}

// --- Before the first row

function checkSource(source: Sqlite, file: string): void {
  const [version, newest] = [Number(source.pragma('user_version', { simple: true })), newestVersion()];
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
  // A large table may take long, and the server gets nothing while SQLite is read.
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

// --- A table

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

interface CopyColumn {
  readonly name: string;
  readonly type: ColumnType;
}

/** The columns of a table, which must be the same in the source and the target. */
async function readColumns(source: Sqlite, target: ClientBase, table: string): Promise<readonly CopyColumn[]> {
  const { rows } = await target.query<{ name: string; type: string }>(
    `SELECT column_name AS name, data_type AS type FROM information_schema.columns
      WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position`,
    [table],
  );
  const here = source.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck().all(table);
  const there = rows.map(({ name }) => name);
  if ([...there].sort().join() !== [...here].sort().join())
    throw new Error(`${table} has other columns in the target than in the source`);
  return rows.map(({ name, type }) => {
    const known = TYPES.find((one) => one === type);
    if (!known) throw new Error(`${table}.${name} is of a type that is not copied: ${type}`);
    return { name, type: known };
  });
}

function insertInto(table: string, columns: readonly CopyColumn[]): string {
  const names = columns.map(({ name }) => name).join(', ');
  const arrays = columns.map(({ type }, at) => `unnest($${at + 1}::${type}[])`).join(', ');
  return `INSERT INTO ${table} (${names}) SELECT * FROM ROWS FROM (${arrays}) AS copied (${names})`;
}

function* chunksOf(source: Sqlite, table: string, columns: readonly CopyColumn[]): Generator<SourceValue[][]> {
  const sql = `SELECT ${columns.map(({ name }) => `"${name}"`).join(', ')} FROM ${table}`;
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

function copiedTables(table: CopyTable, columns: readonly CopyColumn[], tallies: readonly Tally[]): CopiedTable[] {
  const at = columns.findIndex(({ name }) => name === table.amount);
  const groups = tallies.map(({ state, rows, sums }) => ({ table: table.name, state, rows, sum: sums[at] ?? null }));
  return groups.length > 0 ? groups : [{ table: table.name, state: null, rows: 0, sum: at < 0 ? null : 0n }];
}

// --- Counts and sums

/** The rows of a table, or of one state in it, and a sum over each column: of numbers, or of lengths. */
interface Tally {
  readonly state: string | null;
  rows: number;
  readonly sums: bigint[];
}

function createTally(columns: readonly CopyColumn[], { hasStates }: CopyTable) {
  const tallies = new Map<string | null, Tally>();
  const stateAt = hasStates ? columns.findIndex(({ name }) => name === 'state') : -1;
  return {
    add: (row: readonly SourceValue[]): void => {
      const state = stateAt < 0 ? null : ((row[stateAt] ?? null) as string | null);
      const tally = tallies.get(state) ?? { state, rows: 0, sums: columns.map(() => 0n) };
      tallies.set(state, tally);
      tally.rows += 1;
      for (const [at, column] of columns.entries()) tally.sums[at] = (tally.sums[at] ?? 0n) + weigh(column, row[at]);
    },
    read: (): readonly Tally[] => [...tallies.values()].sort(byState),
  };
}

async function tallyTarget(
  client: ClientBase,
  columns: readonly CopyColumn[],
  { name, hasStates }: CopyTable,
): Promise<readonly Tally[]> {
  const sums = columns.map((column, at) => `(${sumOf(column)})::text AS s${at}`);
  const state = hasStates ? 'state' : 'NULL::text';
  const { rows } = await client.query<Record<string, string | null>>(
    `SELECT ${state} AS state, count(*)::text AS rows, ${sums.join(', ')} FROM ${name} GROUP BY 1`,
  );
  return rows
    .map((row) => ({
      state: row.state ?? null,
      rows: Number(row.rows),
      sums: columns.map((_, at) => BigInt(row[`s${at}`] ?? 0)),
    }))
    .sort(byState);
}

function weigh({ type }: CopyColumn, value: SourceValue | undefined): bigint {
  if (value === null || value === undefined) return 0n;
  if (value instanceof Uint8Array) return BigInt(value.length);
  if (type === 'text') return BigInt(Buffer.byteLength(String(value)));
  return BigInt(value);
}

function sumOf({ name, type }: CopyColumn): string {
  if (type === 'boolean') return `count(*) FILTER (WHERE ${name})`;
  const weight = type === 'text' ? `octet_length(${name})` : type === 'bytea' ? `length(${name})` : name;
  return `coalesce(sum(${weight}), 0)`;
}

/** Throws with the first column that differs. */
function checkTallies(
  table: string,
  columns: readonly CopyColumn[],
  wanted: readonly Tally[],
  held: readonly Tally[],
): void {
  const states = (tallies: readonly Tally[]) =>
    tallies.map(({ state, rows }) => `${state ?? 'rows'} ${rows}`).join(', ');
  if (states(wanted) !== states(held))
    throw new Error(`${table} came out as (${states(held)}) instead of (${states(wanted)})`);
  for (const [at, column] of columns.entries())
    for (const [group, { sums }] of wanted.entries())
      if (sums[at] !== held[group]?.sums[at])
        throw new Error(`${table}.${column.name} sums to ${held[group]?.sums[at]} instead of ${sums[at]}`);
}

function byState(one: Tally, other: Tally): number {
  return (one.state ?? '') < (other.state ?? '') ? -1 : 1;
}

// --- The end

async function finish(client: Client, place: string): Promise<void> {
  try {
    const { command } = await client.query('COMMIT');
    if (command !== 'COMMIT') throw new Error('the transaction was undone');
  } catch (cause) {
    const advice = 'if it has rows now, it has all of them, else it is empty and the copy can be made again';
    throw new Error(`${place} did not confirm the copy: ${advice}`, { cause });
  }
}
