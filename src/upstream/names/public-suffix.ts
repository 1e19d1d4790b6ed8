import { getDomain } from 'tldts';

/**
 * The part of a host name that is registered with a registry, or null when there is none (`co.uk` itself).
 * By the ICANN section of the Public Suffix List (https://publicsuffix.org) alone: in its private section stand names such as `github.io`,
 * which are domains like any other to the registry that we ask. The list comes with the library; a top-level domain that is not on it counts as a suffix.
 */
export function registrableDomain(hostName: string): string | null {
  return getDomain(hostName, { allowPrivateDomains: false });
}
