import type { PrimaryLink } from '../cluster/primary-link.ts';
import type { Sources } from '../endpoints/sources.ts';
import type { Clock } from '../lib/clock.ts';
import { keepReading } from '../lib/kept-reading.ts';
import type { Payments } from '../payment/open-payments.ts';
import type { Lightning } from '../payment/rails/lightning/open.ts';
import type { OpenLedger } from './open-ledger.ts';

interface ReadinessParts {
  payments: Pick<Payments, 'readiness'>;
  lightning: Pick<Lightning<Sources>, 'status'>;
  collector: Sources['collector'];
  ledger: Pick<OpenLedger, 'instance' | 'leads'>;
  /** Null but in a process that only serves. */
  link: PrimaryLink | null;
  clock: Clock;
}

/** How long one reading serves all who ask: a load balancer asks each second. */
const KEPT_MS = 1000;

/**
 * Tells whether paid calls can be served now, and why not. Lightning, the collector and the other instances are only told of: paid calls are served
 * from the live chain too, and `/v1/health` is where a lagging collector counts. Each reading asks a provider, and no limit holds those who ask
 * `/readyz`, so that a flood cannot make an instance look unready; it is at most a second old instead, and made at most once a second.
 */
export function createReadiness({ payments, lightning, collector, ledger, link, clock }: ReadinessParts) {
  const read = async () => {
    const counting = { ...(await payments.readiness()), ...(link && { primary: link.status() }) };
    const { collected, backfill } = collector.status();
    const { instance } = ledger;
    return {
      ready: Object.values(counting).every(({ ok }) => ok),
      checks: {
        ...counting,
        ...(instance && {
          instances: { ok: true, leads: ledger.leads(), living: instance.membership.living().length },
        }),
        lightning: { ...lightning.status(), ok: true },
        collector: { ok: true, collected: collected?.number ?? null, backfill },
      },
    };
  };
  return keepReading(read, KEPT_MS, clock);
}
