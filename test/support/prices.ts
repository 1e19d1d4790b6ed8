import { catalogue } from '../../src/catalogue/catalogue.ts';
import type { Price } from '../../src/catalogue/endpoint.ts';
import { entriesOn } from '../../src/catalogue/paths.ts';

/**
 * The catalogue's price of a priced route: `/chain/wallet`, also with the prefix of a surface and with a query. Throws for
 * a route that the catalogue does not have. A test whose sums are literal gives its service a price of its own (`PRICES`).
 */
export function priceOf(route: string): Price {
  const path = route.replace(/^\/v1\/[a-z]+/, '').replace(/\?.*$/, '');
  const endpoint = catalogue.find((candidate) => candidate.path === path && candidate.access === 'paid');
  if (!endpoint?.price) throw new Error(`the catalogue has no priced route ${route}`);
  return endpoint.price;
}

/** The routes that are sold in USDC, with the catalogue's prices; the cheapest first, else in the catalogue's order. */
export function usdcRoutes(): { readonly path: string; readonly price: Price }[] {
  return entriesOn(catalogue, 'paid')
    .map(({ path }) => ({ path, price: priceOf(path) }))
    .sort((a, b) => Number(a.price.units - b.price.units));
}

/** The price of the dearest route that is sold in USDC: the ceiling of a client that can buy each of them. */
export const dearest = (): Price => usdcRoutes().at(-1)?.price ?? priceOf('');

/** The lowest price that is above a route's own. Throws when the route is among the dearest. */
export function priceAbove(path: string): Price {
  const { units } = priceOf(path);
  const above = usdcRoutes().find(({ price }) => price.units > units);
  if (!above) throw new Error(`no route costs more than ${path}`);
  return above.price;
}
