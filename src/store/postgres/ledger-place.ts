/** The place of a ledger for messages: host, port and database only, because a URL may hold a password. */
export function ledgerPlace(url: string): string {
  const { hostname, port, pathname } = new URL(url);
  return `${hostname}${port && `:${port}`}${pathname}`;
}
