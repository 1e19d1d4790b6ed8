import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { EmbeddedLightning } from '../../../dev/lightning/lightning.ts';
import { lightningEnvironment } from '../../../dev/serve.ts';
import { type ServiceOptions, serviceWith } from '../service/service.ts';

/** A chain without a provider. The Lightning rail needs no chain. */
const NO_CHAIN = {
  NETWORK: 'custom',
  CHAIN_ID: '5042',
  RPC_URLS: 'http://127.0.0.1:9',
  USDC_ADDRESS: `0x36${'0'.repeat(38)}`,
  SELLER_ADDRESS: `0x${'5e'.repeat(20)}`,
  RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
  COLLECTOR: 'off',
};
/** The node answers, however late. */
const LND_ANSWERS = { LIGHTNING_TIMEOUT_MS: '60000' };

/** Starts the real service in this process. It sells through the embedded Lightning node, without a chain. */
export async function startLightningService(
  lightning: EmbeddedLightning,
  { env = {}, ...options }: ServiceOptions = {},
) {
  const service = await serviceWith(
    { ...NO_CHAIN, ...LND_ANSWERS, ...lightningEnvironment(lightning), ...env },
    options,
  );
  return {
    ...service,
    /** Changes the ledger from outside the service, as a damaged disk would. */
    sql: (text: string) => {
      const db = new Database(join(service.dataDir, 'ledger.db'));
      db.pragma('foreign_keys = ON');
      db.exec(text);
      db.close();
    },
    /** The bytes of every file of the ledger. */
    ledgerFiles: (): Buffer[] =>
      readdirSync(service.dataDir)
        .filter((name) => name.startsWith('ledger.db'))
        .map((name) => readFileSync(join(service.dataDir, name))),
  };
}

export type LightningService = Awaited<ReturnType<typeof startLightningService>>;
