import { isAskedResource } from './challenges.ts';
import { addressIn } from './keys.ts';
import { findListing, type Listing, readRate } from './listing.ts';
import { formatSats, formatUsdc, parseUsd } from './money.ts';
import type { Answer, Call, Limits, Price } from './port.ts';
import { printable } from './printable.ts';
import { foreseenRefusal, isAnswer, problemDetail, type Reply } from './seller.ts';
import type { Buying } from './shop.ts';
import { gatewayBalance } from './wallet/chain.ts';
import { type Pin, usdcValue } from './wallet/record.ts';
import { gatewayOn } from './ways/gateway.ts';
import { statedPrice } from './ways/lightning.ts';
import { pickOffers } from './ways/pick.ts';
import { type Asked, type Offer, Refused, saidBy } from './ways/way.ts';

// What is looked at before anything is counted or signed, in this order: what the seller's hint says, the ways on
// offer,
// the resource, the recipient, the listed price, the call's limits, the rate of sats, a Gateway's deposit.

/** Lightning wallets have no address of their own. */
export const LIGHTNING = 'lightning';

/** The call failed before anything was paid. */
export class Failed extends Error {}

/** A 402 that was checked: its offer, and what it costs. */
interface Checked {
  readonly offer: Offer;
  readonly price: Price;
  /** At which sats count, in base units for a bitcoin; null where no budget needs it. */
  readonly rate: bigint | null;
}

/** Asks without a payment, and checks what is asked for. Throws Failed and Refused. */
export async function askAndCheck(buying: Buying): Promise<Checked | { readonly free: Answer }> {
  const { call, seller, limits, shop } = buying;
  const reply = await seller.send().catch((error: Error) => {
    throw new Failed(`no answer: ${printable(error.message)}${causeOf(error)}`);
  });
  if (isAnswer(reply)) {
    limits.say(`free: status ${reply.status}, nothing to pay`);
    return { free: answerOf(reply) };
  }
  const asked = askedIn(reply);
  const refusal = foreseenRefusal(asked.body);
  if (refusal !== null)
    throw new Refused('bad-request', `${printable(refusal).replace(/\.$/, '')}; nothing was signed`);
  const offers = pickOffers(asked, call, limits, shop.settings.env);
  const pins = shop.wallet.pinsOf(seller.host);
  const offer = offers.find((one) => isPinned(one, pins)) ?? offers[0];
  if (!offer) throw new Refused('no-way', 'nothing is offered');
  checkResource(call, offer);
  const listing = await listingOf(buying, offer);
  checkPinned(offer, { pins, listing, host: seller.host });
  sayOffer(offer, asked, limits);
  const listed = await checkListed(buying, offer, listing);
  checkLimits(offer, limits);
  const { amount, rate } = await checkRate(buying, offer, asked);
  if (offer.way === 'gateway' && limits.via !== 'gateway') await checkDeposit(buying, offer);
  const { way, network, asset, payTo } = offer;
  const description = offer.description === null ? null : printable(offer.description);
  const deposit = way === 'channel' ? `up to ${formatUsdc(limits.maxDeposit)} (${offer.terms})` : null;
  return { offer, rate, price: { way, amount, network, asset, payTo, description, listed, deposit } };
}

export const causeOf = (error: Error): string =>
  error.cause instanceof Error ? ` (${printable(error.cause.message)})` : '';

export const answerOf = ({ status, headers, body }: Reply): Answer => ({
  status,
  contentType: headers.get('content-type'),
  body,
});

/**
 * The 402 of an answer. Throws for any other: only a 402 asks for money. Sellers send WWW-Authenticate with others too.
 */
function askedIn({ status, headers, body }: Reply): Asked {
  const asks = headers.has('payment-required') || headers.has('www-authenticate');
  const text = body.toString('utf8');
  if (status === 402 && asks) return { headers, body: text };
  const reason = problemDetail(text);
  if (reason !== null) throw new Failed(`status ${status}: ${printable(reason)}`);
  const where = headers.get('location');
  const moved = where === null ? '' : `, moved to ${printable(where)}`;
  throw new Failed(`status ${status} without a challenge of x402, L402 or MPP${moved}`);
}

function checkResource(call: Call, { resource, rail }: Offer): void {
  if (resource === null) return;
  const isAsked = call.kind === 'http' ? isAskedResource(call.url, resource) : resource === `mcp://tool/${call.name}`;
  if (isAsked) return;
  const done = rail === LIGHTNING ? 'paid' : 'signed';
  throw new Refused(
    'bad-offer',
    `the offer is for ${printable(resource)}, which is not what was asked for; nothing was ${done}`,
  );
}

const sameText = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

/** Whether an offer pays where the host was paid before. A host that was never paid over this rail has no pin. */
function isPinned(offer: Offer, pins: readonly Pin[]): boolean {
  const inSats = offer.asset === 'BTC';
  const own = pins.filter(({ asset }) => (asset === 'BTC') === inSats);
  if (!offer.namesSeller || own.length === 0) return true;
  return own.some(
    ({ network, asset, payTo }) =>
      network === offer.network && sameText(asset, offer.asset) && sameText(payTo, offer.payTo),
  );
}

