import type { Endpoint } from '../catalogue/endpoint.ts';
import { Unavailable } from '../errors.ts';
import type { Ask, Counter } from './counter.ts';
import type { Offer } from './offer.ts';
import type { Presentation } from './order.ts';
import { createFaultFinder } from './parameter-fault.ts';
import type { Demand, Requested } from './protocol.ts';
import type { Delivery } from './receipt.ts';
import { corrected, type RefusalWords } from './refusal.ts';

/** Sells an endpoint for a presented payment. */
export type Purchase<S> = (
  endpoint: Endpoint<S>,
  requirement: Offer['requirement'],
  presentation: Presentation,
) => Promise<Delivery>;

interface PreparedCounterOptions<S> {
  /** Returns the terms of now. */
  offer(): Offer;
  readonly purchase: Purchase<S>;
  readonly sources: S;
  readonly words: RefusalWords;
}

/**
 * The counter of an endpoint whose terms are known before a request. A request gets the price whatever its parameters are, and hears what is wrong with
 * them beside it.
 */
export function createPreparedCounter<S>(
  endpoint: Endpoint<S>,
  { offer, purchase, sources, words }: PreparedCounterOptions<S>,
): Counter<Ask> {
  const faultOf = createFaultFinder(endpoint, sources);
  const requested = ({ method, target, query }: Ask, refusal: string | null): Requested => ({
    ...{ method, target, refusal },
    fault: faultOf(query),
  });
  const demand = (ask: Ask, error?: string): Demand => {
    const { accepts, demand: prepared } = offer();
    // A 402 that offers nothing is no demand: the rails that sell this route are not proven yet.
    if (accepts.length === 0)
      throw new Unavailable('settlement_unavailable', 'no way to pay for this can be offered now');
    return prepared(requested(ask, null), error);
  };

  return {
    read: (ask) => ask,
    demand,
    sell: ({ query, client, identity, signal }, credential) =>
      purchase(endpoint, offer().requirement, {
        ...{ credential, query },
        ...{ client: client(), identity: identity(), signal: signal() },
      }),
    refusalReceipt: ({ settlement }) => settlement,
    demandAgain: (ask, refusal) => {
      const { reason, correction } = refusal;
      const { demand: prepared, accepts } = offer();
      const entries = correction ? corrected(accepts, correction) : undefined;
      return prepared(requested(ask, words(refusal)), reason, entries);
    },
  };
}
