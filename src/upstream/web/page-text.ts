import { clipText } from '../../lib/untrusted.ts';
import type { PageLink } from './page-content.ts';

// What a reader sees of a page: its text, its lines, its links and its words.

/** The parts of a DOM that are used. linkedom's own types would need the browser's. */
interface PageNode {
  readonly nodeType: number;
  readonly nodeName: string;
  readonly textContent: string | null;
  readonly childNodes: ArrayLike<PageNode>;
  getAttribute?(name: string): string | null;
}

export interface PageElement extends PageNode {
  textContent: string | null;
  readonly childNodes: ArrayLike<PageElement>;
  readonly firstChild: PageElement | null;
  readonly parentNode: PageElement | null;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): void;
  remove(): void;
  querySelector(selector: string): PageElement | null;
  querySelectorAll(selector: string): Iterable<PageElement>;
}

export interface PageDocument extends Pick<PageElement, 'querySelector' | 'querySelectorAll'> {
  readonly documentElement: PageElement | null;
  readonly body: PageElement | null;
}

/** Kinds of nodes, by the DOM's numbers. */
export const ELEMENT = 1;
export const TEXT = 3;

/** Elements that are not text of the page: code, controls, and parts that repeat on every page of a site. */
const SKIPPED = new Set([
  ...['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'SVG', 'IFRAME', 'OBJECT', 'CANVAS', 'HEAD', 'NAV'],
  ...['SELECT', 'BUTTON', 'INPUT', 'TEXTAREA', 'DIALOG', 'MATH'],
]);
/** Elements with an empty line around them, then elements on their own lines. */
const PARAGRAPHS = new Set('P H1 H2 H3 H4 H5 H6 UL OL DL TABLE BLOCKQUOTE PRE FIGURE'.split(' '));
const LINES = new Set([
  ...'DIV LI TR DT DD SECTION ARTICLE MAIN HEADER FOOTER ASIDE ADDRESS FIGCAPTION'.split(' '),
  ...'FIELDSET FORM HR BODY CAPTION DETAILS SUMMARY'.split(' '),
]);
const CELLS = new Set(['TD', 'TH']);
/** Marks the end of a line. Several in a row end it once. No text contains it, because white space is collapsed. */
const EDGE = '\v';

/** Up to `maxUnits` of what a reader sees. Uses its own stack, because pages may nest deeper than the call stack. */
export function visibleText(root: PageNode, maxUnits: number): string {
  const parts: string[] = [];
  let units = 0;
  // A string is text to write after the children of a node.
  const stack: (PageNode | string)[] = [root];
  for (let next = stack.pop(); next !== undefined && units < maxUnits; next = stack.pop()) {
    const written = typeof next === 'string' ? next : enter(next, stack);
    if (written === '') continue;
    parts.push(written);
    units += written.length;
  }
  return tidy(parts.join(''));
}

function enter(node: PageNode, stack: (PageNode | string)[]): string {
  if (node.nodeType === TEXT) return (node.textContent ?? '').replace(/\s+/g, ' ');
  if (node.nodeType === ELEMENT && isUnseen(node)) return '';
  const name = node.nodeName.toUpperCase();
  if (name === 'BR') return '\n';
  // Preformatted text keeps its lines.
  if (name === 'PRE') return `\n\n${node.textContent ?? ''}\n\n`;
  const edge = PARAGRAPHS.has(name) ? '\n\n' : LINES.has(name) ? EDGE : CELLS.has(name) ? ' ' : '';
  if (edge !== '') stack.push(edge);
  const children = node.childNodes;
  for (let at = children.length - 1; at >= 0; at--) {
    const child = children[at];
    if (child !== undefined) stack.push(child);
  }
  return edge;
}

/** Code, controls, menus, and what is hidden. */
export function isUnseen(node: PageNode): boolean {
  if (SKIPPED.has(node.nodeName.toUpperCase())) return true;
  const read = (name: string) => node.getAttribute?.(name) ?? null;
  if (read('hidden') !== null || read('aria-hidden') === 'true') return true;
  return /(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(read('style') ?? '');
}

/** One space between words, no space at the ends of lines, at most one empty line. */
export function tidy(text: string): string {
  return text
    .normalize('NFC')
    .replace(/\r\n?/g, '\n')
    .replace(/[^\S\n\v]+/g, ' ')
    .replace(/[ \v\n]*[\v\n][ \v\n]*/g, (run) => (run.split('\n').length > 2 ? '\n\n' : '\n'))
    .trim();
}

/** A text on one line without control characters, cut to `max` characters; null when nothing is left. */
export function lineOf(text: string | null | undefined, max: number): string | null {
  const plain = tidy((text ?? '').replace(CONTROLS, '')).replace(/\n+/g, ' ');
  const clipped = clipText(plain, max).text;
  return clipped === '' ? null : clipped;
}

/** Control characters other than white space. No text has them on purpose, and terminals obey them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
export const CONTROLS = /[\u0000-\u0008\u000e-\u001f\u007f-\u009f]/g;

/** Whether a character is neither white space nor of no width nor a control. */
export function isSeen(text: string): boolean {
  return /[^\p{C}\p{Z}]/u.test(text);
}

// Word boundaries hardly depend on the language: dictionaries of Chinese, Japanese, Thai and others are always used.
const segmenter = new Intl.Segmenter('en', { granularity: 'word' });

/** The words of a text by Unicode's rules (UAX 29), also in scripts without spaces. Punctuation counts for none. */
export function countWords(text: string): number {
  let words = 0;
  for (const { isWordLike } of segmenter.segment(text)) if (isWordLike) words += 1;
  return words;
}

export function isDeeper(root: PageNode, max: number): boolean {
  const stack = [{ node: root, depth: 0 }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { node, depth } = next;
    if (depth > max) return true;
    for (const child of Array.from(node.childNodes))
      if (child.nodeType === ELEMENT) stack.push({ node: child, depth: depth + 1 });
  }
  return false;
}

export function ownText(root: PageNode, isSame: (nodeName: string) => boolean): string {
  const parts: string[] = [];
  for (const node of ownNodes(root, isSame)) if (node.nodeType === TEXT) parts.push(node.textContent ?? '');
  return parts.join('');
}

/** Without a nested element of the same kind, where browsers close the outer one: one pass reads them all. */
function* ownNodes<N extends PageNode>(root: N, isSame: (nodeName: string) => boolean): Generator<N> {
  const stack: N[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (node !== root) {
      if (isSame(node.nodeName)) continue;
      yield node;
    }
    const children = Array.from(node.childNodes) as N[];
    for (const child of children.reverse()) stack.push(child);
  }
}

/** Longer URLs carry a session or an attack. */
const MAX_URL = 1000;
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

/** Texts by URLs, in the page's order. Links within the page itself are left out. */
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

function withoutFragment(url: string): string {
  return url.split('#')[0] ?? url;
}

function textOf(element: PageElement): string | null {
  const label = element.getAttribute('aria-label') ?? element.getAttribute('title');
  return lineOf(ownText(element, isLink), MAX_LINK_TEXT) ?? lineOf(label ?? altOf(element), MAX_LINK_TEXT);
}

function altOf(link: PageElement): string | null {
  for (const node of ownNodes(link, isLink)) {
    const alt = node.nodeName.toUpperCase() === 'IMG' ? node.getAttribute('alt') : null;
    if (alt !== null) return alt;
  }
  return null;
}

export function isLink(nodeName: string): boolean {
  return nodeName.toUpperCase() === 'A';
}

/** Those of the content first. */
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
