/** Whether a registry lists a package, and the version where one is asked. */
export type Listing =
  /** It does, under this spelling; advisories are filed under it. */
  | { readonly state: 'listed'; readonly name: string }
  | { readonly state: 'missing' }
  /** No registry lists it: a release of the Go language itself. */
  | { readonly state: 'unregistered' };

export const MISSING: Listing = { state: 'missing' };
export const UNREGISTERED: Listing = { state: 'unregistered' };
export const listed = (name: string): Listing => ({ state: 'listed', name });
