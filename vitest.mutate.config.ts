import { defineConfig } from 'vitest/config';
import { residentPool } from './test/mutation/resident-pool.ts';

// The quick tests of the money code, for `npm run mutate`: no process, no node, no database server.
export default defineConfig({
  plugins: [residentPool],
  test: {
    include: ['test/unit/{payment,facilitator}/**/*.test.ts', 'test/unit/lib/*.test.ts'],
    // It reads the sources, which Stryker rewrites.
    exclude: ['test/unit/payment/refusal-words.test.ts'],
    setupFiles: ['test/support/loopback-only.ts'],
    // Suites that play seeds play more of them.
    env: { MUTATE: '1' },
    // A mutant that makes a test wait for ever costs this long at most. Beyond that Stryker ends the process, which costs a new one too.
    testTimeout: 15_000,
    hookTimeout: 15_000,
    isolate: false,
  },
});
