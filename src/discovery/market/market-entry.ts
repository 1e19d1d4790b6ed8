import { plainText } from '../../lib/untrusted.ts';
import type { Terms } from '../accepts.ts';
import type { ListedEntry, Listing } from '../entry.ts';
import { type Description, joinDescriptions } from '../read-description.ts';
import { TEXT_LIMITS } from './market-text.ts';

/** The category of a seller that names none, so that filters can find its listings. */
const NO_CATEGORY = 'other';

interface Found {
  /** The listed URL, with readable placeholders. */
  readonly url: string;
  /** The method that was answered with 402. */
  readonly method: ListedEntry['method'];
  readonly offer: Terms;
  readonly description: Description;
  readonly network: string;
}

/** Makes a listing from the terms and descriptions that the seller returned. */
export function listingOf({ url, method, offer, description, network }: Found): Listing {
  const { origin, host, pathname } = new URL(url);
  const name = description.name || plainText(readable(pathname).replace(/^\/+|\/+$/g, ''), TEXT_LIMITS.name) || host;
  const called = description.method ?? method;
  const { plainPriceUsd, ...asked } = offer;
  return {
    entry: {
      url,
      method: called,
      name,
      label: description.label || plainText(name, TEXT_LIMITS.label),
      description: description.description,
      params: description.params,
      host,
      network,
      ...asked,
      direct: plainPriceUsd === null ? null : { url, priceUsd: plainPriceUsd },
      body: called === 'POST' ? description.body : null,
      source: 'market',
      category: (description.category || NO_CATEGORY).toLowerCase(),
      site: origin,
    },
    keywords: description.keywords,
  };
}

/** Updates a listing after another call. Terms are those of this call. A description that this call left empty keeps its old value. */
export function relist({ entry, keywords }: Listing, found: Omit<Found, 'network'>): Listing {
  const before: Description = { ...entry, keywords };
  const description = joinDescriptions(found.description, before);
  return listingOf({ ...found, network: entry.network, description });
}

function readable(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
