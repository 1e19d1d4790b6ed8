/** A URL in the form in which an invoice binds it and fetch requests it: without a fragment, and without the question mark of an empty query. */
export function boundUrl({ origin, pathname, search }: URL): string {
  return `${origin}${pathname}${search}`;
}
