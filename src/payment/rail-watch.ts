import type { Clock } from '../lib/clock.ts';
import type { RailProbes } from './settling.ts';

/** Milliseconds between two probes. A service's `/supported` changes when its operator deploys. */
const INTERVAL_MS = 60_000;

/** Keeps the last probe of each remote service, so that `/readyz` sends no request. */
export function createRailWatch(
  probe: () => Promise<RailProbes>,
  clock: Clock,
  log: { warn(detail: object, message: string): void },
) {
  let latest: RailProbes = {};
  let probedMs: number | null = null;

  return {
    /** Probes when a minute has passed since the last probe. Logs when a service starts to fail. */
    refresh: async (): Promise<void> => {
      if (probedMs !== null && clock.nowMs() - probedMs < INTERVAL_MS) return;
      probedMs = clock.nowMs();
      const before = latest;
      latest = await probe();
      for (const [rail, { ok, detail }] of Object.entries(latest))
        if (!ok && before[rail]?.ok !== false)
          log.warn({ rail, detail }, 'a remote service does not settle our payments');
    },
    /** The last probe of each service by its name. Empty before the first answer, and where no rail is remote. */
    latest: (): RailProbes => latest,
  };
}
