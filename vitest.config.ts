import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/loopback-only.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Two cores: suites that start real nodes would starve each other beyond two.
    maxWorkers: 2,
  },
});
