import type { Endpoint } from '../catalogue/endpoint.ts';
import { describeParams } from '../catalogue/params.ts';
import { entriesOn, pathOn } from '../catalogue/paths.ts';
import type { NamedChain } from '../lib/service.ts';
import type { Requirement, RequirementOf } from './requirement.ts';

interface PriceListOptions {
  readonly catalogue: readonly Endpoint<never>[];
  readonly requirementOf: RequirementOf;
  /** Every way to pay for an endpoint, as its 402 offers them. */
  acceptsOf(endpoint: Endpoint<never>): readonly Requirement[];
  readonly chain: NamedChain;
  readonly publicOrigin: string;
  readonly nowSeconds: number;
}

/**
 * The answer of `GET /v1/paid`: every route sold for USDC with its price in USD and in base units, in the catalogue's
 * order, and the entries of its 402 where they are others than the plain one that the list's head describes.
 */
export function createPriceList(options: PriceListOptions) {
  const { catalogue, requirementOf, acceptsOf, chain, publicOrigin, nowSeconds } = options;
  const priced = entriesOn(catalogue, 'paid').flatMap((endpoint) =>
    endpoint.price ? [{ endpoint, price: endpoint.price }] : [],
  );
  const isPlain = (endpoint: Endpoint<never>) => acceptsOf(endpoint).includes(requirementOf(endpoint));
  const [first] = priced;
  const plain = priced.find(({ endpoint }) => isPlain(endpoint)) ?? null;
  const terms = plain ? requirementOf(plain.endpoint) : first && acceptsOf(first.endpoint)[0];
  return {
    scheme: terms?.scheme ?? null,
    network: terms?.network ?? null,
    networkName: chain.name,
    playMoney: chain.isPlayMoney,
    asset: terms?.asset ?? null,
    payTo: terms?.payTo ?? null,
    currency: 'USD',
    routes: priced.map(({ endpoint, price }) => ({
      route: `GET ${pathOn(endpoint, 'paid')}`,
      priceUsd: price.usd,
      amount: price.units.toString(),
      ...(acceptsOf(endpoint).length === 1 && isPlain(endpoint) ? {} : { accepts: acceptsOf(endpoint) }),
      label: endpoint.label,
      summary: endpoint.summary,
      freeSummary: endpoint.freeSummary ?? null,
      params: describeParams(endpoint).map(({ name, required, description }) => ({ name, required, description })),
    })),
    source: { name: 'the price list of this service', url: `${publicOrigin}/v1/paid`, retrievedAt: nowSeconds },
  };
}
