import { registrableDomain } from '../../lib/url.ts';
import { hostOf } from '../../upstream/guard/guard.ts';

/**
 * The registered domain under which a listing is counted and called.
 * A suffix that its owner shares with others (`github.io`, `vercel.app`) counts as one domain. Names below it are free and unlimited, so they must
 * not raise the limit on listings.
 */
export function marketDomain(url: URL): string {
  const host = hostOf(url);
  return registrableDomain(host) ?? host;
}
