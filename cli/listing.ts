import { z } from 'zod';
import { followReference, isObject, own } from '../src/lib/untrusted.ts';
import { parseUsd } from './money.ts';

// What a route costs by a list: the discovery search of a percall service, or the seller's own OpenAPI document.

/** What a route costs by a listing. Null: the listing does not say it in this unit. */
export interface ListedPrice {
  /** In USDC base units. */
  readonly units: bigint | null;
  readonly msat: bigint | null;
}

const priceSchema = z.looseObject({ price: z.looseObject({ amount: z.string() }) });
const offerSchema = z.looseObject({
  intent: z.literal('charge'),
  method: z.string(),
  amount: z.string().regex(/^\d{1,30}$/),
  currency: z.string(),
});

/** A route of a document, and the asset in which an offer in base units counts. */
interface Route {
  readonly path: string;
  readonly method: string;
  readonly asset: string | null;
}

/**
 * The price of this route, from the seller's own OpenAPI document: `x-payment-info` with a price in USD, or with MPP's
 * offers in base units. The
 * lower one counts where it has both. Null when the document has none.
 */
export function listedPriceOf(openapi: unknown, { path, method, asset }: Route): ListedPrice | null {
  const info = paymentInfoOf(openapi, path, method.toLowerCase());
  const usd = priceSchema.safeParse(info);
  const offers = [info, ...arrayOf(z.looseObject({ offers: z.array(z.unknown()) }).safeParse(info).data?.offers)];
  const charges = offers.flatMap((offer) => offerSchema.safeParse(offer).data ?? []);
  const inUsdc = charges.filter(({ currency }) => asset !== null && currency.toLowerCase() === asset.toLowerCase());
  const inSats = charges.filter(({ method, currency }) => method === 'lightning' && /^sat$/i.test(currency));
  const units = lowest([
    usd.success ? parseUsd(usd.data.price.amount) : null,
    ...inUsdc.map(({ amount }) => BigInt(amount)),
  ]);
  const msat = lowest(inSats.map(({ amount }) => BigInt(amount) * 1000n));
  return units === null && msat === null ? null : { units, msat };
}

/**
 * The `x-payment-info` of a path's method. A path that equals the requested one comes before a template that fits it.
 */
function paymentInfoOf(openapi: unknown, path: string, method: string): unknown {
  const paths = own(openapi, 'paths');
  if (!isObject(paths)) return null;
  const template = Object.hasOwn(paths, path) ? path : Object.keys(paths).find((one) => fitsPath(one, path));
  if (template === undefined) return null;
  const item = followReference(openapi, paths[template]);
  return own(own(item, method), 'x-payment-info') ?? null;
}

const arrayOf = (values: readonly unknown[] | undefined): readonly unknown[] => values ?? [];

function lowest(amounts: readonly (bigint | null)[]): bigint | null {
  const known = amounts.filter((amount) => amount !== null);
  return known.reduce<bigint | null>((least, amount) => (least === null || amount < least ? amount : least), null);
}

/** Whether a path is one that a template describes: `{name}` or `:name` stands for any one segment. */
export function fitsPath(template: string, path: string): boolean {
  const [wanted, given] = [segments(template), segments(path)];
  return wanted.length === given.length && wanted.every((part, at) => part === given[at] || isPlaceholder(part));
}

const isPlaceholder = (part: string): boolean => /^(?:\{[^{}]*\}|%7B[^{}]*%7D|:[A-Za-z]\w*)$/i.test(part);
/** The slashes at the end are tried from the first of each row alone: a template is a seller's. */
const segments = (path: string): string[] => path.replace(/(?<!\/)\/+$/, '').split('/');

const entrySchema = z.looseObject({
  url: z.string(),
  method: z.string(),
  priceUsd: z.string(),
  direct: z.looseObject({ priceUsd: z.string() }).nullish(),
  payTo: z.string().nullish(),
  networks: z.array(z.string()).nullish(),
});
const answerSchema = z.looseObject({ results: z.array(z.unknown()) });
/** The most entries of one answer of the search. */
const LIMIT = 50;
const MAX_QUERY = 200;

