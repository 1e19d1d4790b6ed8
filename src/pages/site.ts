import type { NamedChain } from '../lib/service.ts';

/** What every page says about the service. */
export interface Site {
  /** The chain that the service is about. */
  readonly chain: NamedChain;
  /** Scheme, host and port under which readers reach the pages. */
  readonly origin: string;
  readonly sourceUrl: string | null;
  readonly termsUrl: string;
  readonly contactUrl: string | null;
}

/** The parts of the configuration that say so. */
export interface SiteSettings {
  readonly publicOrigin: string;
  readonly network: NamedChain;
  readonly web: { readonly contactUrl: string | null };
  readonly site: { readonly sourceUrl: string | null; readonly termsUrl: string | null };
}

/** What pages say about a service with these settings. Without the operator's own terms they link to the service's page. */
export function siteOf({ publicOrigin: origin, network: chain, web, site }: SiteSettings): Site {
  const { sourceUrl, termsUrl } = site;
  return { chain, origin, sourceUrl, termsUrl: termsUrl ?? '/terms', contactUrl: web.contactUrl };
}
