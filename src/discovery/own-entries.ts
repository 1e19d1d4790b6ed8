import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, pathOn } from '../catalogue/paths.ts';
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
const FAMILY: Record<string, string> = { fees: 'network', deploys: 'network', rpc: 'network', fx: 'network' };

interface OwnEntriesOptions {
  readonly catalogue: readonly Endpoint<never>[];
  /** CAIP-2 of the settlement chain. */
  readonly network: string;
  readonly payTo: string;
  readonly publicOrigin: string;
  /** The function that describes parameters in the documents, so that the search describes the same ones. */
  describeParams(endpoint: Endpoint<never>): readonly ParamDoc[];
}

/** Lists our routes that are sold for USDC, from the catalogue alone and in its order. */
export function createOwnListings(options: OwnEntriesOptions): Listing[] {
  const { catalogue, network, payTo, publicOrigin } = options;
  return entriesOn(catalogue, 'paid').flatMap((endpoint): Listing[] => {
    if (endpoint.price === null || endpoint.path === NOT_OFFERED) return [];
    const [first = ''] = endpoint.path.slice(1).split('/');
    const entry = {
      url: publicOrigin + pathOn(endpoint, 'paid'),
      method: 'GET' as const,
      priceUsd: endpoint.price.usd,
      name: endpoint.path.slice(1),
      label: endpoint.label,
      description: endpoint.summary,
      params: options.describeParams(endpoint).map(describe),
      payTo,
      host: new URL(publicOrigin).host,
      network,
      rail: 'direct' as const,
      direct: null,
      body: null,
      source: 'own' as const,
      category: FAMILY[first] ?? first,
      site: publicOrigin,
      networks: [network],
      plainNetworks: [network],
    };
    return [{ entry, keywords: Object.hasOwn(OWN_TAGS, endpoint.path) ? (OWN_TAGS[endpoint.path] ?? '') : '' }];
  });
}

function describe({ name, required, description, schema }: ParamDoc): Listing['entry']['params'][number] {
  const [example = null] = Array.isArray(schema.examples) ? schema.examples : [];
  return { name, in: 'query', type: String(schema.type ?? 'string'), description, required, example };
}
