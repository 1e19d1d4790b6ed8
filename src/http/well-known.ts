import type { Endpoint } from '../catalogue/endpoint.ts';
import { describeParams } from '../catalogue/params.ts';
import { entriesOn, pathOn } from '../catalogue/paths.ts';
import type { Requirement } from './requirement.ts';

interface WellKnownOptions {
  readonly catalogue: readonly Endpoint<never>[];
  /** Every way to pay for an endpoint, as its 402 offers them. */
  acceptsOf(endpoint: Endpoint<never>): readonly Requirement[];
  readonly publicOrigin: string;
}

/**
 * The answer of `GET /.well-known/x402`: the USDC routes in the form of a facilitator's list of resources, and a list of addresses for older crawlers.
 * The drafts are not final. Only the 402 of a route is binding.
 */
export function createWellKnown({ catalogue, acceptsOf, publicOrigin }: WellKnownOptions) {
  const items = entriesOn(catalogue, 'paid').map((endpoint) => ({
    resource: publicOrigin + pathOn(endpoint, 'paid'),
    type: 'http',
    x402Version: 2,
    accepts: acceptsOf(endpoint),
    metadata: {
      method: 'GET',
      name: endpoint.label,
      description: endpoint.summary,
      mimeType: 'application/json',
      priceUsd: endpoint.price?.usd ?? null,
      params: describeParams(endpoint).map((param) => ({ ...param, in: 'query' })),
      output: { example: endpoint.example.result },
    },
  }));
  const at = (path: string) => publicOrigin + path;
  return {
    x402Version: 2,
    version: 1,
    name: 'percall',
    resources: items.map(({ resource }) => resource),
    items,
    documents: {
      openapi: at('/openapi.json'),
      openapiPriced: at('/openapi-priced.json'),
      llms: at('/llms.txt'),
      prices: at('/v1/paid'),
      lightning: at('/v1/lightning'),
      search: at('/v1/market/search'),
      mcp: at('/mcp'),
    },
  };
}
