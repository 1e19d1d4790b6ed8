import type { Endpoint } from '../catalogue/endpoint.ts';
import type { RailsConfig } from '../config/rails.ts';
import type { Config } from '../config.ts';
import type { Counter } from './counter.ts';
import type { Offer } from './offer.ts';
import { httpProtocol } from './open-protocols.ts';
import { railsUnder } from './open-rails.ts';
import { createPreparedCounter, type Purchase } from './prepared-counter.ts';
import type { RailInfo, RailName } from './rail.ts';
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

/** Whether a rail is not offered now. */
type IsHidden = (info: RailInfo) => boolean;

const NONE_HIDDEN: IsHidden = () => false;

/**
 * Prepares the offer of a priced endpoint in USDC, over each rail that is on and not hidden. Throws for an endpoint without a price.
 */
export function createOffer(endpoint: Endpoint<never>, terms: Terms, isHidden = NONE_HIDDEN): Offer {
  const { price } = endpoint;
  if (!price) throw new Error(`${endpoint.path} has no price`);
  const requirement = exactRequirement(price.units, terms);
  const { rails, publicOrigin } = terms;
  const accepts = railsUnder(rails)
    .filter((info) => !isHidden(info))
    .map(({ entry }) => entry(requirement, rails));
  return { requirement, accepts, price: price.units, demand: httpProtocol.prepare(endpoint, accepts, publicOrigin) };
}

/**
 * Returns the USDC offer of each priced endpoint under a configuration. `isClosed` says whether a rail cannot settle now. Each offer is prepared
 * once, and once more without the rails that are hidden while they are closed.
 */
export function offersUnder(config: TermsConfig, isClosed: (name: RailName) => boolean = () => false): OfferOf {
  const terms = termsOf(config);
  const hideable = railsUnder(terms.rails).filter(({ isHiddenWhileClosed }) => isHiddenWhileClosed);
  const offers = new WeakMap<Endpoint<never>, Map<string, Offer>>();
  return (endpoint) => {
    const hidden = hideable.filter(({ name }) => isClosed(name));
    const variant = hidden.map(({ name }) => name).join();
    const variants = offers.get(endpoint) ?? new Map<string, Offer>();
    const offer = variants.get(variant) ?? createOffer(endpoint, terms, (info) => hidden.includes(info));
    offers.set(endpoint, variants.set(variant, offer));
    return offer;
  };
}

type OfferOf = (endpoint: Endpoint<never>) => Offer;

/** The counters of the endpoints that are sold in USDC for these offers. */
export function usdcCounters<S>(offerOf: OfferOf, purchase: Purchase<S>): (endpoint: Endpoint<S>) => Counter<unknown> {
  return (endpoint) => createPreparedCounter(endpoint, () => offerOf(endpoint), purchase);
}
