import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import type { ProbeWrites } from '../src/collector/store/probes.ts';
import type { ChainWrites } from '../src/collector/store/writes.ts';
import { findPostgres, type Postgres, startPostgres } from './lib/ledger/postgres.ts';
import { checkout } from './lib/schemas/checkout.ts';
import { loadEarlierChain, openEarlierPostgres, openEarlierSqlite } from './lib/schemas/earlier-stores.ts';
import { fixtureOf, RELEASED, type ReleasedSchema, UNFIT } from './lib/schemas/released.ts';
import { writeChain } from './lib/schemas/write-chain.ts';
import { writeLedger } from './lib/schemas/write-ledger.ts';

// `npm run schemas [-- --all]`: makes the databases of test/fixtures/schemas that are missing, or all of them. For each released schema it takes that
// commit's code out of git's history, runs its stores on today's dependencies, and keeps the database. It needs the whole history and PostgreSQL.

const ROOT = new URL('..', import.meta.url).pathname;
const FIXTURES = join(ROOT, 'test/fixtures/schemas');
const all = process.argv.includes('--all');
const wanted = [...RELEASED, ...UNFIT].filter((one) => all || !existsSync(join(FIXTURES, fixtureOf(one))));
const work = mkdtempSync(join(tmpdir(), 'percall-schemas-'));
const servers: Postgres[] = [];

mkdirSync(FIXTURES, { recursive: true });
try {
  for (const one of wanted) {
    const made = await make(one, checkout(one.commit, work));
    writeFileSync(join(FIXTURES, fixtureOf(one)), made);
    console.log(`${fixtureOf(one)}: ${made.length} bytes`);
  }
  if (wanted.length === 0) console.log('every released schema has its database');
} finally {
  for (const server of servers) await server.stop();
  rmSync(work, { recursive: true, force: true });
}

function make(schema: ReleasedSchema, folder: string): Promise<Buffer> {
  if (schema.database === 'postgres') return makePostgres(schema, folder);
  return schema.database === 'chain' ? makeChain(folder) : makeSqlite(schema, folder);
}

async function makeSqlite({ version }: ReleasedSchema, folder: string): Promise<Buffer> {
  const file = join(folder, 'ledger.db');
  const stores = await openEarlierSqlite(folder, file);
  await writeLedger(stores, version);
  await stores.payments.close();
  return packed(file);
}

async function makeChain(folder: string): Promise<Buffer> {
  const file = join(folder, 'chain.db');
  const chain = await loadEarlierChain(folder);
  const db = chain.open(file);
  writeChain(chain.writes(db) as ChainWrites, chain.probes(db) as ProbeWrites);
  db.close();
  return packed(file);
}

/** One file without a log beside it, compressed. Its bytes hold what a dump as SQL would lose, such as the version. */
function packed(file: string): Buffer {
  const db = new Database(file);
  db.pragma('journal_mode = DELETE');
  db.exec('VACUUM');
  db.close();
  return gzipSync(readFileSync(file), { level: 9 });
}

async function makePostgres({ version }: ReleasedSchema, folder: string): Promise<Buffer> {
  const found = findPostgres();
  if ('missing' in found) throw new Error(found.missing);
  const server = servers[0] ?? (await startPostgres());
  if (servers.length === 0) servers.push(server);
  const name = `schema_${version}`;
  await server.createDatabase(name);
  const stores = await openEarlierPostgres(folder, server.url(name));
  await writeLedger(stores, version);
  await stores.close();
  const options = ['--inserts', '--no-owner', '--no-privileges', '--no-comments', server.url(name)];
  const dump = execFileSync(join(found.bin, 'pg_dump'), options, { encoding: 'utf8', maxBuffer: 1 << 28 });
  // Without the lines that only psql understands, and without the comments.
  const lines = dump.split('\n').filter((line) => line !== '' && !/^(\\|--)/.test(line));
  return Buffer.from(`${lines.join('\n')}\n`);
}
