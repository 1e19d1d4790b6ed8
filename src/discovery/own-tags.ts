/** Words that people use for our routes, by path. They are searched besides the catalogue's texts, as sellers' tags are. */
export const OWN_TAGS: Readonly<Record<string, string>> = {
  '/fees/forecast':
    'gas price prediction outlook, fees going up or down, rising, falling, cheap or expensive, in the next hour, when to send',
  '/fees/estimate': 'gas calculator, cost of sending a transaction in dollars',
  '/deploys/history': 'new smart contracts, created, launched, deployed, deployers, today, recently',
  '/rpc/health': 'blockchain node status, down, outage, uptime, fastest provider, monitoring',
  '/fx/execution': 'swap, slippage, vwap, dex, liquidity, spread, euro stablecoin EURC, trading volume',
  '/chain/wallet': 'account balance, holdings, how much USDC somebody has, contract or person, nonce',
  '/chain/token': 'coin, token contract, metadata, ticker, erc20 supply',
  '/chain/tx':
    'tx receipt lookup, block explorer, payment confirmed, went through, failed or reverted, who sent, who received',
  '/web/extract':
    'scrape, scraper, reader mode, readable article without ads, website content, html to text, url to text',
  '/web/check':
    'is a website up or down, uptime monitor, follow redirects of a short link, hsts, csp, ssl certificate expiry, server speed',
  '/packages/npm': 'javascript library, node module, typescript, package manager',
  '/packages/pypi': 'python library, python version, pip install, module',
  '/packages/vulns':
    'CVE lookup, security holes, vulnerability, exploit, malware, dependency audit, npm, pypi, go, rust, maven, rubygems, nuget, packagist',
  '/domains/dns': 'resolve a hostname to an ip, mx mail server, txt spf dmarc lookup, nameserver, dig, nslookup',
  '/domains/whois': 'who owns a domain, owner, free to register, available, when it expires',
  '/currency/rates': 'exchange rates, forex, ECB, euro, dollar, yen, pound, franc, historical, past date',
  '/currency/convert': 'currency converter, money exchange calculator, euro, dollar, yen, pound, franc',
  '/wiki/search': 'find wikipedia pages about a topic, knowledge',
  '/wiki/summary': 'explain a topic, short explanation, what is it, who is it, intro, overview, facts',
  '/wiki/article': 'whole wikipedia page, full text, read an entry in full',
};
