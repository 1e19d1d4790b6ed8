import type { LedgerStores } from '../seam.ts';
import { currentSharedLedger } from './shared-ledger.ts';

/** In place of the PostgreSQL adapter of the same name, while seeds run. */
export const openPostgresStores = (): Promise<LedgerStores> => currentSharedLedger().openStores();
