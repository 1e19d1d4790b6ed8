import type { Endpoint } from '../catalogue/endpoint.ts';
import type { RailsConfig } from '../config/rails.ts';
import type { Config } from '../config.ts';
import type { Counter } from './counter.ts';
import type { Offer } from './offer.ts';
import { httpProtocol } from './open-protocols.ts';
import { railsUnder } from './open-rails.ts';
import { createPreparedCounter, type Purchase } from './prepared-counter.ts';
import { exactRequirement, type PayTo } from './rails/usdc-exact/describe.ts';

/** What a payment in USDC must be made out to on the configured chain. */
export interface Terms extends PayTo {
  readonly publicOrigin: string;
  readonly rails: RailsConfig;
}

/** The terms that a configuration names. */
export function termsOf({ network, seller, publicOrigin, rails }: TermsConfig): Terms {
  const { caip2, usdc } = network;
  return { network: caip2, usdc, payTo: seller, publicOrigin, rails };
}

type TermsConfig = Pick<Config, 'network' | 'seller' | 'publicOrigin' | 'rails'>;

/** Prepares what a priced endpoint offers in USDC, over each rail that is on. Throws for one without a price. */
export function createOffer(endpoint: Endpoint<never>, terms: Terms): Offer {
  const { price } = endpoint;
  if (!price) throw new Error(`${endpoint.path} has no price`);
  const requirement = exactRequirement(price.units, terms);
  const { rails, publicOrigin } = terms;
  const accepts = railsUnder(rails).map(({ entry }) => entry(requirement, rails));
  return { requirement, accepts, price: price.units, demand: httpProtocol.prepare(endpoint, accepts, publicOrigin) };
}

/** What each priced endpoint costs in USDC under a configuration. An offer is prepared once, whoever asks for it. */
export function offersUnder(config: TermsConfig): OfferOf {
  const terms = termsOf(config);
  const offers = new WeakMap<Endpoint<never>, Offer>();
  return (endpoint) => {
    const offer = offers.get(endpoint) ?? createOffer(endpoint, terms);
    offers.set(endpoint, offer);
    return offer;
  };
}

type OfferOf = (endpoint: Endpoint<never>) => Offer;

/** The counters of the endpoints that are sold in USDC for these offers. */
export function usdcCounters<S>(offerOf: OfferOf, purchase: Purchase<S>): (endpoint: Endpoint<S>) => Counter<unknown> {
  return (endpoint) => createPreparedCounter(endpoint, offerOf(endpoint), purchase);
}
