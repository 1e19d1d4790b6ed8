/** How a present header is set. `ignored`: browsers ignore it over plain http. `obsolete`: browsers ignore it everywhere. */
export type Judgement = 'good' | 'weak' | 'invalid' | 'ignored' | 'obsolete';
/** How important a missing header is. `covered`: another header has its effect. `inapplicable`: it has no effect over http. */
export type Lack = 'needed' | 'advised' | 'optional' | 'covered' | 'inapplicable';

/** The security headers of an answer, each with a judgement. */
export interface SecurityHeaders {
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

/** Half a year, below which Mozilla's HTTP Observatory marks HSTS down (https://developer.mozilla.org/observatory). */
const HSTS_SECONDS = 15_768_000;
/** Values are cut to this length: a policy may have 10 KB. */
const MAX_VALUE = 500;

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

/** Once advised, now without effect or harmful: reported when present, not reported as missing. */
const OBSOLETE = ['x-xss-protection', 'expect-ct', 'public-key-pins', 'feature-policy'];

/** Judges the security headers of an answer that came over http or https. */
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

/** RFC 6797: one max-age in whole seconds. Two headers, which arrive joined by a comma, are invalid. */
function judgeTransport(value: string, https: boolean): Judgement {
  if (!https) return 'ignored';
  const ages = value.split(';').flatMap((part) => /^\s*max-age\s*=\s*"?(\d+)"?\s*$/i.exec(part)?.[1] ?? []);
  if (ages.length !== 1 || value.includes(',')) return 'invalid';
  return Number(ages[0]) >= HSTS_SECONDS ? 'good' : 'weak';
}

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
