import { formatSats } from '../lightning/sats.ts';
import { type ListedPrice, listedPriceOf } from './listed-price.ts';
import { readJson } from './read-json.ts';
import { readRate, searchPrice } from './search-price.ts';
import { formatUsdc } from './usdc.ts';

type Say = (line: string) => void;

/** The amounts that a buyer compares before it signs, in USDC base units. */
export interface Spending {
  readonly asked: bigint;
  readonly ceiling: bigint;
  /** Null when no price is listed. */
  readonly listed: bigint | null;
  /** The listed price as a refusal names it. By default "the seller's own listed price". */
  readonly list?: string;
}

const SELLERS_OWN = "the seller's own listed price";

/** Why this must not be paid, as text for the buyer; null when it may be paid. */
export function refusalOf({ asked, ceiling, listed, list = SELLERS_OWN }: Spending): string | null {
  if (asked > ceiling) return `${formatUsdc(asked)} is above the ceiling of ${formatUsdc(ceiling)} (--max-usdc)`;
  if (listed !== null && asked > listed) return `${formatUsdc(asked)} is above ${list} of ${formatUsdc(listed)}`;
  return null;
}

/** The URL to buy, and where its listed price is looked up. */
interface PriceCheck {
  readonly url: URL;
  /** A percall service whose search lists prices; null: the seller's own list alone. */
  readonly discovery: URL | null;
  readonly say: Say;
}

/** Prints the listed price. Throws when the asked amount, in base units of the asset, is above it or above the ceiling. */
export async function checkUsdcPrice(check: PriceCheck, asked: bigint, ceiling: bigint, asset: string): Promise<void> {
  const found = await findPrice(check, asset);
  const listed = found?.price.units ?? null;
  check.say(`listed:  ${found && listed !== null ? `${formatUsdc(listed)} (${found.list})` : UNLISTED}`);
  const refusal = refusalOf({ asked, ceiling, listed, ...(found && { list: found.list }) });
  if (refusal !== null) throw new Error(`${refusal}; nothing was signed`);
}

/**
 * The part of a price in sats that may come from the rate alone, in percent: the seller's exchange and the buyer's do not agree, and the rate moves while
 * a quote lasts.
 */
const RATE_TOLERANCE = 5n;
const SAT = 1000n;

/**
 * Prints the listed price. Throws when the asked sats are above it. A price in USD is compared at a percall service's rate only, and counts with 5 % more,
 * rounded up to a whole sat. The ceiling is not checked here: `checkOffer` and `checkAskedInvoice` do that.
 */
export async function checkSatsPrice(check: PriceCheck, askedMsat: bigint): Promise<void> {
  const { say, discovery } = check;
  const found = await findPrice(check, null);
  if (!found) return say(`listed:  ${UNLISTED}`);
  const { list, price } = found;
  const rate = price.msat === null && discovery ? await readRate(discovery) : null;
  const limit = price.msat ?? (rate && price.units !== null ? wholeSats(rate(price.units)) : null);
  const usd = price.units === null ? '' : `${formatUsdc(price.units).replace('USDC', 'USD')}, `;
  if (limit === null) return say(`listed:  ${usd}without a rate to compare with (${list}); the ceiling alone holds`);
  say(`listed:  ${usd}at the most ${formatSats(limit)} (${list})`);
  if (askedMsat > limit)
    throw new Error(`${formatSats(askedMsat)} is above ${formatSats(limit)}, the most by ${list}; nothing was paid`);
}

const UNLISTED = 'no price could be read from the listing; the ceiling alone holds';

function wholeSats(msat: bigint): bigint {
  const tolerated = (msat * (100n + RATE_TOLERANCE)) / 100n;
  return ((tolerated + SAT - 1n) / SAT) * SAT;
}

/** The listed price of a GET on this URL: by the discovery search where it lists the route, else by the seller's own OpenAPI document. */
async function findPrice(
  check: PriceCheck,
  asset: string | null,
): Promise<{ price: ListedPrice; list: string } | null> {
  const { url, discovery, say } = check;
  if (discovery) {
    const units = await searchPrice(discovery, url).catch((error: Error) => {
      say(`warning: ${error.message}; the seller's own list is read instead`);
      return null;
    });
    if (units !== null) return { price: { units, msat: null }, list: `the price in the search of ${discovery.host}` };
  }
  const price = listedPriceOf(await readJson(new URL('/openapi.json', url)), url.pathname, asset);
  return price && { price, list: SELLERS_OWN };
}
