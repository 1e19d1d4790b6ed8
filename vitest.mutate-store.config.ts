import { defineConfig } from 'vitest/config';
import { residentPool } from './test/mutation/resident-pool.ts';

// The tests that hold the ledger, for `npm run mutate`. `LEDGERS` names the databases: scripts/mutate.ts gives each file of src/store those that run it.

const onPostgres = process.env.LEDGERS === 'postgres';

export default defineConfig({
  plugins: [residentPool],
  test: {
    include: ['test/ports/*.test.ts', 'test/unit/store/**/*.test.ts'],
    exclude: [
      // They read the sources, which Stryker rewrites, or run them in a process of their own.
      'test/ports/{plans,postgres-suites,run-databases,texts}.test.ts',
      // Rows by the hundred thousand, or every released ledger: too slow for each mutant.
      'test/ports/released-schemas-postgres.test.ts',
      'test/unit/store/sqlite/lightning-schema.test.ts',
    ],
    globalSetup: onPostgres ? ['test/mutation/global-setup.ts'] : [],
    setupFiles: ['test/support/loopback-only.ts'],
    env: { MUTATE: '1' },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    isolate: false,
  },
});
