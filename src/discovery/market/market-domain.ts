import { hostOf } from '../../upstream/guard/guard.ts';
import { registrableDomain } from '../../upstream/names/public-suffix.ts';

/**
 * The registered domain under which a listing is counted and called. A suffix that its owner shares with others (`github.io`, `vercel.app`) is
 * a domain like any other: anyone can have any number of names below it for nothing, so one name more must not be room for more listings.
 */
export function marketDomain(url: URL): string {
  const host = hostOf(url);
  return registrableDomain(host) ?? host;
}
