import { plainText } from '../../lib/untrusted.ts';

/** A web page of a project, as its author names it. It proves nothing. */
export interface ProjectUrl {
  readonly label: string;
  readonly url: string;
}

/** More than any project of use has. */
const MAX_URLS = 20;
const MAX_LABEL = 50;
const MAX_URL = 500;

/** The web pages among what an author wrote: at most twenty, each address once, in their order. Anything that is no http(s) address is left out. */
export function projectUrls(stated: Iterable<readonly [label: string, url: unknown]>): ProjectUrl[] {
  const found = new Map<string, ProjectUrl>();
  for (const [label, value] of stated) {
    const url = webUrl(value);
    if (url !== null && !found.has(url)) found.set(url, { label: plainText(label, MAX_LABEL), url });
    if (found.size === MAX_URLS) break;
  }
  return [...found.values()];
}

/** npm's shorthands for a repository (https://docs.npmjs.com/cli/configuring-npm/package-json#repository); without a prefix GitHub's. */
const SHORTHAND = /^(github:|gitlab:|bitbucket:)?([\w.-]+\/[\w.-]+)$/;
const HOSTS: Record<string, string> = { 'gitlab:': 'gitlab.com', 'bitbucket:': 'bitbucket.org' };

/** npm's `repository` as the address of a web page, or null where it names none. */
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

/** The address in its normal form, without credentials. Null for anything but http(s), and for an address that is too long to pass on. */
function webUrl(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MAX_URL || !URL.canParse(value.trim())) return null;
  const url = new URL(value.trim());
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return null;
  url.username = '';
  url.password = '';
  return url.href.length <= MAX_URL ? url.href : null;
}