interface Known {
  readonly pins: readonly Pin[];
  readonly listing: Listing | null;
  readonly host: string;
}

function checkPinned(offer: Offer, { pins, listing, host }: Known): void {
  const done = offer.rail === LIGHTNING ? 'paid' : 'signed';
  if (!isPinned(offer, pins)) {
    const before = pins.map(({ network, payTo }) => `${payTo} on ${network}`).join(', ');
    const asks = `asks to be paid at ${offer.payTo} on ${offer.network}`;
    const text = `${printable(host)} ${asks}, and was paid at ${before} before`;
    throw new Refused(
      'not-pinned',
      `${text}: percall wallet unpin ${printable(host)} accepts the new one; nothing was ${done}`,
    );
  }
  if (offer.rail === LIGHTNING || listing === null) return;
  if (listing.payTo !== null && !sameText(listing.payTo, offer.payTo))
    throw new Refused(
      'not-pinned',
      `the offer pays ${offer.payTo}, and ${listing.list} is for ${printable(listing.payTo)}; nothing was ${done}`,
    );
  if (listing.networks !== null && !listing.networks.includes(offer.network))
    throw new Refused(
      'not-pinned',
      `the offer is on ${offer.network}, which is not among those of ${listing.list}; nothing was ${done}`,
    );
}

function sayOffer(offer: Offer, asked: Asked, { say }: Limits): void {
  const { amount, network, payTo, description, terms } = offer;
  const price = amount.msat === null ? formatUsdc(amount.units ?? 0n) : formatSats(amount.msat);
  say(`asked:   ${price} on ${printable(network)} to ${payTo}${saidBy(offer)}`);
  if (description) say(`for:     ${printable(description)}`);
  const stated = offer.rail === LIGHTNING ? statedPrice(asked.body) : null;
  if (stated) say(`price:   ${printable(stated.priceUsd)} USD, at ${printable(stated.btcUsd)} USD a bitcoin`);
  if (terms) say(`channel: ${terms}`);
}

const SHOWN = 'the price that was shown for it';

/** What the list says now, and at the most what was shown before. A tool has no other list than that. */
async function listingOf({ call, limits, shop }: Buying, { asset }: Offer): Promise<Listing | null> {
  const { discovery } = shop.settings;
  const inUsdc = asset === 'BTC' ? null : asset;
  const listing = call.kind === 'tool' ? null : await findListing(call, { discovery, asset: inUsdc, say: limits.say });
  const { shown } = limits;
  const units = listing?.price.units ?? null;
  if (shown === null || (units !== null && units <= shown)) return listing;
  const { payTo = null, networks = null } = listing ?? {};
  return { price: { units: shown, msat: listing?.price.msat ?? null }, list: SHOWN, payTo, networks };
}

const UNLISTED = 'no price could be read from the listing; the ceiling alone holds';
/**
 * The part of a price in sats that may come from the rate alone, in percent: the seller's exchange and the buyer's do
 * not
 * agree, and the rate moves while a quote lasts.
 */
const RATE_TOLERANCE = 5n;
const SAT = 1000n;

/**
 * Throws above the listed price, which it shows and returns as text. A price in USD bounds sats where a rate is known.
 */
async function checkListed(buying: Buying, offer: Offer, listing: Listing | null): Promise<string | null> {
  const { say } = buying.limits;
  const { units, msat } = listing?.price ?? { units: null, msat: null };
  if (!listing || (offer.rail === 'usdc' && units === null)) {
    say(`listed:  ${UNLISTED}`);
    return null;
  }
  if (offer.rail === 'usdc') {
    const [asked, most] = [offer.amount.units ?? 0n, units ?? 0n];
    say(`listed:  ${formatUsdc(most)} (${listing.list})`);
    if (asked > most)
      throw new Refused(
        'above-listed',
        `${formatUsdc(asked)} is above ${listing.list} of ${formatUsdc(most)}; nothing was signed`,
      );
    return formatUsdc(most);
  }
  const usd = units === null ? '' : `${formatUsdc(units).replace('USDC', 'USD')}, `;
  // What was shown bounds the list's own sats too: a seller may have raised them since.
  const isConverted = units !== null && (msat === null || buying.limits.shown !== null);
  const byRate = isConverted ? await listedSats(units, buying) : null;
  const most = byRate === null || (msat !== null && msat < byRate) ? msat : byRate;
  if (most === null) {
    say(`listed:  ${usd}without a rate to compare with (${listing.list}); the ceiling alone holds`);
    return null;
  }
  say(`listed:  ${usd}at the most ${formatSats(most)} (${listing.list})`);
  const asked = offer.amount.msat ?? 0n;
  if (asked > most)
    throw new Refused(
      'above-listed',
      `${formatSats(asked)} is above ${formatSats(most)}, the most by ${listing.list}; nothing was paid`,
    );
  return formatSats(most);
}

