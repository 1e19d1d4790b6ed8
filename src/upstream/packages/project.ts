import { plainText } from '../../lib/untrusted.ts';

// A package's licence and web pages, as its author states them.

/** Longer than any SPDX expression in use, shorter than any licence's text, which some packages give instead. */
const MAX_LICENCE = 100;

/** npm's `license` in all its forms: an expression, an old `{ type }`, or an array of either (alternatives). */
export function npmLicence(...values: readonly unknown[]): string | null {
  for (const value of values) {
    const names = (Array.isArray(value) ? value : [value]).map(nameOf).filter((name) => name !== null);
    if (names.length === 1) return names[0] ?? null;
    if (names.length > 1) return `(${names.join(' OR ')})`;
  }
  return null;
}

function nameOf(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return shortLicence(value);
  return shortLicence('type' in value ? value.type : 'name' in value ? value.name : null);
}

/** PEP 639's expression, else the old free text when it is short, else what the classifiers name. */
export function pythonLicence(info: {
  license_expression?: string | null | undefined;
  license?: string | null | undefined;
  classifiers?: readonly string[] | null | undefined;
}): string | null {
  const classified = (info.classifiers ?? []).flatMap((entry) => {
    const [family, ...parts] = entry.split(' :: ');
    // The family alone (`License :: OSI Approved`) names no licence.
    return family === 'License' && parts.at(-1) !== 'OSI Approved' ? parts.slice(-1) : [];
  });
  return shortLicence(info.license_expression) ?? shortLicence(info.license) ?? (classified.join(', ') || null);
}

/** A licence as one short line. Null for whole texts, placeholders and blanks. */
export function shortLicence(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const text = value.trim();
  const says = text.length <= MAX_LICENCE && /[A-Za-z]/.test(text) && !/[\r\n]/.test(text);
  return says && !/^(UNKNOWN|NONE)$/i.test(text) ? text : null;
}

/** A web page of a project, as its author names it. It proves nothing. */
export interface ProjectUrl {
  readonly label: string;
  readonly url: string;
}

/** More than any project of use has. */
const MAX_URLS = 20;
const MAX_LABEL = 50;
const MAX_URL = 500;

/** The http(s) addresses among what an author wrote: at most twenty, each once, in their order. */
export function projectUrls(stated: Iterable<readonly [label: string, url: unknown]>): ProjectUrl[] {
  const found = new Map<string, ProjectUrl>();
  for (const [label, value] of stated) {
    const url = webUrl(value);
    if (url !== null && !found.has(url)) found.set(url, { label: plainText(label, MAX_LABEL), url });
    if (found.size === MAX_URLS) break;
  }
  return [...found.values()];
}

/** npm's short forms (https://docs.npmjs.com/cli/configuring-npm/package-json#repository); no prefix means GitHub. */
const SHORTHAND = /^(github:|gitlab:|bitbucket:)?([\w.-]+\/[\w.-]+)$/;
const HOSTS: Record<string, string> = { 'gitlab:': 'gitlab.com', 'bitbucket:': 'bitbucket.org' };

export function repositoryPage(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const short = SHORTHAND.exec(value.trim());
  if (short) return webUrl(`https://${HOSTS[short[1] ?? ''] ?? 'github.com'}/${short[2]}`);
  return webUrl(
    value
      .trim()
      .replace(/^git\+/, '')
      .replace(/^(git|ssh):\/\/(git@)?/, 'https://')
      .replace(/\.git$/, ''),
  );
}

/** The normal form, without credentials. Null for anything but http(s), and for one that is too long. */
function webUrl(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MAX_URL || !URL.canParse(value.trim())) return null;
  const url = new URL(value.trim());
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return null;
  url.username = '';
  url.password = '';
  return url.href.length <= MAX_URL ? url.href : null;
}
