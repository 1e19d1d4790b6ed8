import type { PrimaryLink } from './cluster/primary-link.ts';
import type { Sources } from './endpoints/sources.ts';
import type { OpenLedger } from './open-ledger.ts';
import type { Lightning } from './payment/lightning/lightning.ts';
import type { Payments } from './payment/payments.ts';

interface ReadinessParts {
  payments: Pick<Payments, 'readiness'>;
  lightning: Pick<Lightning<Sources>, 'status'>;
  collector: Sources['collector'];
  ledger: Pick<OpenLedger, 'instance' | 'leads'>;
  /** Null but in a process that only serves. */
  link: PrimaryLink | null;
}

/**
 * Tells whether paid calls can be served now, and why not. Lightning, the collector and the other instances are only told of: paid calls are served
 * from the live chain too, and `/v1/health` is where a lagging collector counts.
 */
export function createReadiness({ payments, lightning, collector, ledger, link }: ReadinessParts) {
  return async () => {
    const counting = { ...(await payments.readiness()), ...(link && { primary: link.status() }) };
    const { collected, backfill } = collector.status();
    const { instance } = ledger;
    return {
      ready: Object.values(counting).every(({ ok }) => ok),
      checks: {
        ...counting,
        ...(instance && { instances: { ok: true, leads: ledger.leads(), living: instance.living().length } }),
        lightning: { ...lightning.status(), ok: true },
        collector: { ok: true, collected: collected?.number ?? null, backfill },
      },
    };
  };
}
