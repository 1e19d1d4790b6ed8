/** A place in a stand-in where work waits while a test holds it. */
export function createHold() {
  let held: Promise<void> | null = null;
  return {
    /** Resolves at once, or at the release where a test holds the work. */
    passed: async (): Promise<void> => {
      await held;
    },
    /** Holds the work from here on, also when its client hangs up, until the returned function is called. */
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
