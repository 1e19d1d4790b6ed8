import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Ask, Counter } from './counter.ts';
import type { Offer } from './offer.ts';
import type { Presentation } from './order.ts';
import type { Demand } from './protocol.ts';
import type { Delivery } from './receipt.ts';
import { corrected } from './refusal.ts';

/** Sells an endpoint for a presented payment. */
export type Purchase<S> = (
  endpoint: Endpoint<S>,
  requirement: Offer['requirement'],
  presentation: Presentation,
) => Promise<Delivery>;

/** The counter of an endpoint whose terms are known before a request. `offer` returns the terms of now. A request gets the price before its parameters are checked. */
export function createPreparedCounter<S>(
  endpoint: Endpoint<S>,
  offer: () => Offer,
  purchase: Purchase<S>,
): Counter<Ask> {
  const demand = (ask: Ask, error?: string): Demand => offer().demand(ask, error);

  return {
    read: (ask) => ask,
    demand,
    sell: ({ query, client, identity, signal }, credential) =>
      purchase(endpoint, offer().requirement, {
        ...{ credential, query },
        ...{ client: client(), identity: identity(), signal: signal() },
      }),
    refusalReceipt: ({ settlement }) => settlement,
    demandAgain: (ask, { reason, correction }) => {
      const { demand: prepared, accepts } = offer();
      return prepared(ask, reason, correction ? corrected(accepts, correction) : undefined);
    },
  };
}
