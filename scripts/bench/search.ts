import { catalogue } from '../../src/catalogue/catalogue.ts';
import { createDiscovery, NO_LISTINGS } from '../../src/discovery/discovery.ts';
import { createOwnListings, type Listing } from '../../src/discovery/entry.ts';
import { NO_CATALOGUE } from '../../src/discovery/foreign-catalogue.ts';
import { searchParams } from '../../src/discovery/search.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { median, percentile } from './lib.ts';

const ENTRIES = 5000;
const SEARCHES = 20_000;
const GOAL_MS = 5;
const NETWORK = 'eip155:5042';

/** Words of the entries. The n-th word is used 1/n as often as the first (Zipf), as in any language. */
const VOCABULARY = [
  ...'price token wallet search data market news image text video chain weather stock profile company domain email user'.split(
    ' ',
  ),
  ...'history address balance currency rate post trend score check forecast report translate speech page site risk'.split(
    ' ',
  ),
  ...Array.from({ length: 4000 }, (_, n) => `word${n.toString(36)}`),
];

/** Repeatable random numbers in [0, 1) (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const random = randomFrom(7);
const word = () => VOCABULARY[Math.floor(VOCABULARY.length ** random()) - 1] ?? 'price';
const words = (count: number) => Array.from({ length: count }, word).join(' ');

function listing(n: number): Listing {
  const host = `seller${n % 300}.example`;
  const param = () => ({ name: word(), type: 'string', description: words(6), required: true, example: null });
  return {
    entry: {
      url: `https://${host}/v1/${word()}/${n}`,
      method: 'GET',
      priceUsd: (0.0005 * (1 + (n % 90))).toFixed(4),
      name: `/v1/${word()}/${word()}`,
      label: words(3),
      description: words(30),
      network: NETWORK,
      params: [param(), param(), param()].map((one) => ({ ...one, in: 'query' as const })),
      payTo: `0x${n.toString(16).padStart(40, '0')}`,
      host,
      rail: 'gateway',
      direct: null,
      body: null,
      source: 'catalogue',
      category: 'DATA',
      site: `https://${host}`,
      networks: [NETWORK],
      plainNetworks: [],
    },
    keywords: words(12),
  };
}

/** Measures searches over 5,000 entries, one after the other and each with a new query: the service's code, without HTTP. */
export async function benchSearch(): Promise<void> {
  const origin = 'https://api.example.com';
  const payTo = `0x${'5e'.repeat(20)}`;
  const own = createOwnListings({
    catalogue,
    network: NETWORK,
    payTo,
    publicOrigin: origin,
    railOf: () => 'direct',
  });
  const others = Array.from({ length: ENTRIES - own.length }, (_, n) => listing(n));
  const discovery = createDiscovery({
    own,
    market: NO_LISTINGS,
    catalogue: { ...NO_CATALOGUE, listings: () => others },
    readsCatalogue: () => false,
    network: NETWORK,
    isReady: async () => true,
    clock: systemClock,
    log: { error: (fields, message) => console.error(message, fields) },
  });
  const builtFrom = performance.now();
  await discovery.start();
  const builtMs = performance.now() - builtFrom;

  const samples: number[] = [];
  const worked: number[] = [];
  for (let n = 0; n < SEARCHES; n++) {
    const q = n % 20 === 0 ? '' : words(1 + (n % 8));
    const params = searchParams.parse({ q, ...(n % 3 === 0 && { maxPriceUsd: '0.01' }) });
    const before = process.cpuUsage();
    const from = performance.now();
    await discovery.search(params);
    samples.push(performance.now() - from);
    const { user, system } = process.cpuUsage(before);
    worked.push((user + system) / 1000);
  }
  await discovery.stop();
  const p99 = percentile(samples, 0.99);
  console.log(`${ENTRIES} entries, indexed in ${builtMs.toFixed(0)} ms; ${SEARCHES} searches of 0 to 8 words:`);
  console.log(
    `median ${median(samples).toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, most ${Math.max(...samples).toFixed(1)} ms`,
  );
  console.log(
    `of that the processor's own time, whatever else runs here: p99 ${percentile(worked, 0.99).toFixed(2)} ms`,
  );
  console.log(`p99 below ${GOAL_MS} ms: ${p99 < GOAL_MS ? 'met' : 'missed'}`);
}
