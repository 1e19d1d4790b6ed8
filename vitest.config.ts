import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/loopback-only.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Two cores: suites that start real nodes would starve each other beyond two.
    maxWorkers: 2,
    // Files share the modules of their worker: loading them anew for each took twice as long as the quick tests themselves.
    isolate: false,
  },
});
