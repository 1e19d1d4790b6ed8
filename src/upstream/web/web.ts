import { AppError, BadParameter, NotFound, Unavailable, UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { mediaTypeOf } from '../client/exchange.ts';
import { ExchangeFailed, withinDeadline } from '../client/failure.ts';
import { createHostLimit, createLimiter, LimiterFull } from '../client/limiter.ts';
import { createProgress, type DialOptions, type Hop, type Progress, type Reached } from '../guard/dial.ts';
import { type Landing, visit } from '../guard/follow.ts';
import { hostOf } from '../guard/guard.ts';
import { kindOfPage, type PageContent, type PageSource } from './page-content.ts';
import type { PageReader } from './page-reader.ts';
import { isSeen } from './page-text.ts';

/**
 * Both methods reject with `url_not_public` (400), NotFound, UpstreamFailed (502), which names the host, TooMany (429)
 * for a host's limit, Unavailable (503). `check` resolves to UnreachedUrl for NotFound and UpstreamFailed.
 */
export interface Web {
  readonly measuredFrom: string;
  extract(url: string, signal: AbortSignal): Promise<ExtractedPage>;
  /** Any status is an answer; the body is not read. */
  check(url: string, signal: AbortSignal): Promise<CheckedUrl | UnreachedUrl>;
}

interface ExtractedPage extends PageContent {
  readonly finalUrl: string;
  readonly status: number;
  readonly contentType: string | null;
  readonly retrievedAtMs: number;
}

interface CheckedUrl extends Pick<Landing, 'status' | 'totalMs' | 'timings' | 'tls'> {
  readonly finalUrl: string;
  readonly redirects: readonly Hop[];
  readonly securityHeaders: SecurityHeaders;
  readonly retrievedAtMs: number;
}

export interface UnreachedUrl {
  /** NotFound for a host that does not exist, else UpstreamFailed. */
  readonly failure: AppError;
  /** Names no host. */
  readonly reason: string;
  /** Whether the cause may be ours, so that the URL may be up. */
  readonly mayBeOurs: boolean;
  readonly reached: Reached;
  readonly retrievedAtMs: number;
}

interface WebOptions {
  readonly clock: Clock;
  readonly userAgent: string;
  /** Our own public origin, which answers contain. */
  readonly measuredFrom: string;
  /** The time-out of fetching one page. Reading it has time-outs of its own. */
  readonly timeoutMs: number;
  readonly hostPerMinute: number;
  readonly pages: PageReader;
  readonly dial: DialOptions;
}

/** 99 of 100 pages have less HTML than 1 MB (https://httparchive.org/reports/page-weight); limits a call's memory. */
const MAX_PAGE_BYTES = 3 * 1024 * 1024;
/** Parallel visits. With the limit above they hold at most some 200 MB, so a visit lasts until its page is read. */
const VISITS = 64;
/** The most waiting visits. A visit that waits longer than the limit below is refused with 503. */
const WAITING_VISITS = 512;
const WAIT_MS = 4000;

/** Opens nothing until the first call. Each waits for its turn and closes its connection; a thread reads the page. */
export function createWeb(options: WebOptions): Web {
  const { clock, userAgent, measuredFrom, timeoutMs, pages, dial } = options;
  const limiter = createLimiter(VISITS, WAITING_VISITS, WAIT_MS);
  const limitHost = createHostLimit(options.hostPerMinute, clock);

  async function inTurn<T>(text: string, signal: AbortSignal, task: (url: URL) => Promise<T>): Promise<T> {
    const url = URL.parse(text);
    if (url === null) throw new BadParameter([{ path: 'url', message: 'not a URL' }]);
    try {
      return await limiter.run(signal, () => task(url));
    } catch (error) {
      throw named(hostOf(url), error);
    }
  }

  function fetched<T>(url: URL, signal: AbortSignal, use: (landing: Landing) => T | Promise<T>, progress?: Progress) {
    return withinDeadline(timeoutMs, signal, async (within) => {
      const landing = await visit(url, { ...dial, userAgent, limitHost, progress }, within);
      try {
        return await use(landing);
      } finally {
        await landing.close();
      }
    });
  }

  return {
    measuredFrom,
    extract: (text, signal) =>
      inTurn(text, signal, async (url) => {
        const { source, status } = await fetched(url, signal, async (landing) => {
          requireSuccess(landing.status, hostOf(landing.url));
          return { source: await readSource(landing), status: landing.status };
        });
        const retrievedAtMs = clock.nowMs();
        const content = await pages.read(source, signal);
        // An answer without text is not sold. Scripts, which write some pages, are not run. JSON always has some.
        if (!isSeen(content.text)) throw new ExchangeFailed('reading', 'its page has no text');
        const named = source.contentType === null ? null : mediaTypeOf(source.contentType);
        return { ...content, finalUrl: source.url, status, contentType: named, retrievedAtMs };
      }),
    async check(text, signal) {
      const progress = createProgress(text);
      const use = (landing: Landing) => checkedUrl(landing, clock.nowMs());
      try {
        return await inTurn(text, signal, (url) => fetched(url, signal, use, progress));
      } catch (error) {
        if (!(error instanceof NotFound || error instanceof UpstreamFailed)) throw error;
        return unreachedUrl(error, progress.reached(), clock.nowMs());
      }
    },
  };
}

function requireSuccess(status: number, host: string): void {
  if (status === 404 || status === 410)
    throw new NotFound(`${host} answers ${status}: it has no such page`, 'page_not_found');
  if (status < 200 || status > 299) throw new ExchangeFailed('reading', `it answers HTTP ${status}`);
}

/** Throws ExchangeFailed for what is no page, without reading it when the type suffices. */
async function readSource(landing: Landing): Promise<PageSource> {
  const { headers, url } = landing;
  const contentType = headers['content-type'] ?? null;
  const known = kindOfPage(contentType, null);
  const bytes = known === 'other' ? null : await landing.read(MAX_PAGE_BYTES);
  const kind = bytes === null ? 'other' : kindOfPage(contentType, bytes);
  if (bytes === null || kind === 'other') {
    const what = contentType ? mediaTypeOf(contentType) : 'binary data';
    throw new ExchangeFailed('reading', `it answers ${what}, not a page`);
  }
  return { bytes, url: url.href, contentType, contentLanguage: headers['content-language'] ?? null, kind };
}

function checkedUrl({ url, status, headers, hops, totalMs, timings, tls }: Landing, retrievedAtMs: number): CheckedUrl {
  const securityHeaders = judgeHeaders(headers, url.protocol === 'https:');
  return { finalUrl: url.href, status, redirects: hops, totalMs, timings, tls, securityHeaders, retrievedAtMs };
}

function unreachedUrl(failure: NotFound | UpstreamFailed, reached: Reached, retrievedAtMs: number): UnreachedUrl {
  const cause = failure.cause instanceof ExchangeFailed ? failure.cause : null;
  // The name was looked up until the deadline.
  const unresolved = failure instanceof UpstreamFailed && reached.phase === 'dns';
  const mayBeOurs = unresolved || (cause?.mayBeOurs ?? false);
  return { failure, reason: cause?.message ?? failure.message, mayBeOurs, reached, retrievedAtMs };
}

function named(host: string, error: unknown): unknown {
  if (error instanceof AppError) return error;
  if (error instanceof LimiterFull)
    return new Unavailable('web_busy', 'too many pages are being fetched; try again shortly', 5);
  return error instanceof ExchangeFailed ? new UpstreamFailed(host, error.message, error) : error;
}

// The security headers of an answer, each with a judgement

/** How a header is set. `ignored`: browsers ignore it over plain http. `obsolete`: browsers ignore it everywhere. */
type Judgement = 'good' | 'weak' | 'invalid' | 'ignored' | 'obsolete';
/** How important a missing one is. `covered`: another header has its effect. `inapplicable`: no effect over http. */
type Lack = 'needed' | 'advised' | 'optional' | 'covered' | 'inapplicable';

interface SecurityHeaders {
  readonly present: { readonly name: string; readonly value: string; readonly judgement: Judgement }[];
  readonly missing: { readonly name: string; readonly judgement: Lack }[];
}

type Headers = Readonly<Record<string, string>>;

interface Rule {
  readonly name: string;
  readonly lack: Lack;
  /** Whether another header, or the scheme, makes this one needless. */
  readonly instead?: (headers: Headers, https: boolean) => Lack | null;
  readonly judge: (value: string, https: boolean) => Judgement;
}

/** Values are cut to this length: a policy may have 10 KB. */
const MAX_VALUE = 500;

/** Once advised, now without effect or harmful: reported when present, not reported as missing. */
const OBSOLETE = ['x-xss-protection', 'expect-ct', 'public-key-pins', 'feature-policy'];

export function judgeHeaders(headers: Headers, https: boolean): SecurityHeaders {
  const present: SecurityHeaders['present'] = [];
  const missing: SecurityHeaders['missing'] = [];
  for (const { name, lack, instead, judge } of RULES) {
    const value = headers[name];
    if (value === undefined) missing.push({ name, judgement: instead?.(headers, https) ?? lack });
    else present.push({ name, value: value.slice(0, MAX_VALUE), judgement: judge(value, https) });
  }
  for (const name of OBSOLETE) {
    const value = headers[name];
    if (value !== undefined) present.push({ name, value: value.slice(0, MAX_VALUE), judgement: 'obsolete' });
  }
  return { present, missing };
}

const oneOf =
  (good: readonly string[], weak: readonly string[] = []) =>
  (value: string): Judgement => {
    const word = value.trim().toLowerCase();
    return good.includes(word) ? 'good' : weak.includes(word) ? 'weak' : 'invalid';
  };

const crossOriginOpener = oneOf(['same-origin', 'same-origin-allow-popups', 'noopener-allow-popups'], ['unsafe-none']);

/** The headers of the Observatory and of OWASP's Secure Headers Project, by descending importance. */
const RULES: readonly Rule[] = [
  { name: 'content-security-policy', lack: 'needed', judge: judgePolicy },
  {
    name: 'strict-transport-security',
    lack: 'needed',
    instead: (_, https) => (https ? null : 'inapplicable'),
    judge: judgeTransport,
  },
  { name: 'x-content-type-options', lack: 'needed', judge: oneOf(['nosniff']) },
  {
    name: 'x-frame-options',
    lack: 'needed',
    instead: (headers) =>
      /(^|;)\s*frame-ancestors\s/i.test(headers['content-security-policy'] ?? '') ? 'covered' : null,
    judge: oneOf(['deny', 'sameorigin']),
  },
  { name: 'referrer-policy', lack: 'advised', judge: judgeReferrer },
  { name: 'permissions-policy', lack: 'optional', judge: (value) => (value.includes('=') ? 'good' : 'invalid') },
  { name: 'cross-origin-opener-policy', lack: 'optional', judge: crossOriginOpener },
  {
    name: 'cross-origin-embedder-policy',
    lack: 'optional',
    judge: oneOf(['require-corp', 'credentialless'], ['unsafe-none']),
  },
  {
    name: 'cross-origin-resource-policy',
    lack: 'optional',
    judge: oneOf(['same-origin', 'same-site'], ['cross-origin']),
  },
];

/** A policy is weak when it allows any script, scripts from any origin, or has no rule for scripts. */
function judgePolicy(value: string): Judgement {
  const directives = new Map(
    value.split(/[;,]/).flatMap((part) => {
      const [name = '', ...sources] = part.trim().toLowerCase().split(/\s+/);
      return name === '' ? [] : [[name, sources] as const];
    }),
  );
  if (directives.size === 0) return 'invalid';
  const scripts = directives.get('script-src') ?? directives.get('default-src');
  if (scripts === undefined) return 'weak';
  // A nonce or a hash makes browsers ignore 'unsafe-inline' (CSP Level 3, 6.7.3.2).
  const pinned = scripts.some((source) => /^'(nonce|sha(256|384|512))-/.test(source));
  const loose = scripts.some(
    (source) =>
      ['*', 'http:', 'https:', 'data:', "'unsafe-eval'"].includes(source) || (source === "'unsafe-inline'" && !pinned),
  );
  return loose && !scripts.includes("'strict-dynamic'") ? 'weak' : 'good';
}

/** Half a year, below which Mozilla's HTTP Observatory marks HSTS down (https://developer.mozilla.org/observatory). */
const HSTS_SECONDS = 15_768_000;

/** RFC 6797: one max-age in whole seconds. Two headers, which arrive joined by a comma, are invalid. */
function judgeTransport(value: string, https: boolean): Judgement {
  if (!https) return 'ignored';
  const ages = value.split(';').flatMap((part) => /^\s*max-age\s*=\s*"?(\d+)"?\s*$/i.exec(part)?.[1] ?? []);
  if (ages.length !== 1 || value.includes(',')) return 'invalid';
  return Number(ages[0]) >= HSTS_SECONDS ? 'good' : 'weak';
}

const REFERRERS: Record<string, Judgement> = {
  'no-referrer': 'good',
  'same-origin': 'good',
  'strict-origin': 'good',
  'strict-origin-when-cross-origin': 'good',
  'no-referrer-when-downgrade': 'weak',
  origin: 'weak',
  'origin-when-cross-origin': 'weak',
  'unsafe-url': 'weak',
};

/** The last value that a browser knows counts (Referrer Policy, 8.1). */
function judgeReferrer(value: string): Judgement {
  const known = value
    .split(',')
    .map((part) => part.trim().toLowerCase())
    .filter((part) => Object.hasOwn(REFERRERS, part));
  return REFERRERS[known.at(-1) ?? ''] ?? 'invalid';
}
