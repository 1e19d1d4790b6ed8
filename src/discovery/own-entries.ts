import type { Endpoint } from '../catalogue/endpoint.ts';
import { describeParams, type ParamDoc } from '../catalogue/params.ts';
import { entriesOn, pathOn } from '../catalogue/paths.ts';
import type { Entry, Listing } from './entry.ts';

// Our own routes as listings: those sold for USDC that have tags, each once, in the catalogue's order.

/** The category by the first segment of a path. A segment that is not here is its own category. */
const FAMILY: Record<string, string> = { fees: 'network', deploys: 'network', rpc: 'network', fx: 'network' };

interface OwnEntriesOptions {
  readonly catalogue: readonly Endpoint<never>[];
  readonly network: string;
  readonly payTo: string;
  readonly publicOrigin: string;
  railOf(endpoint: Endpoint<never>): Entry['rail'];
}

export function createOwnListings(options: OwnEntriesOptions): Listing[] {
  return entriesOn(options.catalogue, 'paid').flatMap((endpoint) => {
    const { tags: keywords } = endpoint;
    return keywords === null ? [] : [{ entry: describeEntry(endpoint, options), keywords }];
  });
}

function describeEntry(endpoint: Endpoint<never>, options: OwnEntriesOptions): Listing['entry'] {
  const { network, payTo, publicOrigin } = options;
  const rail = options.railOf(endpoint);
  const [first = ''] = endpoint.path.slice(1).split('/');
  return {
    url: publicOrigin + pathOn(endpoint, 'paid'),
    method: 'GET',
    priceUsd: endpoint.price?.usd ?? '',
    name: endpoint.path.slice(1),
    label: endpoint.label,
    description: endpoint.summary,
    params: describeParams(endpoint).map(describeParam),
    payTo,
    host: new URL(publicOrigin).host,
    network,
    rail,
    direct: null,
    body: null,
    source: 'own',
    category: FAMILY[first] ?? first,
    site: publicOrigin,
    networks: [network],
    plainNetworks: rail === 'gateway' ? [] : [network],
  };
}

function describeParam({ name, required, description, schema }: ParamDoc): Listing['entry']['params'][number] {
  const [example = null] = Array.isArray(schema.examples) ? schema.examples : [];
  return { name, in: 'query', type: String(schema.type ?? 'string'), description, required, example };
}
