import { freshDatabase } from '../postgres/postgres-run.ts';
import { describeLedgers } from './ledger-adapters.ts';

/** States what a whole service promises, on each database that its ledger can be in; `ledgerEnv` names a fresh one each time. */
export function describeServices(
  title: string,
  suite: (ledgerEnv: () => Promise<Record<string, string>>) => void,
): void {
  describeLedgers(title, ({ name }) =>
    suite(async () => (name === 'postgres' ? { LEDGER_URL: await freshDatabase() } : {})),
  );
}
