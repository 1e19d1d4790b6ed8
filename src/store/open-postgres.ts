import { openPostgres, type PostgresOptions } from './db/postgres.ts';
import { storesOver } from './open.ts';
import type { LedgerStores } from './ports/stores.ts';

/** Opens the ledger on PostgreSQL, for several instances. Loaded on demand: a service over a file has no client. */
export const openPostgresStores = async (options: PostgresOptions): Promise<LedgerStores> =>
  storesOver(await openPostgres(options));
