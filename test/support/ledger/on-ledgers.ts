import { type TestAPI, test } from 'vitest';
import { freshDatabase } from '../postgres/postgres-run.ts';
import { type Adapter, describeLedgers } from './ledger-adapters.ts';

/**
 * Runs tests of a whole service on each database that can hold its ledger, or on the one of this name. Each call of `ledgerEnv` names a new, empty
 * one. `testMemory` is for what the service keeps in its memory: such a test runs on SQLite, and with SLOW=1 on each of them.
 */
export function describeServices(
  title: string,
  suite: (ledgerEnv: () => Promise<Record<string, string>>, testMemory: ReturnType<TestAPI['runIf']>) => void,
  only?: Adapter['name'],
): void {
  const on = ({ name }: Adapter) =>
    suite(
      async () => (name === 'postgres' ? { LEDGER_URL: await freshDatabase() } : {}),
      test.runIf(name === 'sqlite' || process.env.SLOW),
    );
  describeLedgers(title, on, only);
}
