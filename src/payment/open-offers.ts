import type { Endpoint } from '../catalogue/endpoint.ts';
import type { RailsConfig } from '../config/rails.ts';
import type { Config } from '../config.ts';
import type { Counter } from './counter.ts';
import type { Offer } from './offer.ts';
import { httpProtocol } from './open-protocols.ts';
import { railsUnder } from './open-rails.ts';
import { createPreparedCounter, type Purchase } from './prepared-counter.ts';
import type { RailInfo } from './rail.ts';
import { exactRequirement, type PayTo } from './rails/usdc-exact/describe.ts';
import type { RailProbes } from './settling.ts';

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
 * Returns the USDC offer of each priced endpoint under a configuration. `probes` returns the last probes of the rails' services. Each offer is
 * prepared once, and once more without the rails that are not proven yet.
 */
export function offersUnder(config: TermsConfig, probes: () => RailProbes = () => ({})): OfferOf {
  const terms = termsOf(config);
  const unproven = railsUnder(terms.rails).filter(({ isOfferedOnceProven }) => isOfferedOnceProven);
  const isHidden: IsHidden = (info) => {
    const service = info.service(terms.rails);
    return unproven.includes(info) && !(service && probes()[service.name]?.ok);
  };
  const offers = new WeakMap<Endpoint<never>, Map<string, Offer>>();
  return (endpoint) => {
    const variant = unproven
      .filter(isHidden)
      .map(({ name }) => name)
      .join();
    const variants = offers.get(endpoint) ?? new Map<string, Offer>();
    const offer = variants.get(variant) ?? createOffer(endpoint, terms, isHidden);
    offers.set(endpoint, variants.set(variant, offer));
    return offer;
  };
}

type OfferOf = (endpoint: Endpoint<never>) => Offer;

/** The counters of the endpoints that are sold in USDC for these offers. */
export function usdcCounters<S>(offerOf: OfferOf, purchase: Purchase<S>): (endpoint: Endpoint<S>) => Counter<unknown> {
  return (endpoint) => createPreparedCounter(endpoint, () => offerOf(endpoint), purchase);
}
