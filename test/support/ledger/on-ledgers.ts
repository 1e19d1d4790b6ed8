import { freshDatabase } from '../postgres/postgres-run.ts';
import { type Adapter, describeLedgers } from './ledger-adapters.ts';

/**
 * Runs tests of a whole service on each database that can hold its ledger, or on the one of this name. Each call of `ledgerEnv` names a new, empty
 * one.
 */
export function describeServices(
  title: string,
  suite: (ledgerEnv: () => Promise<Record<string, string>>) => void,
  only?: Adapter['name'],
): void {
  const on = ({ name }: Adapter) =>
    suite(async () => (name === 'postgres' ? { LEDGER_URL: await freshDatabase() } : {}));
  describeLedgers(title, on, only);
}
