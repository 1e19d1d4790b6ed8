import { Unavailable } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { boundedMap } from '../../lib/limits/count.ts';
import { type ClientTurns, TurnRefused } from '../../lib/limits/shares.ts';
import { MSAT_PER_SAT, parseDecimal } from '../../lib/units.ts';
import type { LightningStore } from '../../store/ports/lightning.ts';
import type { RateSource } from '../../upstream/rates/bitcoin.ts';
import type { Call } from '../call.ts';
import { clientGone } from '../checkout.ts';
import type { Quote } from '../protocol.ts';
import type { Rail } from '../rail.ts';
import type { RequestBinding } from './binding.ts';
import type { Applicant, Issuance, Newcomers, OfferClient, RecentBuyers } from './issuance.ts';
import type { Issuer } from './issuer.ts';
import { type ReplyQuota, SEAL_BYTES, sealReply } from './kept-replies.ts';
import { type LightningNetwork, lightningRequirement, SKEW_SECONDS } from './terms.ts';

// Makes an offer: a new invoice for an answer that already exists, because a Lightning payment cannot be returned. The
// client has nothing at stake yet, so every step is bounded, cheap ones first. The steps are those of README.md;
// the checkout did step 1, the gate does step 11.

/** A record is kept this long after the last moment of a valid proof, so that it exists whenever one is presented. */
const FORGET_MARGIN_SECONDS = 60;
/** Most handlers take a second or less. */
const BUSY_RETRY_SECONDS = 2;
const BUSY = 'offers_busy';

/** A call as its invoice binds it. */
export interface LightningCall extends Call {
  readonly binding: RequestBinding;
}

export interface LightningRail extends Rail<LightningCall> {
  /** A new invoice. With `mayReuse`, an HTTP client that asks twice within some seconds gets its recent offer again. */
  offer(call: LightningCall, mayReuse: boolean): Promise<Quote>;
}

interface OffersOptions {
  store: LightningStore;
  /** Null where no node is configured. */
  issuer: Issuer | null;
  rates: RateSource;
  issuance: Issuance;
  quota: ReplyQuota;
  buyers: Pick<RecentBuyers, 'has'>;
  newcomers: Newcomers;
  /** Runs the handlers. Its reserve is for buyers of the last hour, and for newcomers that drew on their part. */
  turns: ClientTurns;
  network: LightningNetwork;
  clock: Clock;
}

interface Answer {
  readonly body: Uint8Array;
  readonly rate: string;
}

export function createOffers(options: OffersOptions): LightningRail['offer'] {
  const { store, issuer, quota, buyers, newcomers, network, clock } = options;
  const recent = createRecentQuotes(store, network.id, clock);

  /** Steps 8 to 10: the reply's space, the invoice, and its record with the sealed reply on disk. */
  async function offer(call: LightningCall, asker: OfferClient, answer: Answer, amountMsat: bigint, from: Issuer) {
    const { binding, signal } = call;
    const held = quota.take(asker, answer.body.length + SEAL_BYTES);
    try {
      const { text, invoice } = await from.issue({ amountMsat, binding }, signal);
      const { paymentHash, payee, createdAt, expirySeconds } = invoice;
      const sealed = sealReply(answer.body, binding, paymentHash);
      const forgetAt = (createdAt + expirySeconds + SKEW_SECONDS + FORGET_MARGIN_SECONDS) * 1000;
      const record = { network: network.id, paymentHash, requestHash: binding.hash, amountMsat, payTo: payee };
      await store.recordInvoice({ ...record, issuedAt: clock.nowMs(), forgetAt }, sealed);
      held.keep(paymentHash, forgetAt);
      const payTo = Buffer.from(payee).toString('hex');
      const requirement = lightningRequirement({ network: network.id, amountMsat, payTo, binding, invoice: text });
      return { requirement, invoice: { text, paymentHash, amountMsat, payTo, expiresAt: createdAt + expirySeconds } };
    } catch (error) {
      held.release();
      throw error;
    }
  }

  async function make(call: LightningCall, applicant: Applicant, units: bigint, from: Issuer) {
    quota.check(applicant);
    const answer = await answerOf(options, call, applicant);
    return { answer, ...(await offer(call, applicant, answer, priceMsat(units, answer.rate), from)) };
  }

  return async (call, mayReuse) => {
    const { endpoint, client } = call;
    const { price } = endpoint;
    if (!price) throw new Error(`${endpoint.path} has no price`);
    if (!issuer)
      throw new Unavailable('lightning_unavailable', 'This service has no Lightning node to be paid on.', 300);
    issuer.checkAvailable();
    const known = mayReuse ? await recent.find(call) : null;
    if (known) return known;
    const asker = { client, isBuyer: buyers.has(client), isNewcomer: newcomers.asks(client) };
    const { answer, requirement, invoice } = await make(call, asker, price.units, issuer).catch((error) => {
      if (error instanceof Unavailable && error.code !== BUSY) newcomers.forgive(client);
      throw error;
    });
    newcomers.offered(client);
    const terms = { ...requirement, network: network.id };
    const quote = { requirement: terms, priceUsd: price.usd, btcUsd: answer.rate, invoice };
    recent.keep(call, quote);
    return quote;
  };
}

