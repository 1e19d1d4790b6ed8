import { z } from 'zod';
import { fitsPath } from './path-template.ts';
import { readJson } from './read-json.ts';
import { parseUsd } from './usdc.ts';

const entrySchema = z.looseObject({
  url: z.string(),
  method: z.literal('GET'),
  priceUsd: z.string(),
  direct: z.looseObject({ priceUsd: z.string() }).nullish(),
});
const answerSchema = z.looseObject({ results: z.array(z.unknown()) });
/** The most entries of one answer of the search. */
const LIMIT = 50;
const MAX_QUERY = 200;

/**
 * The price of a GET on this URL by the discovery search of a percall service, in USDC base units. Null when the search does not list the route.
 * Throws when the search gives no answer.
 */
export async function searchPrice(discovery: URL, url: URL): Promise<bigint | null> {
  // By price, then by the words of the path: a seller may have more routes than one answer holds.
  for (const words of [
    '',
    url.pathname
      .replaceAll(/[^A-Za-z0-9]+/g, ' ')
      .trim()
      .slice(0, MAX_QUERY),
  ]) {
    const entries = await search(discovery, { seller: url.host, limit: String(LIMIT), q: words });
    const entry = entries.find((listed) => isFor(listed.url, url));
    if (entry) return parseUsd(entry.direct?.priceUsd ?? entry.priceUsd);
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

/** Whether a listing is for this request. Its query counts as an example, because the search lists routes. */
function isFor(listed: string, { host, pathname }: URL): boolean {
  const entry = URL.parse(listed);
  return entry !== null && entry.host === host && fitsPath(entry.pathname, pathname);
}

const descriptorSchema = z.looseObject({ btcUsd: z.string() });
const MSAT_PER_BTC = 100_000_000_000n;

/** Converts USDC base units to millisatoshis at the rate of a percall service, rounded up. Null when the service has no rate. */
export async function readRate(discovery: URL): Promise<((units: bigint) => bigint) | null> {
  const descriptor = descriptorSchema.safeParse(await readJson(new URL('/v1/lightning', discovery)));
  const unitsPerBtc = descriptor.success ? parseUsd(descriptor.data.btcUsd) : null;
  if (!unitsPerBtc) return null;
  return (units) => (units * MSAT_PER_BTC + unitsPerBtc - 1n) / unitsPerBtc;
}
