import { unzipSync } from 'fflate';
import { SaxesParser } from 'saxes';
import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import { type Clock, daysBetween, isCalendarDate } from '../../lib/clock.ts';
import { HOUR_MS, MIB, MINUTE_MS, type Opening, type Upstream } from '../client/client.ts';
import { firstToAnswer } from '../client/failure.ts';
import { type DatedFixing, type DatedFixings, type Fixing, type FixingSource, isDue, isRate } from './fixing.ts';

/** Frankfurter looks back 14 days too. The longest gap between fixings is five days, at Easter and Christmas. */
const MAX_GAP_DAYS = 14;
/** The history only grows; its newest days come from the other two files. */
const HISTORY_FRESH_MS = 24 * HOUR_MS;
/** How long a copy may replace a file that cannot be read. After that the other source is asked. */
const STALE_MS = 24 * HOUR_MS;
/** After a failed read the current copy is used for this time, so that not every call waits for a dead host. */
const RETRY_MS = MINUTE_MS;

const PUBLISHER = 'European Central Bank';

const BOUNDS = { name: 'ECB', timeoutMs: 4000, maxBytes: 8 * MIB, concurrency: 3, retries: 1 } as const;
const SECOND = { name: 'Frankfurter', timeoutMs: 3000, maxBytes: MIB / 4, concurrency: 3, retries: 0 } as const;
const SECOND_CACHE = { ttlMs: 10 * MINUTE_MS, staleIfErrorMs: 24 * HOUR_MS, maxEntries: 1000 };

/** The ECB, and Frankfurter where it fails. */
export function createFixings({ upstreams, config, clock }: Opening<'names'>): FixingSource {
  const sources = [
    createEcb(upstreams.open(BOUNDS), config.names.ecb, clock),
    createFrankfurter(upstreams.open({ ...SECOND, cache: SECOND_CACHE }), config.names.frankfurter),
  ];
  const first = <T>(ask: (source: FixingSource) => Promise<T>) => {
    const attempts = sources.map((source) => () => ask(source));
    return firstToAnswer('reference rates', attempts);
  };
  return { at: (date) => first((one) => one.at(date)), between: (from, to) => first((one) => one.between(from, to)) };
}

/** By the ECB's three files, of which `baseUrl` is the folder. A day without a fixing gives the last one before it. */
function createEcb(upstream: Upstream, baseUrl: string, clock: Clock): FixingSource {
  const keep = (name: string, read: Reader, due: Due) => keepFile(upstream, `${baseUrl}/${name}`, read, due, clock);
  const published: Due = ({ newest, readAtMs }, nowMs) => isDue(newest, readAtMs, nowMs);
  const daily = keep('eurofxref-daily.xml', readXml, published);
  const older = [
    keep('eurofxref-hist-90d.xml', readXml, published),
    keep('eurofxref-hist.zip', readZip, ({ readAtMs }, nowMs) => nowMs - readAtMs >= HISTORY_FRESH_MS),
  ];

  async function at(date: string | null): Promise<DatedFixing> {
    const today = await daily.upTo('');
    if (date === null || date >= today.newest) return fixingOf(upstream.name, today, today.newest);
    for (const kept of older) {
      const copy = await kept.upTo(date);
      // Newest first: the first day that is not after the date is the last one before it.
      const day = copy.file.dates.find((candidate) => candidate <= date);
      if (day !== undefined && daysBetween(day, date) <= MAX_GAP_DAYS) return fixingOf(upstream.name, copy, day);
    }
    throw new UpstreamFailed(upstream.name, `its files hold no fixing near ${date}`);
  }

  async function between(from: string, to: string): Promise<DatedFixings> {
    for (const kept of older) {
      const { file, url, readAtMs } = await kept.upTo(to);
      // A file that begins after the first day asked for may lack days. The history has all there are.
      if ((file.dates.at(-1) ?? '') > from && kept !== older.at(-1)) continue;
      const days = file.dates.filter((day) => day >= from && day <= to);
      const fixings = days.map((day) => readable(upstream.name, url, () => file.read(day)) as Fixing);
      return { fixings, source: PUBLISHER, url, retrievedAtMs: readAtMs };
    }
    throw new UpstreamFailed(upstream.name, 'it has no history');
  }
  return { at, between };
}

interface Copy {
  readonly file: FixingFile;
  readonly newest: string;
  readonly url: string;
  readonly readAtMs: number;
}

