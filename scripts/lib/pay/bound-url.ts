/** A URL as it is bound into an invoice and as fetch asks for it: without a fragment, or the question mark of an empty query. */
export function boundUrl({ origin, pathname, search }: URL): string {
  return `${origin}${pathname}${search}`;
}
