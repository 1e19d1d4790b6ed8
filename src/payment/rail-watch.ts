import type { Clock } from '../lib/clock.ts';
import type { RailProbes } from './settling.ts';

/** Milliseconds between two probes. A service's `/supported` changes when its operator deploys. */
const INTERVAL_MS = 60_000;
/** Milliseconds after a failed probe. One lost answer must not keep the service unready for a minute. */
const AGAIN_MS = 5_000;

/** Keeps the last probe of each remote service, so that `/readyz` sends no request. */
export function createRailWatch(
  probe: () => Promise<RailProbes>,
  clock: Clock,
  log: { warn(detail: object, message: string): void },
) {
  let latest: RailProbes = {};
  let probedMs: number | null = null;

  return {
    /** Probes when a minute has passed since the last probe, or five seconds after a failed one. Logs when a service starts to fail. */
    refresh: async (): Promise<void> => {
      const pauseMs = Object.values(latest).every(({ ok }) => ok) ? INTERVAL_MS : AGAIN_MS;
      if (probedMs !== null && clock.nowMs() - probedMs < pauseMs) return;
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