/** What a list says of a route. */
export interface Listing {
  readonly price: ListedPrice;
  /** The list's name in a refusal. */
  readonly list: string;
  /** Where the route is paid by the list; null: it does not say. */
  readonly payTo: string | null;
  readonly networks: readonly string[] | null;
}

/** The request that a list is asked about. */
interface Wanted {
  readonly method: string;
  readonly url: URL;
}

/**
 * What the discovery search of a percall service says of a request. Null when it does not list the route. Throws when
 * the search gives no answer.
 */
export async function searchListing(discovery: URL, wanted: Wanted): Promise<Listing | null> {
  const { url } = wanted;
  // By price, then by the words of the path: a seller may have more routes than one answer holds.
  for (const words of [
    '',
    url.pathname
      .replaceAll(/[^A-Za-z0-9]+/g, ' ')
      .trim()
      .slice(0, MAX_QUERY),
  ]) {
    const entries = await search(discovery, { seller: url.host, limit: String(LIMIT), q: words });
    const entry = entries.find((listed) => isFor(listed, wanted));
    if (entry) {
      const units = parseUsd(entry.direct?.priceUsd ?? entry.priceUsd);
      const list = `the price in the search of ${discovery.host}`;
      return { price: { units, msat: null }, list, payTo: entry.payTo ?? null, networks: entry.networks ?? null };
    }
    if (entries.length < LIMIT) return null;
  }
  return null;
}

async function search(discovery: URL, query: Record<string, string>) {
  const address = new URL('/v1/market/search', discovery);
  address.search = new URLSearchParams(query).toString();
  const answer = answerSchema.safeParse(await readJson(address));
  if (!answer.success) throw new Error(`the search of ${discovery.host} gives no answer`);
  return answer.data.results.flatMap((result) => entrySchema.safeParse(result).data ?? []);
}

/** Whether an entry is for this request. Its query counts as an example, because the search lists routes. */
function isFor(listed: { url: string; method: string }, { method, url: { host, pathname } }: Wanted): boolean {
  const entry = URL.parse(listed.url);
  return listed.method === method && entry?.host === host && fitsPath(entry.pathname, pathname);
}

const SELLERS_OWN = "the seller's own listed price";

/**
 * What is listed of a request: by the discovery search where it lists the route, else by the seller's own OpenAPI
 * document. Null when neither lists it.
 */
export async function findListing(
  wanted: Wanted,
  { discovery, asset, say }: { discovery: URL | null; asset: string | null; say: (line: string) => void },
): Promise<Listing | null> {
  const listed =
    discovery &&
    (await searchListing(discovery, wanted).catch((error: Error) => {
      say(`warning: ${error.message}; the seller's own list is read instead`);
      return null;
    }));
  if (listed && listed.price.units !== null) return listed;
  const { url, method } = wanted;
  const price = listedPriceOf(await readJson(new URL('/openapi.json', url)), { path: url.pathname, method, asset });
  return price && { price, list: SELLERS_OWN, payTo: listed?.payTo ?? null, networks: listed?.networks ?? null };
}

const descriptorSchema = z.looseObject({ btcUsd: z.string() });
const MSAT_PER_BTC = 100_000_000_000n;

/**
 * Converts USDC base units to millisatoshis at the rate of a percall service, rounded up. Null when the service has no
 * rate.
 */
export async function readRate(discovery: URL): Promise<((units: bigint) => bigint) | null> {
  const descriptor = descriptorSchema.safeParse(await readJson(new URL('/v1/lightning', discovery)));
  const unitsPerBtc = descriptor.success ? parseUsd(descriptor.data.btcUsd) : null;
  if (!unitsPerBtc) return null;
  return (units) => (units * MSAT_PER_BTC + unitsPerBtc - 1n) / unitsPerBtc;
}

/** The most that is read of a listing. A usual one has a few hundred kilobytes. */
const MAX_BYTES = 4 * 1024 * 1024;
const TIMEOUT_MS = 5000;

/** Fetches a JSON document of limited size, without following redirects. Null when there is none, for any reason. */
export async function readJson(url: URL): Promise<unknown> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: 'error' });
    if (!answer.ok || !answer.body) return null;
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of answer.body) {
      bytes += chunk.byteLength;
      if (bytes > MAX_BYTES) return null;
      chunks.push(chunk);
    }
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    return null;
  }
}
