import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { createOwnListings, type Listing } from '../../../src/discovery/entry.ts';
import { BACKGROUND } from './background.ts';

export const NETWORK = 'eip155:5042';
export const ORIGIN = 'https://percall.example';
export const SELLER = `0x${'5e'.repeat(20)}`;

/** Our own listings, from the real catalogue. */
export const ownListings = () =>
  createOwnListings({
    catalogue,
    network: NETWORK,
    payTo: SELLER,
    publicOrigin: ORIGIN,
    railOf: () => 'direct',
  });

/** A listing with only the members that a test needs. */
export function listing(entry: Partial<Listing['entry']> & { url: string }, keywords = ''): Listing {
  const { host, origin } = new URL(entry.url);
  return {
    entry: {
      method: 'GET',
      priceUsd: '0.01',
      name: '',
      label: '',
      description: '',
      params: [],
      payTo: `0x${'ab'.repeat(20)}`,
      host,
      network: NETWORK,
      rail: 'direct',
      direct: null,
      body: null,
      source: 'catalogue',
      category: '',
      site: origin,
      networks: [NETWORK],
      plainNetworks: [NETWORK],
      ...entry,
    },
    keywords,
  };
}

/** The other sellers: the first ones are listed on our market, all others in the catalogue. */
export function background(): { market: Listing[]; catalogue: Listing[] } {
  const hosts = [...new Set(BACKGROUND.map(({ host }) => host))].slice(0, 6);
  const all = BACKGROUND.map((route) => {
    const source = hosts.includes(route.host) ? ('market' as const) : ('catalogue' as const);
    const { host, method, path, priceUsd, provider, category, description, tags } = route;
    const params = route.params.map((name) => ({
      name,
      type: 'string',
      description: '',
      required: true,
      example: null,
      in: method === 'GET' ? ('query' as const) : ('body' as const),
    }));
    const url = `https://${host}${path}`;
    return listing(
      { url, method, priceUsd, name: path, label: provider, description, params, category, source },
      tags.join(' '),
    );
  });
  return {
    market: all.filter(({ entry }) => entry.source === 'market'),
    catalogue: all.filter(({ entry }) => entry.source === 'catalogue'),
  };
}
