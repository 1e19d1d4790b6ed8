/** A place in a stand-in where work waits while a test holds it. */
export function createHold() {
  let held: Promise<void> | null = null;
  return {
    /** Resolves at once, or at the release where a test holds the work. */
    passed: async (): Promise<void> => {
      await held;
    },
    /** Makes all work wait until the returned function is called, even when a client disconnects meanwhile. */
    hold: (): (() => void) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return () => {
        held = null;
        resolve();
      };
    },
  };
}
