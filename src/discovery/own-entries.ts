import type { Endpoint } from '../catalogue/endpoint.ts';
import { pathOn, surfacesOf } from '../catalogue/paths.ts';
import type { Listing } from './entry.ts';
import { OWN_TAGS } from './own-tags.ts';

/** This route always fails, so searches do not offer it. */
const NOT_OFFERED = '/selftest/fail';

/** One parameter as documents describe it. */
interface ParamDoc {
  readonly name: string;
  readonly required: boolean;
  readonly description: string;
  readonly schema: Record<string, unknown>;
}

/** The data families by which our routes are listed, by the first segment of a path. A segment that is not here is its own family. */
const FAMILY: Record<string, string> = {
  fees: 'network',
  deploys: 'network',
  rpc: 'network',
  fx: 'network',
  market: 'network',
};

interface OwnEntriesOptions {
  readonly catalogue: readonly Endpoint<never>[];
  /** CAIP-2 of the settlement chain. */
  readonly network: string;
  readonly payTo: string;
  readonly publicOrigin: string;
  /** How an endpoint that is sold in USDC is paid: plainly, from a deposit with the Gateway, or over a channel. */
  railOf(endpoint: Endpoint<never>): 'direct' | 'gateway' | 'channel';
  /** Where the routes are paid that are sold in bitcoin alone. Null while no node can be paid; then they are not listed. */
  readonly lightning: { readonly network: string; readonly payTo: string } | null;
  /** The function that describes parameters in the documents, so that the search describes the same ones. */
  describeParams(endpoint: Endpoint<never>): readonly ParamDoc[];
}

/** Lists our priced routes, each once, from the catalogue alone and in its order: those sold for USDC, and those sold in bitcoin alone. */
export function createOwnListings(options: OwnEntriesOptions): Listing[] {
  const { catalogue, network, payTo, lightning } = options;
  return catalogue.flatMap((endpoint): Listing[] => {
    if (endpoint.price === null || endpoint.path === NOT_OFFERED) return [];
    const keywords = Object.hasOwn(OWN_TAGS, endpoint.path) ? (OWN_TAGS[endpoint.path] ?? '') : '';
    if (surfacesOf(endpoint).includes('paid')) {
      const place = { mount: 'paid', network, payTo, rail: options.railOf(endpoint) } as const;
      return [{ entry: describeEntry(endpoint, place, options), keywords }];
    }
    if (lightning === null) return [];
    const place = { mount: 'lightning', ...lightning, rail: 'lightning' } as const;
    return [{ entry: describeEntry(endpoint, place, options), keywords }];
  });
}

interface Place {
  readonly mount: 'paid' | 'lightning';
  readonly network: string;
  readonly payTo: string;
  readonly rail: Listing['entry']['rail'];
}

function describeEntry(
  endpoint: Endpoint<never>,
  { mount, network, payTo, rail }: Place,
  { publicOrigin, describeParams }: OwnEntriesOptions,
): Listing['entry'] {
  const [first = ''] = endpoint.path.slice(1).split('/');
  return {
    url: publicOrigin + pathOn(endpoint, mount),
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
