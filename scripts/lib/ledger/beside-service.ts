import Database from 'better-sqlite3';
import { Client } from 'pg';
import type { Clock } from '../../../src/lib/clock.ts';
import { newestVersion } from '../../../src/store/db/migrate.ts';
import { openSqliteStores } from '../../../src/store/open.ts';
import { openPostgresStores } from '../../../src/store/open-postgres.ts';
import type { LedgerStores } from '../../../src/store/ports/stores.ts';
import { existingDatabase } from './ledger-file.ts';
import type { LedgerLocation } from './ledger-location.ts';
import { mismatchText, providersText } from './ledger-text.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const STATEMENT_TIMEOUT_MS = 10_000;
/** The least that the stores take. */
const POOL_SIZE = 4;
const UNDEFINED_TABLE = '42P01';

/** A command that writes to the ledger of a service that may run meanwhile. */
export interface BesideService {
  readonly location: LedgerLocation;
  readonly clock: Clock;
  /** Prints one line of the answer. */
  readonly print: (line: string) => void;
}

/** Prints the RPC providers that are set apart or in dispute, oldest first. */
export function listProviders(beside: BesideService): Promise<void> {
  return withStores(beside, async ({ providers }) => {
    for (const line of providersText(await providers.list(beside.clock.nowMs()))) beside.print(line);
  });
}

/** Ends every note on a provider's host, and prints how many there were. Throws when there was none. */
export function trustProvider(beside: BesideService, host: string): Promise<void> {
  return withStores(beside, async ({ providers }) => {
    const ended = await providers.trust(host);
    if (ended === 0) throw new Error(`there is no note on ${host}: npm run ledger -- providers lists the hosts`);
    beside.print(`${host}: ${ended} ${ended === 1 ? 'note' : 'notes'} ended`);
  });
}

/**
 * Accepts what the chain lacks of the ledger, so that it stops no rail any more, and prints it. What grows later counts
 * again.
 */
export function acceptMismatch(beside: BesideService): Promise<void> {
  return withStores(beside, async ({ books }) => {
    for (const line of mismatchText(await books.accept(beside.clock.nowMs()))) beside.print(line);
  });
}

/**
 * Opens the stores of a ledger during `work`, beside the service that may use them too. Throws unless the ledger has this program's schema: bringing it to
 * another one is the service's own work, because an older service may still run on it.
 */
async function withStores<T>({ location, clock }: BesideService, work: (stores: LedgerStores) => Promise<T>) {
  const [version, newest] = [await versionOf(location), newestVersion()];
  if (version > newest)
    throw new Error(`the ledger is of version ${version}; this program knows ${newest}: use the newer program`);
  if (version < newest)
    throw new Error(`the ledger is of version ${version}, this program of ${newest}: start this service on it once`);
  const stores = await openStores(location, clock);
  try {
    return await work(stores);
  } finally {
    await stores.close();
  }
}

async function openStores(location: LedgerLocation, clock: Clock): Promise<LedgerStores> {
  if (!('url' in location)) return openSqliteStores(existingDatabase(location.dataDir, 'ledger.db'));
  return openPostgresStores({
    url: location.url,
    poolSize: POOL_SIZE,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    clock,
  });
}

/** The number of the ledger's newest migration; 0 for a database without a ledger. */
async function versionOf(location: LedgerLocation): Promise<number> {
  if (!('url' in location)) {
    const db = new Database(existingDatabase(location.dataDir, 'ledger.db'), { readonly: true, fileMustExist: true });
    try {
      return Number(db.pragma('user_version', { simple: true }));
    } finally {
      db.close();
    }
  }
  const client = new Client({ connectionString: location.url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ last: string | null }>('SELECT max(version) AS last FROM ledger_migrations');
    return Number(rows[0]?.last ?? 0);
  } catch (error) {
    if ((error as { code?: string }).code === UNDEFINED_TABLE) return 0;
    throw error;
  } finally {
    await client.end();
  }
}
