import type { PageLink } from './page-content.ts';
import type { PageDocument, PageElement } from './page-dom.ts';
import { lineOf, ownNodes, ownText } from './page-text.ts';

/** Longer URLs carry a session or an attack. */
const MAX_URL = 1000;
/** How many links an answer has. */
const MAX_LINKS = 200;
const MAX_LINK_TEXT = 200;

/** What relative URLs of a page refer to: its `base` element, if that is usable, else its own URL. */
export function baseOf(document: PageDocument, url: string): string {
  return webUrl(document.querySelector('base[href]')?.getAttribute('href') ?? null, url) ?? url;
}

/** A reference as an absolute http(s) URL; null for another scheme, for none, and for one that is too long. */
export function webUrl(reference: string | null, base: string): string | null {
  if (reference === null || reference.length > MAX_URL) return null;
  const url = URL.parse(reference.trim(), base);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return null;
  return url.href.length > MAX_URL ? null : url.href;
}

/** The texts of a page's links by their URLs, in the page's order. Links within the page itself are left out. */
export function linksOf(document: PageDocument, url: string, base: string): Map<string, string | null> {
  const own = withoutFragment(url);
  const links = new Map<string, string | null>();
  for (const element of document.querySelectorAll('a[href], area[href]')) {
    const target = webUrl(element.getAttribute('href'), base);
    if (target === null || withoutFragment(target) === own) continue;
    if (!links.get(target)) links.set(target, textOf(element));
  }
  return links;
}

/** The links of an answer: those of the content first, at most 200. */
export function chooseLinks(
  links: ReadonlyMap<string, string | null>,
  content: PageElement | null,
  base: string,
): { readonly links: PageLink[]; readonly linksTruncated: boolean } {
  const within = new Set<string | null>();
  for (const element of content?.querySelectorAll('a[href], area[href]') ?? [])
    within.add(webUrl(element.getAttribute('href'), base));
  const all = [...links].map(([url, text]) => ({ url, text, inContent: within.has(url) }));
  const ordered = [...all.filter(({ inContent }) => inContent), ...all.filter(({ inContent }) => !inContent)];
  return { links: ordered.slice(0, MAX_LINKS), linksTruncated: ordered.length > MAX_LINKS };
}

function textOf(element: PageElement): string | null {
  const label = element.getAttribute('aria-label') ?? element.getAttribute('title');
  return lineOf(ownText(element, isLink), MAX_LINK_TEXT) ?? lineOf(label ?? altOf(element), MAX_LINK_TEXT);
}

/** The alternative text of a link's first picture that has one. */
function altOf(link: PageElement): string | null {
  for (const node of ownNodes(link, isLink)) {
    const alt = node.nodeName.toUpperCase() === 'IMG' ? node.getAttribute('alt') : null;
    if (alt !== null) return alt;
  }
  return null;
}

/** Whether a node is a link, or the place of one. */
export function isLink(nodeName: string): boolean {
  return nodeName.toUpperCase() === 'A';
}

function withoutFragment(url: string): string {
  return url.split('#')[0] ?? url;
}