/**
 * The most that a listed price in USD is in sats: at the discovery service's rate, or at the buyer's own, where it is
 * named, or where a budget in USDC needs it anyway and the price was shown.
 */
async function listedSats(units: bigint, { limits, shop, seller }: Buying): Promise<bigint | null> {
  const { settings, ownRate, wallet } = shop;
  const rate = settings.discovery && (await readRate(settings.discovery));
  if (rate) return wholeSats(rate(units));
  const hasOwn = settings.btcUsd !== null || (limits.shown !== null && wallet.budgets.inUsdc(seller.host));
  const own = hasOwn ? await ownRate() : null;
  return own === null ? null : wholeSats(satsOf(units, own));
}

const MSAT_PER_BTC = 100_000_000_000n;
const satsOf = (units: bigint, rate: bigint): bigint => (units * MSAT_PER_BTC + rate - 1n) / rate;

/** With the tolerance of two rates, rounded up to a whole sat. */
function wholeSats(msat: bigint): bigint {
  const tolerated = (msat * (100n + RATE_TOLERANCE)) / 100n;
  return ((tolerated + SAT - 1n) / SAT) * SAT;
}

function checkLimits({ amount }: Offer, { maxUnits, maxMsat }: Limits): void {
  if (amount.msat !== null) {
    if (amount.msat <= maxMsat) return;
    const text = `${formatSats(amount.msat)} is above the ceiling of ${formatSats(maxMsat)} (--max-sats)`;
    throw new Refused('above-limit', `${text}; nothing was paid`);
  }
  if ((amount.units ?? 0n) <= maxUnits) return;
  const text = `${formatUsdc(amount.units ?? 0n)} is above the ceiling of ${formatUsdc(maxUnits)} (--max-usdc)`;
  throw new Refused('above-limit', `${text}; nothing was signed`);
}

/**
 * Values sats at the higher of the seller's rate and the buyer's own, where a budget in USDC or a named rate asks for
 * it.
 * Throws where the two rates are more than 5 % apart, where the stated price is another one, and where none is known.
 */
async function checkRate(
  { shop, seller }: Buying,
  offer: Offer,
  asked: Asked,
): Promise<Pick<Price, 'amount'> & { rate: bigint | null }> {
  const { wallet, settings, ownRate } = shop;
  const { msat } = offer.amount;
  const isBudgeted = wallet.budgets.inUsdc(seller.host);
  const needed = msat === null ? isBudgeted && wallet.budgets.hasUnvalued() : isBudgeted || settings.btcUsd !== null;
  if (!needed) return { amount: offer.amount, rate: null };
  const own = await ownRate();
  if (own === null || own === 0n)
    throw new Refused(
      'bad-rate',
      'a budget in USDC holds, and the rate of bitcoin is not known now (--btc-usd names one); nothing was paid',
    );
  if (msat === null) return { amount: offer.amount, rate: own };
  const stated = statedPrice(asked.body);
  const theirs = stated && parseUsd(stated.btcUsd);
  if (theirs && differ(theirs, own))
    throw new Refused(
      'bad-rate',
      `the seller counts ${printable(stated.btcUsd)} USD a bitcoin, which is more than 5 % from ${formatUsdc(own)}; ` +
        'nothing was paid',
    );
  const price = stated && parseUsd(stated.priceUsd);
  if (price !== null && msat > wholeSats(satsOf(price, own)))
    throw new Refused(
      'bad-rate',
      `${formatSats(msat)} is more than the stated ${printable(stated?.priceUsd)} USD by the buyer's own rate; ` +
        'nothing was paid',
    );
  const rate = theirs && theirs > own ? theirs : own;
  return { amount: { units: usdcValue(msat, rate), msat }, rate };
}

const differ = (a: bigint, b: bigint): boolean => {
  const [low, high] = a < b ? [a, b] : [b, a];
  return high * 100n > low * (100n + RATE_TOLERANCE);
};

/** Throws unless the wallet has a deposit in the Gateway that covers the price, by the buyer's own endpoint. */
async function checkDeposit({ key, shop }: Buying, { network, asset, amount }: Offer): Promise<void> {
  const { rpcUrl, env } = shop.settings;
  if (key === null) return;
  const only = "the seller takes USDC from a deposit in Circle's Gateway only";
  if (rpcUrl === null)
    throw new Refused(
      'no-wallet',
      `${only}: --gateway pays from yours, or RPC_URL shows whether there is one; nothing was signed`,
    );
  const wallet = gatewayOn(network, env.GATEWAY_WALLET_ADDRESS);
  const left = await gatewayBalance(rpcUrl, { network, wallet, asset, address: addressIn(key) }).catch(
    (error: Error) => {
      throw new Refused(
        'no-wallet',
        `${only}, and the deposit cannot be read: ${printable(error.message)}; nothing was signed`,
      );
    },
  );
  if (left < (amount.units ?? 0n))
    throw new Refused('no-wallet', `${only}, and yours holds ${formatUsdc(left)}; nothing was signed`);
}
