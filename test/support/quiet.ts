import type { Log } from '../../src/lib/common.ts';

/** A log that nobody reads. A test that reads some lines of it replaces their methods. */
export const quiet: Log = { info: () => {}, warn: () => {}, error: () => {} };
