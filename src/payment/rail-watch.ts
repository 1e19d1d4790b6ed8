import type { Clock } from '../lib/clock.ts';
import type { RailProbes } from './settling.ts';

/** Between two probes, in milliseconds: `/supported` changes with a deployment of theirs. */
const INTERVAL_MS = 60_000;
/** After a probe that found a rail unwell: one lost answer must not keep the service unready for a minute. */
const AGAIN_MS = 5_000;

/** Keeps the last probe of each remote service, so that `/readyz` sends no request. */
export function createRailWatch(
  probe: () => Promise<RailProbes>,
  clock: Clock,
  log: { warn(detail: object, message: string): void },
) {
  let latest: RailProbes = {};
  let askedMs: number | null = null;

  return {
    /** Asks when a minute has gone by since the last time, or five seconds where a rail was unwell; logs when a rail turns bad. */
    refresh: async (): Promise<void> => {
      const pauseMs = Object.values(latest).every(({ ok }) => ok) ? INTERVAL_MS : AGAIN_MS;
      if (askedMs !== null && clock.nowMs() - askedMs < pauseMs) return;
      askedMs = clock.nowMs();
      const before = latest;
      latest = await probe();
      for (const [rail, { ok, detail }] of Object.entries(latest))
        if (!ok && before[rail]?.ok !== false) log.warn({ rail, detail }, 'a rail does not settle what we sell for');
    },
    /** A rail's name and how it was; empty before the first answer and where no rail is remote. */
    latest: (): RailProbes => latest,
  };
}
