/** Rounds of upkeep. A call never rejects. */
interface Rounds {
  (): Promise<void>;
  /** Resolves when no round runs. */
  idle(): Promise<void>;
  /** Whether the last round that ended has failed. */
  isFailing(): boolean;
}

/**
 * Wraps `work` so that it never runs twice at once. A call during a round waits for that round. The first of several failed rounds is logged, and the
 * first that succeeds afterwards: a round comes every few seconds, and a fault may last for hours. The next call tries again.
 */
export function createRounds(
  work: () => Promise<unknown> | undefined,
  log: { info(detail: object, message: string): void; warn(detail: object, message: string): void },
): Rounds {
  let running: Promise<void> | null = null;
  let failed = 0;

  async function once(): Promise<void> {
    try {
      await work();
      if (failed > 0) log.info({ rounds: failed }, 'maintenance works again');
      failed = 0;
    } catch (err) {
      failed += 1;
      if (failed === 1) log.warn({ err }, 'maintenance failed; the next line about it says that it works again');
    } finally {
      running = null;
    }
  }

  const round = (): Promise<void> => {
    running ??= once();
    return running;
  };
  return Object.assign(round, { idle: async () => running ?? undefined, isFailing: () => failed > 0 });
}
