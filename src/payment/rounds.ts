/**
 * Wraps `work` so that it never runs twice at once. A call during a round waits for that round. A failed round is logged, and the next call tries
 * again. The call itself never rejects.
 */
export function createRounds(
  work: () => Promise<unknown> | undefined,
  log: { warn(detail: object, message: string): void },
): { (): Promise<void>; idle(): Promise<void> } {
  let running: Promise<void> | null = null;

  async function once(): Promise<void> {
    try {
      await work();
    } catch (err) {
      log.warn({ err }, 'maintenance failed');
    } finally {
      running = null;
    }
  }

  const round = (): Promise<void> => {
    running ??= once();
    return running;
  };
  return Object.assign(round, { idle: async () => running ?? undefined });
}
