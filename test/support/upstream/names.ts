import { readFileSync } from 'node:fs';
import { strToU8, zipSync } from 'fflate';
import type { Config } from '../../../src/config.ts';
import { createUpstreams, type Upstreams } from '../../../src/upstream/client/client.ts';
import { createDns } from '../../../src/upstream/domains/dns.ts';
import { createRdap } from '../../../src/upstream/domains/rdap.ts';
import { createFixings } from '../../../src/upstream/rates/ecb.ts';
import { createWiki } from '../../../src/upstream/wikipedia.ts';
import { PATIENT_MS, type SourceOptions } from './patience.ts';
import { portFor, type Received, startReplay } from './replay.ts';

/** An answer of a stand-in: bytes with a type. */
export interface Reply {
  status?: number;
  type?: string;
  body: string | Buffer;
  headers?: Record<string, string>;
}
type Answer = Reply | ((url: URL) => Reply);

/** Thursday's fixing is out, Friday's is not. */
export const NOW = Date.parse('2026-11-20T12:00:00Z');

let zipped: Buffer | undefined;
/** The file of all days, as the ECB packs it. */
function allDays(): Buffer {
  zipped ??= Buffer.from(zipSync({ 'eurofxref-hist.csv': strToU8(fixture('eurofxref-hist.csv').toString('utf8')) }));
  return zipped;
}

const fixture = (name: string) => readFileSync(new URL(`../../fixtures/names/${name}`, import.meta.url));

export const json = (value: unknown, type = 'application/json', status = 200): Reply => ({
  status,
  type,
  body: JSON.stringify(value),
});

/** The numbers of the types in the JSON form of DNS over HTTPS. */
export const TYPE = { A: 1, NS: 2, CNAME: 5, SOA: 6, MX: 15, TXT: 16, AAAA: 28, CAA: 257 } as const;

/** An answer in that form to whatever is asked: rows of the asked type, and the CNAME rows of any. */
export function dnsAnswers(
  rows: readonly { type: keyof typeof TYPE; data: string; name?: string; ttl?: number }[],
  fields: Record<string, unknown> = {},
) {
  return (url: URL): Reply => {
    const name = url.searchParams.get('name') ?? '';
    const asked = url.searchParams.get('type') as keyof typeof TYPE;
    const Answer = rows
      .filter(({ type }) => type === asked || type === 'CNAME')
      .map((row) => ({ name: row.name ?? name, type: TYPE[row.type], TTL: row.ttl ?? 300, data: row.data }));
    const flags = { Status: 0, TC: false, RD: true, RA: true, AD: true, CD: false };
    const body = { ...flags, Question: [{ name, type: TYPE[asked] }], ...(Answer.length > 0 && { Answer }), ...fields };
    return json(body, 'application/dns-json');
  };
}

/**
 * The real sources of domains, currencies and encyclopedias over two local servers: `first` stands in for those that are asked first,
 * `second` for IANA's list and those that are asked when the first fail. `answers` goes by path, the longest prefix first; what is not in it is 404.
 */
export async function startNames({ timeoutMs = PATIENT_MS, fault = null }: SourceOptions = {}) {
  const answers = new Map<string, Answer>();
  const requests: string[] = [];
  const headers: Received['headers'][] = [];
  const answer = (request: Received) => {
    const url = new URL(request.url, 'http://127.0.0.1');
    requests.push(request.url);
    headers.push(request.headers);
    const [, found] =
      [...answers].sort(([a], [b]) => b.length - a.length).find(([prefix]) => url.pathname.startsWith(prefix)) ?? [];
    const reply = typeof found === 'function' ? found(url) : found;
    const { status = 200, type = 'application/json', body, headers: more } = reply ?? { status: 404, body: '' };
    return { status, headers: { 'content-type': type, ...more }, body };
  };
  const start = async () => startReplay({ '*': answer }, { port: await portFor(fault) });
  const [first, second] = [await start(), await start()];
  const origin = first.url;
  const urls: Config['names'] = {
    dns: `${origin}/cloudflare`,
    dnsFallback: `${second.url}/google`,
    rdapBootstrap: `${second.url}/iana/dns.json`,
    ecb: `${origin}/ecb`,
    frankfurter: `${second.url}/frankfurter/v1`,
    wikipedia: `${origin}/wikipedia/{lang}`,
  };
  const time = { nowMs: NOW };
  const clock = { nowMs: () => time.nowMs, sleep: async () => undefined };
  const upstreams = createUpstreams({ clock, userAgent: 'percall/test (+http://127.0.0.1; test@example.org)' });
  const timed: Pick<Upstreams, 'open'> = { open: (options) => upstreams.open({ ...options, timeoutMs }) };
  const opening = { upstreams: timed, config: { names: urls }, clock };
  const [dns, rdap, currency] = [createDns(opening), createRdap(opening), createFixings(opening)];
  return {
    origin,
    first,
    second,
    urls,
    answers,
    requests,
    headers,
    time,
    clock,
    sources: { clock, dns, rdap, currency, wiki: createWiki(opening) },
    stop: async () => {
      await upstreams.close();
      await first.stop();
      await second.stop();
    },
  };
}

