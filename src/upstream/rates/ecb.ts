import { UpstreamFailed } from '../../errors.ts';
import { type Clock, daysBetween } from '../../lib/clock.ts';
import type { Upstream } from '../client/http.ts';
import { isDue } from './ecb-calendar.ts';
import { type FixingFile, readFixingsXml, readFixingsZip, UnreadableFile } from './ecb-files.ts';
import type { DatedFixing, DatedFixings, Fixing, FixingSource } from './fixing.ts';

/** The longest gap between ECB fixings is five days, at Easter and Christmas. Frankfurter also looks back 14 days. */
const MAX_GAP_DAYS = 14;
/** The history only grows; its newest days come from the other two files. */
const HISTORY_FRESH_MS = 24 * 3_600_000;
/** How long a copy may replace a file that cannot be read. After that the other source is asked. */
const STALE_MS = 24 * 3_600_000;
/** After a failed read the current copy is used for this time, so that not every call waits for a dead host. */
const RETRY_MS = 60_000;

const PUBLISHER = 'European Central Bank';

const XML_TYPE = /^(application|text)\/([\w.+-]+\+)?xml|^text\/plain|^application\/octet-stream/i;
const ZIP_TYPE = /^application\/(x-)?zip|^application\/octet-stream/i;

interface Copy {
  readonly file: FixingFile;
  readonly newest: string;
  readonly url: string;
  readonly readAtMs: number;
}

interface Kept {
  /** A copy that is fresh and contains the date; it is read again if needed. Rejects with UpstreamFailed when there is none. */
  upTo(date: string): Promise<Copy>;
}

/**
 * The ECB's reference rates from the three files that it publishes: today, the last 90 days, everything since 1999.
 * A day without a fixing (a weekend, a holiday) gives the last one before it. `baseUrl` is the folder of the files.
 */
export function createEcb(upstream: Upstream, baseUrl: string, clock: Clock): FixingSource {
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

type Reader = (body: Buffer, contentType: string) => FixingFile;
type Due = (copy: Copy, nowMs: number) => boolean;

function readXml(body: Buffer, contentType: string): FixingFile {
  if (!XML_TYPE.test(contentType)) throw new UnreadableFile('is not served as XML');
  return readFixingsXml(body.toString('utf8'));
}

function readZip(body: Buffer, contentType: string): FixingFile {
  if (!ZIP_TYPE.test(contentType)) throw new UnreadableFile('is not served as a zip');
  return readFixingsZip(body);
}

/** One file, cached in parsed form. Concurrent callers share one read. */
function keepFile(upstream: Upstream, url: string, read: Reader, due: Due, clock: Clock): Kept {
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
    async upTo(date) {
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
