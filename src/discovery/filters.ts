import { type Decimal, parseDecimal } from '../lib/units.ts';
import type { ListedEntry } from './entry.ts';
import type { SearchParams } from './search-params.ts';

/** Decimals of a comparable price. More than any price has: amounts have 6. */
const SCALE = 18;

/** A price in 10^-18 USD, rounded up, so that prices compare exactly. Text that is no price counts as higher than every price. */
export function priceUnits(priceUsd: string): bigint {
  const price = parseDecimal(priceUsd);
  return price === null ? 10n ** 60n : scaled(price);
}

function scaled({ digits, scale }: Decimal): bigint {
  if (scale <= SCALE) return digits * 10n ** BigInt(SCALE - scale);
  const divisor = 10n ** BigInt(scale - SCALE);
  return (digits + divisor - 1n) / divisor;
}

type Filters = Pick<SearchParams, 'maxPriceUsd' | 'source' | 'seller' | 'category' | 'network'>;

/** Makes the filter of a search. A seller is an address or a host, compared without letter case. */
export function createFilter(filters: Filters): (entry: ListedEntry) => boolean {
  const { source } = filters;
  const ceiling = filters.maxPriceUsd === undefined ? null : parseDecimal(filters.maxPriceUsd);
  const seller = filters.seller?.toLowerCase();
  const category = filters.category?.toLowerCase();
  const network = filters.network?.toLowerCase();
  return (entry) =>
    (source === undefined || entry.source === source) &&
    (ceiling === null || isWithin(entry.priceUsd, ceiling)) &&
    (seller === undefined || entry.payTo.toLowerCase() === seller || entry.host.toLowerCase() === seller) &&
    (category === undefined || entry.category.toLowerCase() === category) &&
    (network === undefined || entry.networks.some((name) => name.toLowerCase() === network));
}

function isWithin(priceUsd: string, ceiling: Decimal): boolean {
  const price = parseDecimal(priceUsd);
  if (price === null) return false;
  return price.digits * 10n ** BigInt(ceiling.scale) <= ceiling.digits * 10n ** BigInt(price.scale);
}
