/** A question to the search, and the path below its prefix that must come first. */
export type Question = readonly [question: string, path: string];

/**
 * Questions that our own routes answer, two for most routes. They were written from the list of routes alone, before the index and its synonyms
 * were read, and they are not changed afterwards: the search follows them.
 */
export const ANSWERED: readonly Question[] = [
  ['what will the base fee be in the next block', '/fees/forecast'],
  ['gas fee forecast', '/fees/forecast'],
  ['how much does a transaction with 100000 gas cost', '/fees/estimate'],
  ['estimate the cost of a transaction', '/fees/estimate'],
  ['newest smart contracts', '/deploys/history'],
  ['which contracts were deployed today', '/deploys/history'],
  ['fastest rpc provider', '/rpc/health'],
  ['rpc latency and error rate', '/rpc/health'],
  ['slippage when I swap EURC for USDC', '/fx/execution'],
  ['volume weighted EURC rate', '/fx/execution'],
  ['usdc balance of an address', '/chain/wallet'],
  ['is this address a wallet or a contract', '/chain/wallet'],
  ['total supply of an erc-20 token', '/chain/token'],
  ['decimals and symbol of a token', '/chain/token'],
  ['did my transaction succeed', '/chain/tx'],
  ['token transfers in a transaction', '/chain/tx'],
  ['read the text of a web page', '/web/extract'],
  ['scrape an article', '/web/extract'],
  ['is my website down', '/web/check'],
  ['security headers of a site', '/web/check'],
  ['latest version of an npm package', '/packages/npm'],
  ['weekly downloads of a javascript library', '/packages/npm'],
  ['newest release of a python package', '/packages/pypi'],
  ['which python version does a library need', '/packages/pypi'],
  ['known vulnerabilities of a dependency', '/packages/vulns'],
  ['CVE lookup for a maven package', '/packages/vulns'],
  ['mx records of a domain', '/domains/dns'],
  ['dns lookup', '/domains/dns'],
  ['when does a domain expire', '/domains/whois'],
  ['is this domain name still free', '/domains/whois'],
  ['euro dollar exchange rate', '/currency/rates'],
  ['historical exchange rates of a central bank', '/currency/rates'],
  ['convert 100 usd to eur', '/currency/convert'],
  ['how many yen are 50 euros', '/currency/convert'],
  ['search wikipedia', '/wiki/search'],
  ['find encyclopedia articles about volcanoes', '/wiki/search'],
  ['short summary of a wikipedia article', '/wiki/summary'],
  ['full text of a wikipedia article', '/wiki/article'],
];

/** Fifteen questions that nothing here answers. Several share a word with a route: forecast, text, price, convert. */
export const UNANSWERED: readonly string[] = [
  'weather forecast for Berlin',
  'send an e-mail',
  'generate an image of a cat',
  'translate a sentence into French',
  'book a flight to Lisbon',
  'text to speech',
  'football results of yesterday',
  'stock price of Apple',
  'transcribe a podcast',
  'send an SMS to a phone',
  'pizza delivery near me',
  'rent a GPU',
  'solve a captcha',
  'recipe for pancakes',
  'driving directions between two cities',
];
