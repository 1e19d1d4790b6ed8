import type { Endpoint } from '../catalogue/endpoint.ts';
import type { RailsConfig } from '../config/rails.ts';
import type { Config } from '../config.ts';
import type { Counter } from './counter.ts';
import type { Offer } from './offer.ts';
import { httpProtocol } from './open-protocols.ts';
import { RAILS, type RailList, railsUnder } from './open-rails.ts';
import { createPreparedCounter, type Purchase } from './prepared-counter.ts';
import { exactRequirement, type PayTo } from './rails/usdc-exact/describe.ts';

/** The chain, token and recipient of a USDC payment, with the rails and the origin that an offer names. */
export interface Terms extends PayTo {
  readonly publicOrigin: string;
  readonly rails: RailsConfig;
}

/** Reads the terms from a configuration. */
export function termsOf({ network, seller, publicOrigin, rails }: TermsConfig): Terms {
  const { caip2, usdc } = network;
  return { network: caip2, usdc, payTo: seller, publicOrigin, rails };
}

type TermsConfig = Pick<Config, 'network' | 'seller' | 'publicOrigin' | 'rails'>;

/** Prepares the offer of a priced endpoint in USDC, over each rail that is on. Throws for an endpoint without a price. */
export function createOffer(endpoint: Endpoint<never>, terms: Terms, railList: RailList = RAILS): Offer {
  const { price } = endpoint;
  if (!price) throw new Error(`${endpoint.path} has no price`);
  const requirement = exactRequirement(price.units, terms);
  const { rails, publicOrigin } = terms;
  const accepts = railsUnder(rails, railList).map(({ entry }) => entry(requirement, rails));
  return { requirement, accepts, price: price.units, demand: httpProtocol.prepare(endpoint, accepts, publicOrigin) };
}

/** Returns the USDC offer of each priced endpoint under a configuration. Each offer is prepared once. */
export function offersUnder(config: TermsConfig, railList: RailList = RAILS): OfferOf {
  const terms = termsOf(config);
  const offers = new WeakMap<Endpoint<never>, Offer>();
  return (endpoint) => {
    const offer = offers.get(endpoint) ?? createOffer(endpoint, terms, railList);
    offers.set(endpoint, offer);
    return offer;
  };
}

type OfferOf = (endpoint: Endpoint<never>) => Offer;

/** The counters of the endpoints that are sold in USDC for these offers. */
export function usdcCounters<S>(offerOf: OfferOf, purchase: Purchase<S>): (endpoint: Endpoint<S>) => Counter<unknown> {
  return (endpoint) => createPreparedCounter(endpoint, offerOf(endpoint), purchase);
}
