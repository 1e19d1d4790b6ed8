import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Pool } from 'pg';
import { afterEach, beforeEach, describe } from 'vitest';
import { findPostgres } from '../../../scripts/lib/ledger/postgres.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import { createSqliteStores, storesOver } from '../../../src/store/open.ts';
import { openPostgresStores } from '../../../src/store/open-postgres.ts';
import type { LedgerStores } from '../../../src/store/ports/stores.ts';
import { workersDatabase } from '../postgres/postgres-run.ts';
import { openMemoryLedger, openTestLedger } from './fresh-ledger.ts';
import { openMemory } from './memory-ledger.ts';

/** A ledger without rows. `close` closes everything that was opened of it. */
export interface OpenLedger {
  readonly stores: LedgerStores;
  /** The same ledger as another instance opens it. */
  another(): Promise<LedgerStores>;
  /** Closes the stores and opens them again. */
  reopen(): Promise<LedgerStores>;
  /** Plain SQL without the stores, as another program would run it. */
  sql(text: string): Promise<Record<string, unknown>[]>;
  /** How many transactions were run again because another one conflicted with them. */
  retries(): number;
  close(): Promise<void>;
}

/** A database that can hold the ledger. */
export interface Adapter {
  readonly name: 'sqlite' | 'postgres';
  /** Why its tests cannot run here; null where they can. */
  readonly missing: string | null;
  open(options?: OpenOptions): Promise<OpenLedger>;
}

interface OpenOptions {
  /** False where a test makes thousands of writes and does not test a power cut. SQLite then leaves the sync to the system. */
  readonly synced?: boolean;
}

const found = findPostgres();
const missing = 'missing' in found ? found.missing : null;
/** `LEDGERS=memory,sqlite` runs the suites on these alone, where each mutant runs them. */
const isAsked = (name: string): boolean => process.env.LEDGERS?.split(',').includes(name) ?? true;
if (missing !== null && process.env.REQUIRE_POSTGRES === '1') throw new Error(`REQUIRE_POSTGRES=1, but ${missing}`);
if (missing !== null) process.stderr.write(`skipped on PostgreSQL: ${missing}\n`);

/** SQLite as it is on one machine, and PostgreSQL as several instances share it. */
export const adapters: readonly Adapter[] = [
  { name: 'sqlite', missing: null, open: openSqlite },
  { name: 'postgres', missing, open: openPostgres },
];
/** The third driver, which says what SQLite's does and has no file. */
export const memory: Adapter = { name: 'sqlite', missing: null, open: openMemoryStores };

/** Runs tests for PostgreSQL alone. */
export function describePostgres(title: string, suite: () => void): void {
  describe.skipIf(missing !== null || !isAsked('postgres'))(title, suite);
}

/** The same for tests that build on each other. They keep their order where others are shuffled. */
export function describePostgresSteps(title: string, suite: () => void): void {
  describe.skipIf(missing !== null || !isAsked('postgres'))(title, { shuffle: false }, suite);
}

/** Runs tests of the ledger's ports for every adapter that this machine has, or for the one of this name. */
export function describeLedgers(title: string, suite: (adapter: Adapter) => void, only?: Adapter['name']): void {
  for (const adapter of adapters.filter(({ name }) => name === (only ?? name))) {
    describe.skipIf(adapter.missing !== null || !isAsked(adapter.name))(`${title} (${adapter.name})`, () =>
      suite(adapter),
    );
  }
}

/** The same for the suites of the ports, over the third driver too. */
export function describePorts(title: string, suite: (adapter: Adapter) => void): void {
  describeLedgers(title, suite);
  describe.skipIf(!isAsked('memory'))(`${title} (memory)`, () => suite(memory));
}

/** Opens a ledger for each test of a suite, and closes it after the test. The returned object always stands for the running test's ledger. */
export function useLedger(adapter: Adapter, options?: OpenOptions): OpenLedger {
  let open: OpenLedger;
  beforeEach(async () => {
    open = await adapter.open(options);
  });
  afterEach(() => open.close());
  return ofNow(() => open);
}