export type NamesWorld = Awaited<ReturnType<typeof startNames>>;

/** Sets the hand-written fixtures as answers: everything answers, `example.com` is registered, and so on. */
export function serveFixtures({ answers, origin }: Pick<NamesWorld, 'answers' | 'origin'>): void {
  const rows = [
    { type: 'A', data: '192.0.2.1' },
    { type: 'MX', data: '20 b.example.net.' },
    { type: 'MX', data: '10 a.example.net.' },
    { type: 'NS', data: 'ns1.example.net.' },
  ] as const;
  answers.set('/cloudflare', dnsAnswers(rows));
  answers.set('/google', dnsAnswers(rows));
  answers.set(
    '/iana/dns.json',
    json({ publication: '2026-11-01T00:00:00Z', services: [[['com'], [`${origin}/com/v1/`]]] }),
  );
  answers.set('/com/v1/domain/example.com', { type: 'application/rdap+json', body: fixture('rdap-domain.json') });
  const days = fixture('eurofxref-hist-90d.xml');
  answers.set('/ecb/eurofxref-daily.xml', { type: 'text/xml', body: fixture('eurofxref-daily.xml') });
  answers.set('/ecb/eurofxref-hist-90d.xml', { type: 'text/xml', body: days });
  answers.set('/ecb/eurofxref-hist.zip', { type: 'application/zip', body: allDays() });
  answers.set(
    '/frankfurter/v1',
    json({ amount: 1.0, base: 'EUR', date: '2026-11-19', rates: { USD: 1.25, GBP: 0.8 } }),
  );
  serveWikipedia(answers);
}

function serveWikipedia(answers: NamesWorld['answers']): void {
  answers.set(
    '/wikipedia/en/w/rest.php/v1/search/page',
    json({
      pages: [
        {
          id: 1,
          key: 'Jupiter_(planet)',
          title: 'Jupiter (planet)',
          excerpt: '<span class="searchmatch">Jupiter</span> is the fifth planet &amp; the &quot;largest&quot;  one',
          matched_title: null,
          description: 'Fifth planet',
          thumbnail: { mimetype: 'image/jpeg', width: 60, height: 50, url: '//upload.example.org/60px-J.jpg' },
        },
        { id: 2, key: 'Io', title: 'Io', excerpt: '', matched_title: 'Jupiter I', description: null, thumbnail: null },
      ],
    }),
  );
  answers.set(
    '/wikipedia/en/api/rest_v1/page/summary/Jupiter',
    json({
      type: 'standard',
      title: 'Jupiter',
      namespace: { id: 0, text: '' },
      titles: { canonical: 'Jupiter', normalized: 'Jupiter', display: 'Jupiter' },
      thumbnail: { source: 'https://upload.example.org/60px-J.jpg', width: 60, height: 50 },
      originalimage: { source: 'https://upload.example.org/J.jpg', width: 600, height: 500 },
      timestamp: '2026-11-01T02:03:04Z',
      description: 'Fifth planet',
      extract: 'Jupiter is the fifth planet.',
    }),
  );
  answers.set(
    '/wikipedia/en/api/rest_v1/page/summary/Mercury',
    json({ type: 'disambiguation', title: 'Mercury', namespace: { id: 0 }, extract: 'Mercury may refer to:' }),
  );
  answers.set(
    '/wikipedia/en/w/api.php',
    json({
      batchcomplete: true,
      query: {
        pages: [
          {
            pageid: 1,
            ns: 0,
            title: 'Jupiter',
            extract: 'Jupiter is a planet.\n\n\n\nHistory\nLong.\n',
            description: 'Fifth planet',
            thumbnail: { source: 'https://upload.example.org/330px-J.jpg', width: 330, height: 300 },
            revisions: [{ timestamp: '2026-11-02T00:00:00Z' }],
          },
        ],
      },
    }),
  );
}

/** The environment of a service that asks this world in place of the real sources. */
export const namesEnvironment = ({ urls }: NamesWorld): Record<string, string> => ({
  UPSTREAM_DNS_URL: urls.dns,
  UPSTREAM_DNS_FALLBACK_URL: urls.dnsFallback,
  UPSTREAM_RDAP_BOOTSTRAP_URL: urls.rdapBootstrap,
  UPSTREAM_ECB_URL: urls.ecb,
  UPSTREAM_FRANKFURTER_URL: urls.frankfurter,
  UPSTREAM_WIKIPEDIA_URL: urls.wikipedia,
});
