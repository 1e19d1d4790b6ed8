import { freshDatabase } from '../postgres/postgres-run.ts';
import { type Adapter, describeLedgers } from './ledger-adapters.ts';

/** States what a whole service promises, on each database that its ledger can be in, or on the one of this name; `ledgerEnv` names a fresh one each time. */
export function describeServices(
  title: string,
  suite: (ledgerEnv: () => Promise<Record<string, string>>) => void,
  only?: Adapter['name'],
): void {
  const on = ({ name }: Adapter) =>
    suite(async () => (name === 'postgres' ? { LEDGER_URL: await freshDatabase() } : {}));
  describeLedgers(title, on, only);
}
