/** Where a ledger is, for people: a URL may hold a password, and whatever else it carries stays out too. */
export function ledgerPlace(url: string): string {
  const { hostname, port, pathname } = new URL(url);
  return `${hostname}${port && `:${port}`}${pathname}`;
}
