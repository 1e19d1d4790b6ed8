import type { Endpoint } from '../catalogue/endpoint.ts';
import type { RailsConfig } from '../config/rails.ts';
import type { Config } from '../config.ts';
import type { Counter } from './counter.ts';
import type { Offer } from './offer.ts';
import { usdcProtocol } from './open-protocols.ts';
import { RAILS, type RailList, railsSelling } from './open-rails.ts';
import { wordsOfRefusal } from './open-refusal-words.ts';
import { createPreparedCounter, type Purchase } from './prepared-counter.ts';
import type { Place, PreparedProtocol } from './protocol.ts';
import type { RailInfo } from './rail.ts';
import type { RailProbes } from './settling.ts';
import { exactRequirement, type PayTo } from './usdc/exact.ts';

/** The chain, token and recipient of a USDC payment, with the rails, the chain's name and the origin that an offer names. */
export interface Terms extends PayTo, Place {
  readonly rails: RailsConfig;
}

/** Reads the terms from a configuration. */
export function termsOf({ network, seller, publicOrigin, rails }: TermsConfig): Terms {
  const { caip2, usdc } = network;
  return { network: caip2, usdc, payTo: seller, publicOrigin, chain: network, rails };
}

type TermsConfig = Pick<Config, 'network' | 'seller' | 'publicOrigin' | 'rails'>;

/**
 * Prepares the offer of a priced endpoint in USDC. `infos`: the rails in it, by default those that sell it. Throws for
 * an endpoint without a price.
 */
export function createOffer(
  endpoint: Endpoint<never>,
  terms: Terms,
  infos = railsSelling(endpoint.price?.units ?? 0n, terms.rails),
  protocol: PreparedProtocol = usdcProtocol,
): Offer {
  const { price } = endpoint;
  if (!price) throw new Error(`${endpoint.path} has no price`);
  const requirement = exactRequirement(price.units, terms);
  const accepts = infos.map(({ entry }) => entry(requirement, terms.rails));
  return { requirement, accepts, price: price.units, demand: protocol.prepare(endpoint, accepts, terms) };
}

/** The rails that may be offered, and the last probes of their services. */
interface Offered {
  readonly railList?: RailList;
  probes?(): RailProbes;
  /** The protocol that asks for them. By default x402. */
  readonly protocol?: PreparedProtocol;
}

/**
 * Returns the USDC offer of each priced endpoint under a configuration. Each offer is prepared once, and once more while a rail that must be proven is
 * not proven yet. A proven rail stays in the offer while no probe is known, as when the process that settles has ended: a refusal can correct a client
 * only in an entry of its scheme.
 */
export function offersUnder(
  config: TermsConfig,
  { railList = RAILS, probes = () => ({}), protocol }: Offered = {},
): OfferOf {
  const terms = termsOf(config);
  const proven = new Set<string>();
  const isOffered = ({ isOfferedOnceProven, service, name }: RailInfo): boolean => {
    const probe = probes()[service(terms.rails)?.name ?? ''];
    if (probe?.ok) proven.add(name);
    else if (probe) proven.delete(name);
    return !isOfferedOnceProven || proven.has(name);
  };
  const offers = new WeakMap<Endpoint<never>, { selling: readonly RailInfo[]; variants: Map<string, Offer> }>();
  return (endpoint) => {
    const made = offers.get(endpoint) ?? {
      selling: railsSelling(endpoint.price?.units ?? 0n, terms.rails, railList),
      variants: new Map<string, Offer>(),
    };
    const infos = made.selling.filter(isOffered);
    const variant = infos.map(({ name }) => name).join();
    const offer = made.variants.get(variant) ?? createOffer(endpoint, terms, infos, protocol);
    made.variants.set(variant, offer);
    offers.set(endpoint, made);
    return offer;
  };
}

type OfferOf = (endpoint: Endpoint<never>) => Offer;

/** Whether the plain rail sells a priced endpoint. MPP and our self-test pay by this rail alone. */
export function isSoldPlainly({ price }: Endpoint<never>, rails: RailsConfig, [{ info }]: RailList = RAILS): boolean {
  return price !== null && (info.sells?.(price.units, rails) ?? true);
}

/** The counters of the endpoints that are sold in USDC for these offers. `sources` are those that judge a request's parameters. */
export function usdcCounters<S>(
  offerOf: OfferOf,
  purchase: Purchase<S>,
  sources: S,
): (endpoint: Endpoint<S>) => Counter<unknown> {
  const words = wordsOfRefusal;
  return (endpoint) => createPreparedCounter(endpoint, { offer: () => offerOf(endpoint), purchase, sources, words });
}

/**
 * The offers of the plain rail alone, in a protocol that knows no other one. They are made at any price: a route that
 * the plain rail does not sell has a counter that offers nothing (`onlyKnown`).
 */
export function plainOffers(config: TermsConfig, protocol: PreparedProtocol, [plain]: RailList = RAILS): OfferOf {
  return offersUnder({ ...config, rails: { ...config.rails, exactFrom: 0n } }, { railList: [plain], protocol });
}
