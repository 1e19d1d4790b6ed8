/** A question, and the paths below a prefix of which one must be among the first three. */
export type KindQuestion = readonly [question: string, ...paths: string[]];

const FEES = ['/fees/forecast', '/fees/estimate'];
const WIKI = ['/wiki/summary', '/wiki/article', '/wiki/search'];
const CURRENCY = ['/currency/convert', '/currency/rates'];
const PACKAGE = ['/packages/npm', '/packages/pypi'];

/**
 * Questions by their kind. They were written before the search was changed for these kinds, and are not changed afterwards.
 * `open` were looked at while the search was changed. `held` were asked once, at the end. Four were taken out later, because
 * the search lists no route that is sold in bitcoin alone.
 */
export const KINDS: Readonly<Record<string, { open: readonly KindQuestion[]; held: readonly KindQuestion[] }>> = {
  /** The thing has another name than on the list. */
  synonym: {
    open: [
      ['gas price', ...FEES],
      ['crypto portfolio of an account', '/chain/wallet'],
      ['foreign currency quotes', ...CURRENCY],
      ['website availability', '/web/check'],
      ['crawl a page', '/web/extract'],
      ['weaknesses in open source software', '/packages/vulns'],
      ['browser security policy of a website', '/web/check'],
      ['domain ownership', '/domains/whois'],
      ['ethereum node uptime', '/rpc/health'],
      ['encyclopaedia lookup', ...WIKI],
      ['payment receipt on the blockchain', '/chain/tx'],
    ],
    held: [
      ['network charges at the moment', ...FEES],
      ['money left in an account', '/chain/wallet'],
      ['forex calculator', '/currency/convert'],
      ['is the server responding', '/web/check'],
      ['strip the html from a page', '/web/extract'],
      ['security bugs of a dependency', '/packages/vulns'],
      ['tls cert expiration', '/web/check'],
      ['name server lookup', '/domains/dns'],
      ['freshly published contracts', '/deploys/history'],
      ['price impact of a trade', '/fx/execution'],
      ['coin metadata', '/chain/token'],
    ],
  },
  /** The question names one thing, which the route takes as a parameter. */
  entity: {
    open: [
      ['latest version of react', ...PACKAGE],
      ['who was Nikola Tesla', ...WIKI],
      ['is lodash 4.17.20 vulnerable', '/packages/vulns'],
      ['who owns github.com', '/domains/whois'],
      ['newest release of django', ...PACKAGE],
      ['is news.ycombinator.com up', '/web/check'],
      ['dollars in Japanese yen', ...CURRENCY],
      ['history of the Roman Empire', ...WIKI],
      ['text of https://www.bbc.com/news', '/web/extract'],
      ['dependencies of express', ...PACKAGE],
      ['supply of cirBTC', '/chain/token'],
      ['when does stripe.com expire', '/domains/whois'],
    ],
    held: [
      ['biography of Marie Curie', ...WIKI],
      ['what is photosynthesis', ...WIKI],
      ['vulnerabilities in log4j-core', '/packages/vulns'],
      ['mx records of gmail.com', '/domains/dns'],
      ['license of left-pad', ...PACKAGE],
      ['balance of 0x50A2b0B577eC24d7ce1aeD372A8a6fd14CE1bE57', '/chain/wallet'],
      ['300 CHF to SEK', ...CURRENCY],
      ['population of Iceland', ...WIKI],
      [`status of 0x${'3c'.repeat(32)}`, '/chain/tx'],
      ['downloads of typescript last week', '/packages/npm'],
      ['EURC price on dexes', '/fx/execution'],
      ['article about the Battle of Hastings', ...WIKI],
    ],
  },
  /** The question says what somebody wants to do. */
  task: {
    open: [
      ['should I send my transaction now or wait', '/fees/forecast'],
      ['check whether somebody paid me', '/chain/tx', '/chain/wallet'],
      ['turn a web page into plain text for a language model', '/web/extract'],
      ['pick the rpc endpoint with the lowest latency', '/rpc/health'],
      ['before I install this package, is it maintained', ...PACKAGE],
      ['debug why mail to my domain bounces', '/domains/dns'],
      ['learn about a historical person', ...WIKI],
      ['find out where a shortened url leads', '/web/check'],
      ['identify a token from its contract address', '/chain/token'],
      ['book-keeping: euro rate on the day of an invoice', ...CURRENCY],
      ['verify that a wallet has enough money to pay', '/chain/wallet'],
    ],
    held: [
      ['work out what a contract call will cost', '/fees/estimate'],
      ['find out whether a domain is taken', '/domains/whois'],
      ["make sure my website's certificate is not about to expire", '/web/check'],
      ['see what new tokens appear on the chain', '/deploys/history'],
      ['audit my dependencies for security problems', '/packages/vulns'],
      ['change dollars into euros', ...CURRENCY],
      ['look something up in an encyclopedia', ...WIKI],
      ['know how much a swap will lose to slippage', '/fx/execution'],
      ['see who sent me tokens', '/chain/tx'],
      ['choose between two javascript libraries', '/packages/npm'],
      ['monitor whether my site answers', '/web/check'],
    ],
  },
};

/** Questions that none of our routes answers: made-up words, and things that others sell. Several name one thing. */
export const NOT_SOLD: { readonly open: readonly string[]; readonly held: readonly string[] } = {
  open: [
    'qwzrk flobber',
    'tide tables of Brest',
    'restaurants in Rome',
    'asdf',
    'price of Tesla shares',
    'colourless green ideas',
    'flights to Tokyo',
    'sing me a song',
  ],
  held: [
    'horoscope for Leo',
    'lyrics of Bohemian Rhapsody',
    'who will win the election',
    'jobs at Google',
    'weather in Reykjavik',
    'hotel near the Eiffel Tower',
    'translate "good morning" into Welsh',
    'blorptastic snargle of Zanthor',
  ],
};
