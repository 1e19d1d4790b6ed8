import { getDomain, parse } from 'tldts';

/**
 * The part of a host name that is registered with a registry, or null when there is none (`co.uk` itself).
 * It uses the ICANN section of the Public Suffix List (https://publicsuffix.org) only. Names in the private section, such as `github.io`, are
 * ordinary domains to the registry that we ask. The list comes with the library. A top-level domain that is not on it counts as a suffix.
 */
export function registrableDomain(hostName: string): string | null {
  return getDomain(hostName, { allowPrivateDomains: false });
}

/** Whether the list has rules for a top-level domain. One that is newer than the library is not on it. */
export function isListedTld(tld: string): boolean {
  return parse(`name.${tld}`, { allowPrivateDomains: false }).isIcann === true;
}