type Reader = (body: Buffer, contentType: string) => FixingFile;
type Due = (copy: Copy, nowMs: number) => boolean;

/** One file, cached in parsed form. Concurrent callers share one read. */
function keepFile(upstream: Upstream, url: string, read: Reader, due: Due, clock: Clock) {
  let copy: Copy | undefined;
  let reading: Promise<Copy> | undefined;
  let failedAtMs = Number.NEGATIVE_INFINITY;

  // The caller's signal is not used: all callers share the copy, and the upstream's own deadline limits the read.
  async function readAgain(): Promise<Copy> {
    const { status, headers, body, retrievedAtMs } = await upstream.fetch({ url, accept: '*/*' });
    if (status !== 200) throw new UpstreamFailed(upstream.name, `answered HTTP ${status}`);
    const file = readable(upstream.name, url, () => read(body, headers['content-type'] ?? 'application/octet-stream'));
    copy = { file, newest: file.dates[0] ?? '', url, readAtMs: retrievedAtMs };
    return copy;
  }

  return {
    /** A fresh copy that contains the date, read again if needed. Rejects with UpstreamFailed when there is none. */
    async upTo(date: string): Promise<Copy> {
      const nowMs = clock.nowMs();
      const usable = copy !== undefined && copy.newest >= date && nowMs - copy.readAtMs < STALE_MS ? copy : undefined;
      if (usable && (!due(usable, nowMs) || nowMs - failedAtMs < RETRY_MS)) return usable;
      reading ??= readAgain().finally(() => {
        reading = undefined;
      });
      const fresh = await reading.catch((error: unknown) => {
        failedAtMs = nowMs;
        if (usable) return usable;
        throw error;
      });
      if (fresh.newest < date) throw new UpstreamFailed(upstream.name, `its files do not reach up to ${date} yet`);
      return fresh;
    },
  };
}

function fixingOf(upstream: string, { file, url, readAtMs }: Copy, day: string): DatedFixing {
  const fixing = readable(upstream, url, () => file.read(day));
  if (fixing === null) throw new UpstreamFailed(upstream, `no rates for ${day}`);
  return { fixing, source: PUBLISHER, url, retrievedAtMs: readAtMs };
}

function readable<T>(upstream: string, url: string, task: () => T): T {
  try {
    return task();
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error;
    throw new UpstreamFailed(upstream, `${url.slice(url.lastIndexOf('/') + 1)} ${error.message}`, error);
  }
}

interface FixingFile {
  readonly dates: readonly string[];
  read(date: string): Fixing | null;
}

/** The message is safe to publish. */
export class UnreadableFile extends Error {}

const XML_TYPE = /^(application|text)\/([\w.+-]+\+)?xml|^text\/plain|^application\/octet-stream/i;
const ZIP_TYPE = /^application\/(x-)?zip|^application\/octet-stream/i;

function readXml(body: Buffer, contentType: string): FixingFile {
  if (!XML_TYPE.test(contentType)) throw new UnreadableFile('is not served as XML');
  return readFixingsXml(body.toString('utf8'));
}

function readZip(body: Buffer, contentType: string): FixingFile {
  if (!ZIP_TYPE.test(contentType)) throw new UnreadableFile('is not served as a zip');
  return readFixingsZip(body);
}

/** The daily and the 90-day file, strictly parsed: a truncated one would otherwise look like one with fewer days. */
export function readFixingsXml(text: string): FixingFile {
  const days = new Map<string, Map<string, string>>();
  let day: Map<string, string> | undefined;
  const parser = new SaxesParser({});
  parser.on('error', (error) => {
    throw new UnreadableFile('is no XML', { cause: error });
  });
  parser.on('opentag', ({ name, attributes: { time, currency, rate } }) => {
    if (name !== 'Cube') return;
    if (time !== undefined) {
      day = new Map([['EUR', '1']]);
      days.set(String(time), day);
    } else if (currency !== undefined) {
      day?.set(String(currency), String(rate));
    }
  });
  parser.write(text).close();
  return checked([...days.keys()], (date) => days.get(date));
}

/** The history of 27 years is 1.5 MB of text. A file of ten times that size is not the ECB's. */
const MAX_UNZIPPED = 16 * 1024 * 1024;

