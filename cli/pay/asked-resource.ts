/**
 * Whether an offer's `resource.url` is the requested URL: the same host and path, and the same query or none.
 * Sellers leave out a long query (ours above 1,024 characters), and a seller behind a proxy that ends TLS names itself `http`.
 * Any other difference means that the offer is for another request.
 */
export function isAskedResource(asked: URL, resourceUrl: string): boolean {
  const sold = URL.parse(resourceUrl);
  if (!sold || !['http:', 'https:'].includes(sold.protocol)) return false;
  return (
    sold.host === asked.host && sold.pathname === asked.pathname && (sold.search === asked.search || sold.search === '')
  );
}
