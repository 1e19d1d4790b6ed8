import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { LedgerStores } from '../../../src/store/ports/stores.ts';
import type { EarlierStores } from './write-ledger.ts';

// Where the code of earlier commits has its stores. `folder` is a checkout of such a commit.

type Exports = Record<string, (...given: never[]) => unknown>;
// Their types are of another checkout, so they are called as what they were named.
const call = <T>(found: Exports, name: string, ...given: unknown[]): T =>
  (found[name] as (...all: unknown[]) => T)(...given);

/** The first of these modules that the checkout has. */
async function load(folder: string, ...paths: readonly string[]): Promise<Exports> {
  const path = paths.map((one) => join(folder, 'src', one)).find((one) => existsSync(one));
  if (path === undefined) throw new Error(`${folder} has none of ${paths.join(', ')}`);
  return (await import(path)) as Exports;
}

/** Opens a ledger's file by that code, which makes its schema. */
export async function openEarlierSqlite(folder: string, file: string): Promise<EarlierStores> {
  const whole = ['store/open.ts', 'store/sqlite/open-stores.ts', 'store/sqlite-stores.ts'];
  if (whole.some((path) => existsSync(join(folder, 'src', path))))
    return call(await load(folder, ...whole), 'openSqliteStores', file);
  const db = call<unknown>(await load(folder, 'store/database.ts'), 'openLedgerDatabase', file);
  const makers: Partial<Record<keyof LedgerStores, [file: string, name: string]>> = {
    payments: ['ledger-store', 'createLedgerStore'],
    lightning: ['lightning-store', 'createLightningStore'],
    transfers: ['gateway-transfers', 'createGatewayTransferStore'],
    selfTests: ['selftest-store', 'createSelfTestStore'],
    spending: ['relayer-spending', 'createRelayerSpending'],
    catalogue: ['catalogue-store', 'createCatalogueStore'],
    market: ['market-store', 'createMarketStore'],
  };
  const stores: Record<string, unknown> = {};
  for (const [store, [module, name]] of Object.entries(makers))
    if (existsSync(join(folder, `src/store/${module}.ts`)))
      stores[store] = call(await load(folder, `store/${module}.ts`), name, db);
  return stores as unknown as EarlierStores;
}

/** Opens a ledger on PostgreSQL by that code, which makes its schema, and leaves the row of a living instance that leads. */
export async function openEarlierPostgres(folder: string, url: string): Promise<LedgerStores> {
  const { systemClock: clock } = (await load(folder, 'lib/clock.ts')) as unknown as { systemClock: unknown };
  const limits = { poolSize: 8, connectTimeoutMs: 5000, statementTimeoutMs: 5000 };
  const stores = await call<Promise<LedgerStores>>(
    await load(folder, 'store/open-postgres.ts', 'store/postgres/open-stores.ts'),
    'openPostgresStores',
    { url, ...limits, clock },
  );
  const log = { warn: () => {} };
  const share = call<{ store: Exports; close(): Promise<void> }>(
    await load(folder, 'store/instances.ts', 'store/postgres/open-instances.ts'),
    'openInstances',
    { url, connectTimeoutMs: 5000, clock, log },
  );
  await call(share.store, 'heartbeat' in share.store ? 'heartbeat' : 'beat', 'boot-of-then', 6000, 15_000);
  await share.close();
  return stores;
}

/** The chain database's parts of that code. */
export async function loadEarlierChain(folder: string) {
  const [database, writes, probes] = await Promise.all([
    load(folder, 'collector/store/database.ts'),
    load(folder, 'collector/store/writes.ts'),
    load(folder, 'collector/store/probes.ts'),
  ]);
  return {
    open: (file: string) => call<{ close(): void }>(database, 'openChainDatabase', file),
    writes: (db: unknown) => call<unknown>(writes, 'createChainWrites', db),
    probes: (db: unknown) => call<unknown>(probes, 'createProbeWrites', db),
  };
}