/** The full history: a zip that holds one CSV, a row a day, `N/A` where a currency was not quoted. */
export function readFixingsZip(zip: Uint8Array): FixingFile {
  try {
    const files = unzipSync(zip, {
      filter: ({ name, originalSize }) => name.endsWith('.csv') && originalSize <= MAX_UNZIPPED,
    });
    const [csv] = Object.values(files);
    if (csv) return readFixingsCsv(Buffer.from(csv).toString('utf8'));
  } catch (error) {
    if (error instanceof UnreadableFile) throw error;
    throw new UnreadableFile('is no zip', { cause: error });
  }
  throw new UnreadableFile('holds no history');
}

/** Rows stay text until they are read: seven thousand days of forty columns would be many small strings. */
export function readFixingsCsv(text: string): FixingFile {
  const [header = '', ...rows] = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const [first, ...codes] = header.split(',');
  if (first !== 'Date') throw new UnreadableFile('has no header');
  const byDate = new Map(rows.map((row) => [row.slice(0, 10), row]));
  return checked([...byDate.keys()], (date) => {
    const cells = byDate.get(date)?.split(',').slice(1);
    if (!cells) return undefined;
    if (cells.length !== codes.length) throw new UnreadableFile('has a row that was cut short');
    const quoted = codes.flatMap((code, at) =>
      code === '' || cells[at] === 'N/A' ? [] : [[code, cells[at] ?? ''] as const],
    );
    return new Map([['EUR', '1'], ...quoted]);
  });
}

/** Throws UnreadableFile unless its days are real and descend, and each has known codes with positive rates. */
function checked(dates: readonly string[], ratesOf: (date: string) => Map<string, string> | undefined): FixingFile {
  if (dates.length === 0) throw new UnreadableFile('holds no rates');
  const orderly = dates.every((date, at) => isCalendarDate(date) && (at === 0 || date < (dates[at - 1] ?? '')));
  if (!orderly) throw new UnreadableFile('has days that are none or out of order');
  return {
    dates,
    read(date) {
      const rates = ratesOf(date);
      if (!rates) return null;
      const sound = rates.size > 1 && [...rates].every(([code, rate]) => /^[A-Z]{3}$/.test(code) && isRate(rate));
      if (!sound) throw new UnreadableFile(`has rates for ${date} that are none`);
      return { date, rates };
    },
  };
}

const code = z.string().regex(/^[A-Z]{3}$/);
/** JSON numbers of a few digits, so their shortest text is the text that was sent. */
const rates = z.record(code, z.number().transform(String).refine(isRate));

/** Version 1 is frozen and has the ECB's rates only. Weak currencies lose digits in it, so it is the second choice. */
const answerSchema = z.object({ amount: z.literal(1), base: code, date: z.string().refine(isCalendarDate), rates });

const spanSchema = z.object({
  amount: z.literal(1),
  base: code,
  rates: z.record(z.string().refine(isCalendarDate), rates),
});

const FRANKFURTER = 'European Central Bank, through Frankfurter';

/** The ECB's rates as Frankfurter serves them, per euro. `baseUrl` ends with the version. */
function createFrankfurter(upstream: Upstream, baseUrl: string): FixingSource {
  return {
    async at(date) {
      const url = `${baseUrl}/${date ?? 'latest'}?base=EUR`;
      const answer = await upstream.jsonDated({ url }, answerSchema);
      if (answer === null) throw new UpstreamFailed(upstream.name, `has no fixing for ${date ?? 'today'}`);
      const { data, retrievedAtMs } = answer;
      if (date !== null && data.date > date) throw new UpstreamFailed(upstream.name, 'answered for a later day');
      return { fixing: fixingOn(data.date, data.base, data.rates), source: FRANKFURTER, url, retrievedAtMs };
    },

    async between(from, to) {
      const url = `${baseUrl}/${from}..${to}?base=EUR`;
      const answer = await upstream.jsonDated({ url }, spanSchema);
      if (answer === null) throw new UpstreamFailed(upstream.name, `has no fixings from ${from} to ${to}`);
      const { data, retrievedAtMs } = answer;
      // It may begin with the last fixing before the span.
      const days = Object.entries(data.rates).filter(([day]) => day >= from && day <= to);
      const fixings = days.sort(([a], [b]) => (a < b ? 1 : -1)).map(([day, ofDay]) => fixingOn(day, data.base, ofDay));
      return { fixings, source: FRANKFURTER, url, retrievedAtMs };
    },
  };
}

function fixingOn(date: string, base: string, rates: Record<string, string>): Fixing {
  return { date, rates: new Map([[base, '1'], ...Object.entries(rates)]) };
}
