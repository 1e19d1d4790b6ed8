import { nearest } from '../lib/edit-distance.ts';
import { formatUnits, USDC_DECIMALS } from '../lib/units.ts';
import { type Endpoint, type Json, type Price, priceFromUsd } from './endpoint.ts';
import { PREFIX } from './paths.ts';

// How the operator's PRICES and ROUTES_OFF change the catalogue. Every surface gets the result, so none can differ. A
// free answer that names its priced detail names the new price, or no detail where that is off.

interface Changes {
  /** Each as `chain/wallet=0.004`. */
  readonly prices: readonly string[];
  /** Each as `chain/wallet`. */
  readonly routesOff: readonly string[];
}

export interface Offered<E> {
  readonly catalogue: readonly E[];
  /** The priced entries that were taken out, in the catalogue's order. They answer payments from before. */
  readonly off: readonly E[];
  /** What is wrong with the changes, a line each, with the key and the entry. */
  readonly problems: readonly string[];
}

/** With it buyers, and our own self-test, check that a failing call costs nothing. */
const MUST_STAY = 'selftest/fail';
const MOST_EDITS = 3;

/** A change with a problem has no effect. An unchanged entry stays the same object. */
export function offeredCatalogue<S>(declared: readonly Endpoint<S>[], changes: Changes): Offered<Endpoint<S>> {
  const routes = new Map(declared.map(({ path }) => [path.slice(1), false]));
  for (const { path, access } of declared) if (access === 'paid') routes.set(path.slice(1), true);
  const problems: string[] = [];
  const prices = new Map<string, Price>();
  for (const { entry, route, problem } of named('PRICES', changes.prices, routes)) {
    const price = problem ? null : readPrice(entry);
    if (price && typeof price !== 'string') prices.set(route, price);
    else problems.push(faultOf('PRICES', entry, problem ?? String(price)));
  }
  const away = new Set<string>();
  for (const { entry, route, problem } of named('ROUTES_OFF', changes.routesOff, routes)) {
    const reason =
      problem ?? (route === MUST_STAY ? 'it stays: with it buyers check that a failing call is free' : null);
    if (reason) problems.push(faultOf('ROUTES_OFF', entry, reason));
    else away.add(route);
  }
  const priced = declared.map((endpoint) =>
    endpoint.access === 'paid'
      ? withPrice(endpoint, prices.get(endpoint.path.slice(1)))
      : withDetail(endpoint, prices, away),
  );
  const isOff = ({ access, path }: Endpoint<S>): boolean => access === 'paid' && away.has(path.slice(1));
  const off = priced.filter(isOff).map((endpoint) => Object.freeze({ ...endpoint, isOff: true as const }));
  return { catalogue: priced.filter((endpoint) => !isOff(endpoint)), off, problems };
}

interface Named {
  readonly entry: string;
  readonly route: string;
  /** Why the route cannot be named; null for a priced route that is named once. */
  readonly problem: string | null;
}

/** `routes` says of each declared route whether it is sold. */
function named(
  key: 'PRICES' | 'ROUTES_OFF',
  entries: readonly string[],
  routes: ReadonlyMap<string, boolean>,
): Named[] {
  const seen = new Set<string>();
  return entries.map((entry) => {
    const route = key === 'PRICES' ? (entry.split('=', 1)[0] ?? '').trim() : entry;
    const isSold = routes.get(route);
    const isAgain = seen.has(route);
    seen.add(route);
    if (isSold === undefined) return { entry, route, problem: `there is no route ${route}${near(route, routes)}` };
    if (!isSold) return { entry, route, problem: `${route} is free` };
    return { entry, route, problem: isAgain ? `${route} is named twice` : null };
  });
}

function near(route: string, routes: ReadonlyMap<string, boolean>): string {
  const bare = route.replace(/^\/?(v1\/)?((paid|lightning|mpp)\/)?/, '');
  const best = nearest(bare, routes.keys(), MOST_EDITS);
  return best ? `; did you mean ${best.name}?` : '';
}

/** The price of `route=usd` without needless zeros, or what is wrong with it. */
function readPrice(entry: string): Price | string {
  const [, usd = '', ...more] = entry.split('=');
  if (!entry.includes('=') || more.length > 0) return 'write ROUTE=USD, as in chain/wallet=0.004';
  try {
    const { units } = priceFromUsd(usd.trim());
    return priceFromUsd(formatUnits(units, USDC_DECIMALS));
  } catch (error) {
    return (error as Error).message;
  }
}

function faultOf(key: string, entry: string, problem: string): string {
  return `${key}: "${entry}": ${problem}`;
}

function withPrice<S>(endpoint: Endpoint<S>, price: Price | undefined): Endpoint<S> {
  return price ? Object.freeze({ ...endpoint, price }) : endpoint;
}

/** The priced detail that a free answer names, as `endpoints/fields.ts` makes it. */
type Detail = Readonly<Record<string, unknown>> & { readonly path: string };

function withDetail<S>(
  endpoint: Endpoint<S>,
  prices: ReadonlyMap<string, Price>,
  away: ReadonlySet<string>,
): Endpoint<S> {
  const detail = endpoint.example.result.detail as Detail | undefined;
  const route = detail?.path.slice(`${PREFIX.paid}/`.length) ?? '';
  const [price, isOff] = [prices.get(route), away.has(route)];
  if (!isOff && !price) return endpoint;
  const changed = (reply: Json): Json => {
    if (!isOff) return { ...reply, detail: { ...(reply.detail as Detail), priceUsd: price?.usd } };
    const { detail: _sold, ...rest } = reply;
    return rest;
  };
  const { params, result } = endpoint.example;
  return Object.freeze({
    ...endpoint,
    result: isOff ? endpoint.result.omit({ detail: true }) : endpoint.result,
    example: { params, result: changed(result) },
    run: async (given: unknown, sources: S, signal: AbortSignal) =>
      changed((await endpoint.run(given, sources, signal)) as Json),
  });
}
