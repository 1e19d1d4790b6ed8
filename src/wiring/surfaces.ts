import { randomBytes } from 'node:crypto';
import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import {
  acceptsOf,
  type Checkout,
  createUsdcCheckout,
  http402,
  type Offer,
  type RailFor,
  type Running,
} from '../payment/checkout.ts';
import { type ChallengeSecrets, refusingSecond } from '../payment/http-auth.ts';
import { LNBTC_REFUSALS } from '../payment/lightning/proof.ts';
import type { Demand, PreparedProtocol, QuotedProtocol, ServiceOrigin, ToolProtocol } from '../payment/protocol.ts';
import { createMppEvm, MPP_REFUSALS } from '../payment/protocols/mpp/evm.ts';
import { x402Http } from '../payment/protocols/x402/http.ts';
import { x402Tool } from '../payment/protocols/x402/tool.ts';
import type { RailInfo } from '../payment/rail.ts';
import { OWN_REFUSALS, type RefusalSentences, type RefusalWords, refusalWords } from '../payment/refusal.ts';
import type { RailProbes } from '../payment/settling.ts';
import { EVM_REFUSALS } from '../payment/usdc/authorization.ts';
import { exactRequirement, type PayTo } from '../payment/usdc/exact.ts';
import type { ServiceKeyStore } from '../store/ports/stores.ts';
import { RAILS, type RailList, railsSelling } from './rails.ts';

// What each surface offers, and in which protocol it asks for the payment. Challenges that need a key are signed by the
// same one on every instance.

export const usdcProtocol: PreparedProtocol & QuotedProtocol = refusingSecond(x402Http);

export const toolProtocol: ToolProtocol = x402Tool;

export interface Terms extends PayTo, ServiceOrigin {
  readonly rails: Config['rails'];
}

type TermsConfig = Pick<Config, 'network' | 'seller' | 'publicOrigin' | 'rails'>;

export function termsOf({ network, seller, publicOrigin, rails }: TermsConfig): Terms {
  const { caip2, usdc } = network;
  return { network: caip2, usdc, payTo: seller, publicOrigin, chain: network, rails };
}

type OfferOf = (endpoint: Endpoint<never>) => Offer;

interface Offered {
  readonly railList?: RailList;
  probes?(): RailProbes;
  /** By default x402. */
  readonly protocol?: PreparedProtocol;
}

/**
 * An offer is prepared once, and once more while a rail that must be proven is not yet. A proven rail stays while no
 * probe is known: a refusal can correct a client only in an entry of its scheme.
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

/** `infos`: the rails in the offer, by default those that sell it. Throws for an endpoint without a price. */
export function createOffer(
  endpoint: Endpoint<never>,
  terms: Terms,
  infos = railsSelling(endpoint.price?.units ?? 0n, terms.rails),
  protocol: PreparedProtocol = usdcProtocol,
): Offer {
  const { price } = endpoint;
  if (!price) throw new Error(`${endpoint.path} has no price`);
  const requirement = exactRequirement(price.units, terms);
  const accepts = infos.map((info) => info.requirement(terms.rails)(requirement));
  return { requirement, accepts, demand: protocol.prepare(endpoint, accepts, terms) };
}

/** MPP and our self-test pay by the plain rail alone. */
export function isSoldPlainly(
  { price }: Endpoint<never>,
  rails: Config['rails'],
  [{ info }]: RailList = RAILS,
): boolean {
  return price !== null && (info.sells?.(price.units, rails) ?? true);
}

/** For a protocol that knows no other rail. Made at any price: what this rail does not sell has an empty checkout. */
export function plainOffers(config: TermsConfig, protocol: PreparedProtocol, [plain]: RailList = RAILS): OfferOf {
  return offersUnder({ ...config, rails: { ...config.rails, exactFrom: 0n } }, { railList: [plain], protocol });
}

export type CheckoutOf<S, D> = (endpoint: Endpoint<S>) => Checkout<unknown, D>;
type Accepts = readonly PaymentRequirements[];

interface Selling<S> {
  readonly railFor: RailFor;
  readonly running: Running<S>;
}

/** The checkouts in USDC. Routes and tools go through the same ones, each in its own words. */
export function createCheckouts<S>({ railFor, running }: Selling<S>) {
  const usdc = { railFor, running, words: wordsOfRefusal };
  return {
    /** `sources` judge a request's parameters before it is paid. */
    usdcRoutes:
      (offerOf: OfferOf, sources: S): CheckoutOf<S, Demand> =>
      (endpoint) =>
        createUsdcCheckout(endpoint, { ...usdc, offer: () => offerOf(endpoint), write: http402(endpoint, sources) }),
    usdcTools:
      (offerOf: OfferOf): CheckoutOf<S, Accepts> =>
      (endpoint) =>
        createUsdcCheckout(endpoint, { ...usdc, offer: () => offerOf(endpoint), write: acceptsOf }),
  };
}

/** What signs challenges, and the protection space that they name. Equal on every instance. */
export interface Challenges {
  readonly secrets: ChallengeSecrets;
  readonly realm: string;
}

type ChallengesNeeds = Pick<Config, 'protocols' | 'publicOrigin'>;

export async function openChallenges(config: ChallengesNeeds, keys: ServiceKeyStore): Promise<Challenges> {
  return { secrets: await readSecrets(config.protocols, keys), realm: new URL(config.publicOrigin).host };
}

/** Null where MPP is off. */
export function mppProtocol(
  { protocols }: ChallengesNeeds,
  { secrets, realm }: Challenges,
  clock: Clock,
): PreparedProtocol | null {
  return protocols.mpp ? createMppEvm(clock, secrets, realm) : null;
}

const KEY = 'challenges';
const KEY_BYTES = 32;

/** The configured secret, else a key of the ledger from the first start. What that has signed stays good afterwards. */
export async function readSecrets(
  config: Pick<Config['protocols'], 'secret' | 'previousSecret'>,
  keys: ServiceKeyStore,
): Promise<ChallengeSecrets> {
  const { secret, previousSecret } = config;
  const ofLedger = await keys.keep(KEY, randomBytes(KEY_BYTES));
  const previous = previousSecret === null ? null : Buffer.from(previousSecret, 'utf8');
  if (secret === null) return { current: ofLedger, previous };
  return { current: Buffer.from(secret, 'utf8'), previous: previous ?? ofLedger };
}

const ofRails = RAILS.map(({ info }) => info.refusals ?? {});

const REFUSALS: readonly RefusalSentences[] = [OWN_REFUSALS, EVM_REFUSALS, LNBTC_REFUSALS, MPP_REFUSALS, ...ofRails];

export const wordsOfRefusal: RefusalWords = refusalWords(REFUSALS);

/** What a buyer is told for this reason; undefined for a reason that is none of ours. */
export const sentenceOfRefusal = (reason: string): string | undefined =>
  REFUSALS.find((sentences) => Object.hasOwn(sentences, reason))?.[reason];
