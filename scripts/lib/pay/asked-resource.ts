/**
 * Whether what an x402 offer says it sells, `resource.url`, is what was asked for: the same host and path, and the same query or none.
 * Sellers leave a query out when it is long (ours above 1,024 characters), and one behind a proxy that ends TLS names itself `http`.
 * Any other difference says that the offer was made for another request.
 */
export function isAskedResource(asked: URL, resourceUrl: string): boolean {
  const sold = URL.parse(resourceUrl);
  if (!sold || !['http:', 'https:'].includes(sold.protocol)) return false;
  return (
    sold.host === asked.host && sold.pathname === asked.pathname && (sold.search === asked.search || sold.search === '')
  );
}
