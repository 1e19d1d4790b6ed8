import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { withImporters } from './planted/importers.ts';

// The one place of the simulation that knows where things are inside the service. Everything else speaks HTTP, and reads the chain and the ledger's file.

/**
 * Modules that are replaced while seeds run. `module`: what the import names, or how its path ends. `from`: the importing files. `by`: the replacement,
 * relative to this folder.
 */
const STAND_INS = [
  { module: 'undici', from: /\/src\//, by: './network/undici.ts' },
  { module: 'better-sqlite3', from: /\/src\//, by: './service/sqlite.ts' },
  { module: 'secp256k1', from: /\/src\/lib\//, by: './service/secp256k1.ts' },
  { module: './log-sync.ts', from: /\/src\/store\/db\//, by: './service/log-sync.ts' },
  { module: 'store/open-postgres.ts', from: /\/src\//, by: './ledger/open-stores.ts' },
  { module: 'store/instances.ts', from: /\/src\//, by: './ledger/open-instances.ts' },
  { module: 'http/documents.ts', from: /\/src\/routes\//, by: './service/documents.ts' },
  { module: './search.ts', from: /\/src\/discovery\//, by: './service/search.ts' },
];

const used = new Set<string>();

/** What stands in for a module that a file of the service asks for; null where the real one is taken. */
export function standInFor(specifier: string, parentUrl: string): string | null {
  const isMeant = (module: string) => specifier === module || specifier.endsWith(`/${module}`);
  const standIn = STAND_INS.find(({ module, from }) => isMeant(module) && from.test(parentUrl));
  if (!standIn) return null;
  used.add(standIn.module);
  return standIn.by;
}

/** Notes what a file of the service imports only while it runs: no world may come to that. */
export function noteImports(url: string, text: string): void {
  for (const [, specifier = ''] of text.matchAll(/\bimport\('([^']+)'\)/g)) standInFor(specifier, url);
}

/** Modules that nothing in the service asks for any more: a stand-in of one that was renamed stands in for nothing. */
export const unusedStandIns = (): string[] => STAND_INS.map(({ module }) => module).filter((one) => !used.has(one));

export type { InstancesShare } from '../../src/store/instances.ts';
export type { InstancesStore } from '../../src/store/ports/instances.ts';
export type { LedgerStores } from '../../src/store/ports/stores.ts';

/** Which loading of the service holds, as the end of its modules' addresses. */
let loading = '';
let loadings = 0;

/** What each loading has of its own; everything else is shared by all. */
const anew = new Map<string, ReadonlySet<string>>();

/** From here on these files of the service, and what imports them, are loaded anew with what is planted by then. */
export function loadAnew(files: readonly string[]): void {
  loadings += 1;
  loading = `?service=${loadings}`;
  anew.set(loading, withImporters(files));
}

/** The end of a module's address in a loading: empty for a module that all loadings share. */
export const endOf = (url: string, of: string): string => (anew.get(of)?.has(url) ? of : '');

/** What a shared ledger is made of: the real stores over SQLite, and the error that a client gets while the ledger is away. */
export async function ledgerParts() {
  const of = loading;
  const [{ openSqliteStores }, { AppError }] = await Promise.all([
    part<typeof import('../../src/store/open.ts')>('store/open.ts'),
    part<typeof import('../../src/errors.ts')>('errors.ts'),
  ]);
  const unavailable = () =>
    new AppError(503, 'ledger_unavailable', 'the ledger does not answer', { retryAfterSeconds: 5 });
  /** False once the service was loaded anew. */
  const hold = () => of === loading;
  return { openSqliteStores, unavailable, hold };
}

function part<T>(file: string): Promise<T> {
  const { href } = new URL(`../../src/${file}`, import.meta.url);
  return import(`${href}${endOf(href, loading)}`) as Promise<T>;
}

/** What the simulation reads of the ledger's file. */
export const LEDGER_QUERIES = {
  file: 'ledger.db',
  sales: `SELECT payer, nonce, contract, state, amount, reason, transaction_hash AS hash, signature, deliveries, ended_at AS endedAt,
                 reserved_at AS reservedAt, valid_before AS validBefore, valid_after AS validAfter,
                 pay_to AS payTo, price, channel_id AS channelId, voucher_max AS max FROM usdc_payments`,
  claims: `SELECT payment_hash AS paymentHash, amount_msat AS amountMsat, state, claimed_at AS claimedAt, delivered_at AS deliveredAt,
                  request_hash IS NOT NULL AS grants FROM lightning_claims`,
  // `state <> 'failed'` leaves nothing more out. It lets SQLite use the index by channel, which has that condition.
  channels: `SELECT id, channels.charged, written_off AS writtenOff, balance, total_claimed AS claimed, channels.signature,
                    (SELECT coalesce(sum(price), 0) FROM usdc_payments
                      WHERE channel_id = channels.id AND state = 'settled' AND state <> 'failed') AS sold FROM channels`,
  missing: `SELECT rail, item, detail FROM book_entries WHERE kind = 'missing'`,
  openOperations: `SELECT kind FROM channel_operations WHERE state = 'open'`,
};

/** What the service imports while it starts. It is loaded before, because virtual time does not wait for files. */
const IMPORTED_LATER = [
  ...['@x402/core/http', '@x402/core/types', './ledger/open-stores.ts', './ledger/open-instances.ts'],
];

/** The service, loaded after the hooks: so that it is the one with stand-ins and plants. */
export async function loadService() {
  await Promise.all(IMPORTED_LATER.map((module) => import(module)));
  const [{ createDeps }, { buildApp }, { loadConfig }, { catalogue }, { defineEndpoint }, { createLogger }] =
    await Promise.all([
      part<typeof import('../../src/wiring/service.ts')>('wiring/service.ts'),
      part<typeof import('../../src/app.ts')>('app.ts'),
      part<typeof import('../../src/config.ts')>('config.ts'),
      part<typeof import('../../src/catalogue/catalogue.ts')>('catalogue/catalogue.ts'),
      part<typeof import('../../src/catalogue/endpoint.ts')>('catalogue/endpoint.ts'),
      part<typeof import('../../src/lib/common.ts')>('lib/common.ts'),
    ]);
  type Catalogue = NonNullable<Parameters<typeof createDeps>[2]>;

  return {
    catalogue,
    defineEndpoint,
    createLogger,
    /** Starts one instance in this process under this environment; resolves when it could listen. */
    start: async (
      env: Record<string, string>,
      log: Logger,
      sold: Catalogue,
      surfaces: { pages: boolean; tools: boolean },
    ) => {
      const deps = await createDeps(loadConfig(env), log, sold);
      const { pages, tools, ...rest } = deps;
      const app: FastifyInstance = await buildApp({
        ...rest,
        ...(surfaces.pages && { pages }),
        ...(surfaces.tools && { tools }),
      });
      return {
        app,
        close: async () => {
          await app.close();
          await deps.close();
        },
      };
    },
  };
}

export type LoadedService = Awaited<ReturnType<typeof loadService>>;
export type Catalogue = LoadedService['catalogue'];
