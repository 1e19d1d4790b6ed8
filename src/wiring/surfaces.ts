import { randomBytes } from 'node:crypto';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { ProtocolsConfig } from '../config/lightning.ts';
import type { RailsConfig } from '../config/payment.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import type { Counter } from '../payment/call.ts';
import { createPreparedCounter, type Offer, type Purchase } from '../payment/checkout.ts';
import { type ChallengeSecrets, refusingSecond, withAuthSchemes } from '../payment/http-auth.ts';
import { LNBTC_REFUSALS } from '../payment/lightning/proof.ts';
import type { Place, PreparedProtocol, QuotedProtocol, ToolProtocol } from '../payment/protocol.ts';
import { createL402 } from '../payment/protocols/l402/l402.ts';
import { createMppEvm } from '../payment/protocols/mpp/evm.ts';
import { createMppLightning } from '../payment/protocols/mpp/lightning.ts';
import { x402Http } from '../payment/protocols/x402/http.ts';
import { x402Tool } from '../payment/protocols/x402/tool.ts';
import type { RailInfo } from '../payment/rail.ts';
import { OWN_REFUSALS, type RefusalWords, refusalWords } from '../payment/refusal.ts';
import type { RailProbes } from '../payment/settling.ts';
import { EVM_REFUSALS } from '../payment/usdc/authorization.ts';
import { exactRequirement, type PayTo } from '../payment/usdc/exact.ts';
import type { ServiceKeyStore } from '../store/ports/stores.ts';
import { RAILS, type RailList, railsSelling } from './rails.ts';

// What each surface offers, and in which protocol it asks for the payment:
// 1. an endpoint's USDC offer names the rails that sell it, and is prepared once;
// 2. MPP knows the plain rail alone;
// 3. challenges that need a key are signed by the same one on every instance;
// 4. a refusal has words for each reason of ours, of the rails and of the schemes.

/** Of the routes that are paid in USDC. */
export const usdcProtocol: PreparedProtocol & QuotedProtocol = refusingSecond(x402Http);

/** Of the priced tools. */
export const toolProtocol: ToolProtocol = x402Tool;

/** Chain, token and recipient of a USDC payment, with the rails, the chain's name and the origin of its offers. */
export interface Terms extends PayTo, Place {
  readonly rails: RailsConfig;
}

type TermsConfig = Pick<Config, 'network' | 'seller' | 'publicOrigin' | 'rails'>;

export function termsOf({ network, seller, publicOrigin, rails }: TermsConfig): Terms {
  const { caip2, usdc } = network;
  return { network: caip2, usdc, payTo: seller, publicOrigin, chain: network, rails };
}

type OfferOf = (endpoint: Endpoint<never>) => Offer;

/** The rails that may be offered, and the last probes of their services. */
interface Offered {
  readonly railList?: RailList;
  probes?(): RailProbes;
  /** The protocol that asks for them: by default x402. */
  readonly protocol?: PreparedProtocol;
}

/**
 * Returns the USDC offer of each priced endpoint. An offer is prepared once, and once more while a rail that must be
 * proven is not yet. A proven rail stays while no probe is known, as when the process that settles has ended: a refusal
 * can correct a client only in an entry of its scheme.
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

/**
 * Prepares the USDC offer of a priced endpoint. `infos`: the rails in it, by default those that sell it.
 * Throws for an endpoint without a price.
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

/** Whether the plain rail sells an endpoint. MPP and our self-test pay by this rail alone. */
export function isSoldPlainly({ price }: Endpoint<never>, rails: RailsConfig, [{ info }]: RailList = RAILS): boolean {
  return price !== null && (info.sells?.(price.units, rails) ?? true);
}

/**
 * Offers of the plain rail alone, in a protocol that knows no other. They are made at any price: a route that this rail
 * does not sell has a counter that offers nothing (`onlyKnown`).
 */
export function plainOffers(config: TermsConfig, protocol: PreparedProtocol, [plain]: RailList = RAILS): OfferOf {
  return offersUnder({ ...config, rails: { ...config.rails, exactFrom: 0n } }, { railList: [plain], protocol });
}

/** The counters of endpoints for these offers. `sources` judge a request's parameters. */
export function usdcCounters<S>(
  offerOf: OfferOf,
  purchase: Purchase<S>,
  sources: S,
): (endpoint: Endpoint<S>) => Counter<unknown> {
  const words = wordsOfRefusal;
  return (endpoint) => createPreparedCounter(endpoint, { offer: () => offerOf(endpoint), purchase, sources, words });
}

/** The protocols that need a key: those of the Lightning routes, which are always on, and MPP. */
export interface Protocols {
  readonly lightning: QuotedProtocol;
  /** Null where MPP is off. */
  readonly mpp: PreparedProtocol | null;
}

type ProtocolsNeeds = Pick<Config, 'protocols' | 'publicOrigin'>;

/** Opens the protocols. Their challenges are signed by the same key on every instance. */
export async function openProtocols(config: ProtocolsNeeds, keys: ServiceKeyStore, clock: Clock): Promise<Protocols> {
  const secrets = await readSecrets(config.protocols, keys);
  const realm = new URL(config.publicOrigin).host;
  return {
    lightning: lightningProtocol(secrets, realm, clock),
    mpp: config.protocols.mpp ? createMppEvm({ secrets, realm, clock }) : null,
  };
}

/** The ledger's key: its name, and its length in bytes. */
const KEY = 'challenges';
const KEY_BYTES = 32;

/**
 * What signs challenges: the configured secret, else a key of the ledger, which is made at the first start.
 * What the ledger's key has signed stays good after the first secret is configured.
 */
export async function readSecrets(
  config: Pick<ProtocolsConfig, 'secret' | 'previousSecret'>,
  keys: ServiceKeyStore,
): Promise<ChallengeSecrets> {
  const { secret, previousSecret } = config;
  const ofLedger = await keys.keep(KEY, randomBytes(KEY_BYTES));
  const previous = previousSecret === null ? null : Buffer.from(previousSecret, 'utf8');
  if (secret === null) return { current: ofLedger, previous };
  return { current: Buffer.from(secret, 'utf8'), previous: previous ?? ofLedger };
}

/**
 * Three spellings of one invoice and one proof. Most L402 clients read only the first line of WWW-Authenticate, so L402
 * stands before `Payment`.
 */
export function lightningProtocol(secrets: ChallengeSecrets, realm: string, clock: Clock): QuotedProtocol {
  return withAuthSchemes(x402Http, [createL402(secrets, clock), createMppLightning(secrets, realm)]);
}

const ofRails = RAILS.map(({ info }) => info.refusals ?? {});

/** The words for every reason for which a payment is refused here. */
export const wordsOfRefusal: RefusalWords = refusalWords([OWN_REFUSALS, EVM_REFUSALS, LNBTC_REFUSALS, ...ofRails]);
