import type { Endpoint } from './endpoint.ts';

/**
 * What an entry is asked for by mistake, by its path: it completes "Not for …". Models choose tools by such words. A free entry and its priced twin have
 * the same.
 */
const NOT_FOR: Readonly<Record<string, string>> = {
  '/network': 'single blocks, or for an address’s balance',
  '/fees': 'gas prices of Ethereum or of other chains',
  '/fees/estimate': 'bridge, exchange or card fees, or for sending anything',
  '/fees/forecast': 'gas prices of Ethereum or of other chains',
  '/activity': 'the transactions of one address',
  '/deploys': 'contract source code or audits',
  '/deploys/history': 'contract source code or audits',
  '/rpc': 'sending JSON-RPC requests',
  '/rpc/health': 'sending JSON-RPC requests',
  '/fx': 'central-bank rates, or for trading',
  '/fx/execution': 'central-bank rates, or for trading',
  '/token': 'other tokens than the project’s own',
  '/selftest': 'sales figures',
  '/health': 'the health of other services',
  '/market/prices': 'listed shares, coins of other chains, or trading',
  '/chain/wallet': 'tokens that are not watched, NFTs or a list of an address’s transactions',
  '/chain/token': 'prices of tokens that are not watched, lists of holders, or NFTs',
  '/chain/tx': 'finding transactions: it needs the hash',
  '/chain/usyc': 'buying or redeeming USYC, or for other funds',
  '/web/extract': 'pages behind a login, pages that scripts draw, PDFs of scanned pages, or searching the web',
  '/web/check': 'a page’s text, or for watching an address over time',
  '/packages/npm': 'old versions, advisories against them, or source code',
  '/packages/pypi': 'old versions or source code',
  '/packages/vulns': 'scanning code or lock files, or for whole dependency trees',
  '/domains/dns': 'owners of a domain, or for records as other resolvers see them',
  '/domains/whois': 'DNS records, or for a person’s name or e-mail address',
  '/currency/rates': 'rates within a day, cryptocurrencies, or prices that a bank or card gives',
  '/currency/convert': 'moving money, cryptocurrencies, or prices that a bank or card gives',
  '/wiki/search': 'the web at large, or for news',
  '/wiki/summary': 'finding an article: it needs the title',
  '/wiki/article': 'finding an article: it needs the title',
  '/selftest/fail': 'data of any kind: it shows that a failure costs nothing',
};

/** What the entry is not for, in words that complete "Not for …". Null for an entry that has none. */
export function notFor({ path }: Pick<Endpoint<never>, 'path'>): string | null {
  return NOT_FOR[path] ?? null;
}
