import { type Clock, systemClock } from '../../src/lib/clock.ts';

/** The machine's clock, which a test can halt: then no time passes and no sleep ends, however long a busy machine takes. */
export function createHaltingClock(): Clock & { whileHalted<T>(work: () => Promise<T>): Promise<T> } {
  let halted: { readonly atMs: number; readonly resumed: Promise<void> } | null = null;
  return {
    nowMs: () => halted?.atMs ?? systemClock.nowMs(),
    async sleep(ms, signal) {
      await systemClock.sleep(ms, signal);
      await halted?.resumed;
      signal?.throwIfAborted();
    },
    async whileHalted(work) {
      const { promise: resumed, resolve: resume } = Promise.withResolvers<void>();
      halted = { atMs: systemClock.nowMs(), resumed };
      try {
        return await work();
      } finally {
        halted = null;
        resume();
      }
    },
  };
}
