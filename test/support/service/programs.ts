import { join } from 'node:path';
import type { Product } from '../../../scripts/lib/build/build.ts';

/**
 * The programs that tests start often, built once before the tests: from its sources each start would load some hundred modules and strip their types.
 * A reader's own commands, from the sources, run in test/conformance/docs.
 */
export const PROGRAMS = {
  folder: 'test/dist',
  sources: ['src/**/*.{ts,json}', 'cli/**/*.ts', 'scripts/**/*.ts', 'test/support/**/*.ts', 'package-lock.json'],
  programs: {
    percall: 'cli/percall.ts',
    ledger: 'scripts/ledger.ts',
    backup: 'scripts/backup.ts',
    'service-shop': 'test/support/rails/service-shop.ts',
    collecting: 'test/support/chain/arc-simulator/child.ts',
  },
} satisfies Product;

/** The built file of a program. */
export const programFile = (name: keyof typeof PROGRAMS.programs): string =>
  join(import.meta.dirname, '../../dist', `${name}.js`);
