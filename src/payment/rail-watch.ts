import type { Clock } from '../lib/clock.ts';
import type { RailProbe } from './settling.ts';

/** Between two questions: `/supported` changes with a deployment of theirs. */
const INTERVAL_MS = 60_000;

/** Keeps what the remote rails last said of themselves, so that `/readyz` asks nobody. */
export function createRailWatch(
  probe: () => Promise<Record<string, RailProbe>>,
  clock: Clock,
  log: { warn(detail: object, message: string): void },
) {
  let latest: Record<string, RailProbe> = {};
  let askedMs: number | null = null;

  return {
    /** Asks when a minute has gone by since the last time; says in the log when a rail turns bad. */
    refresh: async (): Promise<void> => {
      if (askedMs !== null && clock.nowMs() - askedMs < INTERVAL_MS) return;
      askedMs = clock.nowMs();
      const before = latest;
      latest = await probe();
      for (const [rail, { ok, detail }] of Object.entries(latest))
        if (!ok && before[rail]?.ok !== false) log.warn({ rail, detail }, 'a rail does not settle what we sell for');
    },
    /** A rail's name and how it was; empty before the first answer and where no rail is remote. */
    latest: (): Record<string, RailProbe> => latest,
  };
}
