/**
 * Makes a part of maintenance that never runs twice at once: a call while a round runs waits for that round. A round that fails is logged, and
 * the next call tries again; the call itself never rejects.
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
      log.warn({ err }, 'upkeep failed');
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