/** Steps 4 to 7: limits, rate, turn, handler. An attempt that ends before the handler is not counted. */
async function answerOf(options: OffersOptions, call: LightningCall, asker: Applicant): Promise<Answer> {
  const { rates, turns } = options;
  const { signal } = call;
  const { hasReserve, takeBack } = await options.issuance(asker);
  let hasBegun = false;
  const run = (): Promise<Uint8Array> => {
    hasBegun = true;
    // Offers that use a reserve read the chain before the other offers.
    return call.run(hasReserve ? 'offer' : 'admit', signal);
  };
  try {
    const { rate } = await rates.current();
    const body = await turns.run(asker.client, signal, run, hasReserve);
    return { body, rate };
  } catch (error) {
    if (!hasBegun) await takeBack();
    // A handler that ran without an answer uses up a newcomer's turn, as an offer does. A failure of ours does not.
    else if (!(error instanceof Unavailable)) options.newcomers.offered(asker.client);
    if (signal.aborted) throw clientGone();
    throw error instanceof TurnRefused ? busy() : error;
  }
}

function busy(): Unavailable {
  const detail = 'Too many offers are being made now; nothing was charged. Try again shortly.';
  return new Unavailable(BUSY, detail, BUSY_RETRY_SECONDS);
}

/** Some clients ask twice before they pay, within a second. */
const REUSE_MS = 5000;
/** More quotes than the default limits allow within REUSE_MS. */
const MOST = 1000;

interface RecentQuotes {
  /** The client's recent quote for the same request, unless it has been paid; null without one. */
  find(call: Asked): Promise<Quote | null>;
  keep(call: Asked, quote: Quote): void;
}

type Asked = Pick<LightningCall, 'target' | 'identity' | 'binding'>;

/**
 * A client that asks twice over HTTP gets one invoice and causes one run. By identity, as clients may share an address.
 * A tool's offer is never given out twice.
 */
export function createRecentQuotes(
  store: Pick<LightningStore, 'findClaim'>,
  network: string,
  clock: Clock,
): RecentQuotes {
  const quotes = boundedMap<string, { quote: Quote; until: number }>(MOST);
  return {
    find: async (call) => {
      const kept = call.target.kind === 'http' ? quotes.peek(keyOf(call)) : undefined;
      if (!kept || kept.until <= clock.nowMs()) return null;
      // A claim may be made by another process. A buyer who asks again after it has paid wants another answer.
      return (await store.findClaim({ network, paymentHash: kept.quote.invoice.paymentHash })) ? null : kept.quote;
    },
    keep: (call, quote) => {
      if (call.target.kind === 'http') quotes.set(keyOf(call), { quote, until: clock.nowMs() + REUSE_MS });
    },
  };
}

function keyOf({ identity, binding }: Asked): string {
  return `${identity} ${Buffer.from(binding.hash).toString('base64')}`;
}

/** Satoshis per bitcoin (10^8) divided by millionths per dollar (10^6). */
const SATS_PER_BTC_BY_UNITS_PER_USD = 100n;

/** Whole sats, rounded up, at least 1. `usdUnits`: millionths of a dollar. RangeError for a bad rate or price. */
export function priceMsat(usdUnits: bigint, btcUsd: string): bigint {
  const rate = parseDecimal(btcUsd);
  if (rate === null || rate.digits === 0n) throw new RangeError('a BTC/USD rate that is no positive decimal');
  if (usdUnits < 0n) throw new RangeError('a negative price');
  const dividend = usdUnits * SATS_PER_BTC_BY_UNITS_PER_USD * 10n ** BigInt(rate.scale);
  const sats = (dividend + rate.digits - 1n) / rate.digits;
  return (sats > 0n ? sats : 1n) * MSAT_PER_SAT;
}
