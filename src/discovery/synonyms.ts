/** Words of a query's form, and words that fit every entry: everything on sale is an API for data. */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about all am an and any are around as at be been between but by can could did do does doing for from get gets
   getting give gives go going had has have having hello help how i if in into is it its just know let like lot
   make many me mine more most much my near need new no not now of off on one only or our out over please right
   show some somebody someone tell than that the their them then there these they this those through to under until
   up us use using via want was we were what when where which while who whom whose why with without would you your
   am is s t re ve ll d m should whether anybody anyone api apis data endpoint endpoints service services tool
   tools provide provides return returns info information`
    .trim()
    .split(/\s+/),
);

/**
 * Words that may be asked of any subject, in the singular. Alone they answer no question about an unknown one: "stock
 * price of Apple" is not answered by prices of tokens.
 */
export const GENERAL_WORDS: ReadonlySet<string> = new Set(
  `forecast prediction price cost rate value quote text sentence article page summary image picture photo document
   file report search find look lookup convert conversion check test read send sent sending write generate create
   compare calculate calculator estimate show track history historical past future latest newest recent current
   live today yesterday tomorrow weekend will week month year hour daily weekly day night time date list name
   number code status result detail fact overview answer question full whole short brief big cheap cheapest best
   free fast two three first last next`
    .trim()
    .split(/\s+/),
);

const ENCYCLOPEDIA = ['encyclopedia', 'wikipedia'];
const VULNERABILITIES = ['vulnerabilities', 'advisories'];

function each(words: string, phrases: readonly string[]): Record<string, readonly string[]> {
  return Object.fromEntries(words.split(' ').map((word) => [word, phrases]));
}

function pairs(left: string, right: string, phrases: readonly string[]): Record<string, readonly string[]> {
  const keys = left.split(' ').flatMap((first) => right.split(' ').map((second) => `${first} ${second}`));
  return Object.fromEntries(keys.map((key) => [key, phrases]));
}

/** The left is also searched as the right, at a lower weight, not the other way. Plurals go by their singular. */
export const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  // Chains and money
  account: ['wallet', 'address'],
  balance: ['wallet', 'balances'],
  blockchain: ['chain', 'rpc', 'onchain'],
  bank: ['central bank'],
  btc: ['bitcoin'],
  bitcoin: ['btc'],
  buck: ['usd'],
  coin: ['token', 'cryptocurrency'],
  contract: ['contracts', 'deploys'],
  ...each('convert converter', ['conversion', 'converted']),
  crypto: ['cryptocurrency', 'token'],
  dex: ['venues', 'swap'],
  dollar: ['usd', 'currency'],
  ecb: ['european central bank'],
  erc20: ['erc 20', 'token'],
  ...each('eth ether', ['ethereum']),
  euro: ['eur', 'currency', 'eurc'],
  'euro coin': ['eurc'],
  'exchange rate': ['reference rates', 'currency'],
  eurc: ['watched token', 'token against usdc'],
  fee: ['gas', 'cost'],
  failed: ['status', 'reverted'],
  franc: ['chf', 'currency'],
  forex: ['currency', 'exchange rates'],
  fx: ['currency', 'execution'],
  gas: ['base fee', 'fee'],
  hold: ['balances', 'wallet'],
  holding: ['balances', 'portfolio'],
  launch: ['deploys', 'deployed'],
  launched: ['deploys', 'launches'],
  deployed: ['deploys'],
  money: ['currency', 'usdc'],
  node: ['rpc', 'provider'],
  payment: ['transaction', 'transfer'],
  person: ['people'],
  pound: ['gbp', 'currency'],
  predict: ['forecast', 'prediction'],
  prediction: ['forecast'],
  rpc: ['provider', 'node'],
  'smart contract': ['contract deploys', 'contract'],
  sol: ['solana'],
  swap: ['execution', 'trade', 'slippage'],
  swapping: ['execution', 'trade'],
  tx: ['transaction'],
  transaction: ['tx'],
  vwap: ['volume weighted'],
  yen: ['jpy', 'currency'],
  worth: ['rate', 'price', 'value'],
  ...pairs('gas network transaction', 'price fee cost charge', ['base fee', 'fee forecast', 'fee estimate']),
  charge: ['fee', 'cost'],
  owe: ['balances'],
  owned: ['balances', 'holdings'],
  paid: ['payment', 'transaction', 'received'],
  portfolio: ['balances', 'holdings'],
  receipt: ['transaction'],
  wait: ['forecast', 'when to send'],
  // The web
  ...pairs(
    'website site webpage page server',
    'up down online offline alive reachable available unavailable availability working broken responding',
    ['website up', 'http status'],
  ),
  availability: ['uptime', 'available'],
  ...each('crawl crawler crawling scraper', ['extract', 'scrape']),
  parse: ['extract'],
  ...each('shorten shortened shortener', ['short link', 'redirect']),
  article: ['page'],
  deface: ['check'],
  down: ['error', 'health', 'status'],
  ...each('hsts csp', ['security headers']),
  link: ['url', 'redirect'],
  page: ['web page'],
  'short link': ['redirect'],
  read: ['text'],
  reachable: ['status', 'up'],
  scrape: ['extract', 'text of a web page'],
  site: ['web', 'website', 'page'],
  ssl: ['tls certificate', 'certificate'],
  certificate: ['tls'],
  uptime: ['up', 'status', 'health'],
  'how long': ['response time', 'duration'],
  respond: ['response', 'timings'],
  slow: ['response time', 'latency'],
  speed: ['response time', 'latency', 'fastest'],
  url: ['web page', 'address'],
  webpage: ['web page'],
  website: ['web page', 'site', 'url'],
  // Software
  ...each(
    'cve exploit exploitable flaw hole insecure malicious malware risk risky safe secure security vulnerability ' +
      'vulnerable weakness',
    VULNERABILITIES,
  ),
  'open source': ['package'],
  'security hole': VULNERABILITIES,
  ...each('software library', ['package']),
  bug: [...VULNERABILITIES, 'issues'],
  crate: ['package', 'rust'],
  dependency: ['package', 'dependencies'],
  ...each('django pip', ['pypi', 'python']),
  gem: ['package', 'rubygems'],
  git: ['github', 'repository'],
  gpt: ['chat', 'llm', 'model'],
  chatgpt: ['chat', 'gpt'],
  javascript: ['npm', 'node'],
  js: ['npm', 'javascript'],
  license: ['licence'],
  llm: ['chat', 'model'],
  maven: ['package', 'ecosystem'],
  module: ['package', 'npm'],
  'node module': ['npm package'],
  nodejs: ['npm', 'node'],
  python: ['pypi'],
  repo: ['repository', 'github'],
  // Names
  dns: ['records'],
  domain: ['registration', 'registrar', 'dns'],
  expire: ['expiry', 'expires'],
  free: ['available'],
  hostname: ['host name', 'dns'],
  mail: ['email', 'mx'],
  mx: ['dns'],
  nameserver: ['name servers', 'dns'],
  own: ['registrar', 'owner'],
  owner: ['registrar'],
  register: ['registration', 'registrar'],
  resolve: ['dns', 'lookup'],
  spf: ['dns', 'txt'],
  txt: ['dns'],
  whois: ['registrar', 'registration'],
  // Knowledge
  ...pairs('historical historic famous', 'person people figure event', ENCYCLOPEDIA),
  ...pairs('learn read know', 'about', ENCYCLOPEDIA),
  ...each('biography born inventor population', ENCYCLOPEDIA),
  ...each('definition explanation overview', ['summary']),
  dictionary: ['definitions'],
  encyclopaedia: ['encyclopedia', 'wikipedia'],
  explain: ['summary', 'answer'],
  headline: ['news'],
  meaning: ['definition'],
  paper: ['research', 'scholarly'],
  ask: ['chat', 'answer'],
  price: ['quote'],
  brief: ['summary', 'short'],
  short: ['summary', 'brief'],
  topic: ['article'],
  whole: ['full', 'plain text'],
  wiki: ['wikipedia', 'encyclopedia'],
  // Everything else that is sold by the call
  aloud: ['speech', 'voice'],
  car: ['rental cars', 'vehicle'],
  city: ['place', 'location'],
  company: ['companies', 'corporate'],
  coordinate: ['latitude', 'geocode', 'lat'],
  coords: ['latitude', 'geocode'],
  email: ['emails', 'mailbox'],
  flight: ['flights', 'airport'],
  ...each('geolocate located', ['location', 'country', 'city']),
  ...each('house flat', ['property']),
  job: ['jobs', 'job postings'],
  work: ['employees', 'job postings'],
  worker: ['employees'],
  meme: ['memes'],
  movie: ['film'],
  ocr: ['extract text', 'scanned'],
  odds: ['polymarket', 'betting'],
  photo: ['image', 'picture'],
  picture: ['image', 'photo'],
  draw: ['generate image'],
  restaurant: ['places', 'restaurants'],
  route: ['directions'],
  score: ['results', 'scores'],
  share: ['stock', 'equities'],
  soccer: ['football'],
  speech: ['audio', 'voice'],
  'speech text': ['transcribe', 'speech to text'],
  'text speech': ['text to speech', 'natural voice'],
  sentence: ['text'],
  sms: ['message'],
  stock: ['equities', 'ticker'],
  street: ['address'],
  subtitle: ['transcript'],
  summarise: ['summarize', 'summary'],
  ...each('temperature rain', ['weather']),
  ...each('tomorrow weather will', ['forecast']),
  'last winter': ['historical', 'past'],
  'last year': ['historical', 'past', 'date'],
  yesterday: ['historical', 'past'],
  translation: ['translate'],
  tweet: ['tweets', 'twitter'],
  twitter: ['tweets'],
  x: ['twitter'],
};

/** What is asked of one named thing, and what has it: "history of Rome", but not "history of prices". */
export const ASKED_OF_A_NAME: Readonly<Record<string, readonly string[]>> = {
  ...pairs('who', 'is was were wrote invented discovered founded painted composed', ENCYCLOPEDIA),
  ...pairs('what', 'is are was were', ENCYCLOPEDIA),
  ...pairs('when where', 'is was were did', ENCYCLOPEDIA),
  ...pairs('how', 'old tall big high', ENCYCLOPEDIA),
  article: ENCYCLOPEDIA,
  capital: ENCYCLOPEDIA,
  explain: ENCYCLOPEDIA,
  explanation: ENCYCLOPEDIA,
  history: ENCYCLOPEDIA,
  overview: ENCYCLOPEDIA,
  summary: ENCYCLOPEDIA,
};

/** Currencies that people name by their code (ISO 4217, the ECB's list). */
const CURRENCIES =
  'aud|bgn|brl|cad|chf|cny|czk|dkk|eur|gbp|hkd|huf|idr|ils|inr|isk|jpy|krw|mxn|myr|nok|nzd|php|pln|ron|sek|sgd|thb|' +
  'try|usd|zar';

interface Shape {
  readonly form: RegExp;
  readonly means: readonly string[];
  /** Stands for the word in pairs: "example.com up" is "site up". */
  readonly inPairs: string;
}

/** What is searched too when a word has the form. The first match applies. */
export const SHAPES: readonly Shape[] = [
  { form: /^0x[0-9a-f]{40}$/i, means: ['address', 'wallet', 'balances'], inPairs: 'address' },
  { form: /^0x[0-9a-f]{64}$/i, means: ['transaction', 'hash', 'status'], inPairs: 'transaction' },
  { form: /^https?:\/\/\S+$/i, means: ['web page', 'text'], inPairs: 'site' },
  { form: /^\d{1,3}(\.\d{1,3}){3}$/, means: ['ip address'], inPairs: 'ip' },
  { form: /^[^\s@]+@[^\s@]+\.[a-z]{2,}$/i, means: ['email'], inPairs: 'email' },
  { form: /^(cve|ghsa)-[\w-]+$/i, means: ['advisories', 'vulnerabilities'], inPairs: 'advisory' },
  { form: /^[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}$/i, means: ['domain'], inPairs: 'site' },
  { form: new RegExp(`^(${CURRENCIES})$`, 'i'), means: ['currency'], inPairs: 'currency' },
];
