import type { Terms } from '../accepts.ts';
import type { ListedEntry, Listing } from '../entry.ts';
import { plainText } from '../plain-text.ts';
import { type Description, joinDescriptions } from '../read-description.ts';
import { TEXT_LIMITS } from './market-text.ts';

/** A category for those who name none: a filter finds them under a word, not under nothing. */
const NO_CATEGORY = 'other';

interface Found {
  /** As it is listed, placeholders readable. */
  readonly url: string;
  /** The method that was answered 402. */
  readonly method: ListedEntry['method'];
  readonly offer: Terms;
  readonly description: Description;
  readonly network: string;
}

/** A listing as a search knows it, from what its seller was seen to ask and say. */
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

/** A listing after another call: what is asked now, and of each thing said either what is said now or, when that is nothing, what was before. */
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
