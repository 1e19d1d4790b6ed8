import type { Sources } from '../endpoints/sources.ts';
import type { Clock } from '../lib/clock.ts';
import { createOutcomes } from '../lib/outcomes.ts';
import { keepReading } from '../lib/tasks.ts';
import type { Lightning } from '../payment/lightning/open.ts';
import type { ClockWatch } from './clock-watch.ts';
import type { OpenLedger } from './open-ledger.ts';
import type { Payments } from './payments.ts';

interface ReadinessParts {
  payments: Pick<Payments, 'readiness'>;
  lightning: Pick<Lightning<Sources>, 'status'>;
  collector: Sources['collector'];
  ledger: Pick<OpenLedger, 'instance' | 'leads'>;
  clock: Clock;
  clockWatch: Pick<ClockWatch, 'status'>;
}

/** How long a reading is reused, in milliseconds: a load balancer asks each second. */
const KEPT_MS = 1000;

/**
 * Reports whether paid calls can be served now, and why not. Each rail that refuses everything fails its own check.
 * Only the first rail counts towards `ready`: with the others down, there is still a way to pay. The collector, the
 * clock and the other instances do not count either: paid calls can read the live chain, `/v1/health` covers a lagging
 * collector, and a clock that is off refuses good payments or fails to settle late ones, but moves no money wrongly.
 * `/readyz` has no rate limit, so that a flood cannot make an instance look unready. Each reading asks a provider, so
 * it is made at most once a second and reused for a second.
 */
export function createReadiness(parts: ReadinessParts) {
  const { payments, lightning, collector, ledger, clock, clockWatch } = parts;
  const outcomes = createOutcomes(clock);
  const read = async () => {
    const { needed: counting, others } = await payments.readiness();
    const rails = { ...others, lightning: lightning.status() };
    for (const [name, { ok, detail = 'no detail' }] of Object.entries({ ...counting, ...rails })) {
      if (ok) outcomes.succeeded(name);
      else outcomes.failed(name, detail);
    }
    const { collected, backfill, fault } = collector.status();
    const { instance } = ledger;
    return {
      ready: Object.values(counting).every(({ ok }) => ok),
      failing: Object.keys(counting).filter((name) => !counting[name]?.ok),
      // The status page says how many of them do not work.
      ways: Object.keys(others),
      checks: {
        ...counting,
        ...(instance && {
          instances: { ok: true, leads: ledger.leads(), living: instance.membership.living().length },
        }),
        clock: clockWatch.status(),
        ...rails,
        collector: {
          ok: true,
          ...(fault !== null && { detail: `nothing new is stored: ${fault}` }),
          collected: collected?.number ?? null,
          backfill,
        },
      },
    };
  };
  // When each check held and failed last, for the status page.
  return Object.assign(keepReading(read, KEPT_MS, clock), { outcomeOf: outcomes.of });
}