/** Stands for the object that `find` returns at the time of each use, because each test of a suite has its own. */
export function ofNow<T extends object>(find: () => T): T {
  return new Proxy({} as T, {
    get: (_, name) => Reflect.get(find(), name),
    ownKeys: () => Reflect.ownKeys(find()),
    getOwnPropertyDescriptor: (_, name) => Reflect.getOwnPropertyDescriptor(find(), name),
  });
}

/** The stores that are opened over one database, one after the other or at the same time. */
async function ledgerOf(
  open: () => Promise<LedgerStores>,
  database: Pick<OpenLedger, 'sql' | 'retries'> & { remove?(): void },
): Promise<OpenLedger> {
  const opened: LedgerStores[] = [];
  const another = async () => {
    const more = await open();
    opened.push(more);
    return more;
  };
  let stores = await another();
  return {
    ...database,
    get stores() {
      return stores;
    },
    another,
    reopen: async () => {
      await stores.close();
      stores = await another();
      return stores;
    },
    close: async () => {
      for (const one of opened) await one.close();
      database.remove?.();
    },
  };
}

async function openMemoryStores(): Promise<OpenLedger> {
  const db = openMemoryLedger();
  return ledgerOf(async () => storesOver(openMemory(db)), {
    sql: async (text) => runText(db, text),
    retries: () => 0,
    remove: () => void db.close(),
  });
}

function runText(db: Sqlite, text: string): Record<string, unknown>[] {
  const statement = db.prepare<[], Record<string, unknown>>(text);
  if (statement.reader) return statement.all();
  statement.run();
  return [];
}

async function openSqlite({ synced = true }: OpenOptions = {}): Promise<OpenLedger> {
  const folder = mkdtempSync(join(tmpdir(), 'percall-ledger-'));
  const file = join(folder, 'ledger.db');
  const open = async () => {
    const db = openTestLedger(file);
    if (!synced) db.pragma('synchronous = OFF');
    return createSqliteStores(db);
  };
  return ledgerOf(open, {
    sql: async (text) => {
      const db = new Database(file);
      try {
        return runText(db, text);
      } finally {
        db.close();
      }
    },
    retries: () => 0,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  });
}

/** One database for each worker, because emptying it costs less than creating another. */
let database: Promise<PostgresDatabase> | null = null;

interface PostgresDatabase {
  readonly url: string;
  /** Statements that empty the ledger. */
  readonly wipe: string;
  /** Outside of the stores. It keeps a connection for the next test: a new one makes PostgreSQL start a process, which reads the whole schema. */
  readonly outside: Pool;
}

/** The default options of a ledger on PostgreSQL in tests. */
export const POSTGRES_LIMITS = { poolSize: 8, connectTimeoutMs: 10_000, statementTimeoutMs: 10_000 };

async function openPostgres(): Promise<OpenLedger> {
  database ??= openDatabase();
  const { url, wipe, outside } = await database;
  let retries = 0;
  const options = { url, ...POSTGRES_LIMITS, clock: systemClock, onRetry: () => void retries++ };
  const ledger = await ledgerOf(() => openPostgresStores(options), {
    sql: (text) => query(outside, text),
    retries: () => retries,
  });
  await query(outside, wipe);
  return ledger;
}

async function openDatabase(): Promise<PostgresDatabase> {
  const url = await workersDatabase();
  const outside = new Pool({ connectionString: url, idleTimeoutMillis: 60_000, allowExitOnIdle: true });
  // The server ends before the worker may. The pool then drops the connection.
  outside.on('error', () => {});
  return { url, wipe: await wipeOf(outside), outside };
}

async function query(outside: Pool, text: string): Promise<Record<string, unknown>[]> {
  return (await outside.query<Record<string, unknown>>(text)).rows ?? [];
}

/** Statements that empty every table. A table whose one row is part of the schema gets the row back as the migrations made it. */
async function wipeOf(outside: Pool): Promise<string> {
  const rows = await query(outside, "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'");
  const kept = ['ledger_migrations', 'ledger_turns', 'lightning_facilitator_totals', 'market_state'];
  const names = rows.map(({ name }) => String(name)).filter((name) => !kept.includes(name));
  const wipes = names.map((name) => `DELETE FROM ${name}`);
  return [
    ...wipes,
    'UPDATE lightning_facilitator_totals SET claims = 0, nodes = 0',
    'UPDATE market_state SET revision = 0',
  ].join(';');
}
