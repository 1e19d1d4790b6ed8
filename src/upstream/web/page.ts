import { isUtf8 } from 'node:buffer';
import { Readability } from '@mozilla/readability';
import sniff from 'html-encoding-sniffer';
import { parseHTML } from 'linkedom';
import { clipText } from '../../lib/untrusted.ts';
import {
  MAX_AUTHOR,
  MAX_TEXT,
  MAX_UNITS,
  NOT_HTML,
  type PageContent,
  type PageSource,
  UnreadablePage,
} from './page-content.ts';
import { headOf, languageTag } from './page-head.ts';
import { markdownOf } from './page-markdown.ts';
import {
  baseOf,
  chooseLinks,
  countWords,
  isDeeper,
  isLink,
  lineOf,
  linksOf,
  ownText,
  type PageDocument,
  type PageElement,
  tidy,
  visibleText,
} from './page-text.ts';

/** Tags, attributes and entities that are read: some 60 MB as a tree. A long article has 20,000, a news page 5,000. */
const MAX_TOKENS = 40_000;
/** Readability's time grows with the cube of the depth: a second at 400. Pages for readers stay below 60. */
const MAX_DEPTH = 128;
/** A text with a larger share of links is a menu, however long. */
const MAX_LINKED = 0.5;
/** A shorter article is a menu, a notice or a mistake. The whole page's text is then used. */
const MIN_ARTICLE = 200;

/**
 * Reads a page in steps. Never throws on what a page contains, but UnreadablePage for a JSON document that is none.
 * 1. The bytes are decoded as browsers do. Text, Markdown and JSON are then read as they are.
 * 2. Scripts and styles are removed and the markup is cut, because its tree could use up the memory.
 * 3. From the tree come the head's facts, the links, all visible text, and last the article, which changes the tree.
 * 4. The text is the article's, or all visible text of a page without one. The Markdown is made of it.
 */
export function readPage(source: PageSource & { readonly kind: Exclude<PageSource['kind'], 'pdf'> }): PageContent {
  const { bytes, contentType, kind } = source;
  const { text, charset } = decodePage(bytes, contentType, kind === 'html' || kind === 'xhtml' ? kind : 'text');
  const serverLanguage = languageTag(source.contentLanguage);
  if (kind === 'html' || kind === 'xhtml') {
    const read = readHtml(kind === 'xhtml' ? expandEmpty(text) : text, source.url, serverLanguage);
    return { format: 'html', charset, ...read, wordCount: countWords(read.text), pageCount: null };
  }
  if (kind === 'json') requireJson(text);
  const clipped = clipText(text.replace(/\r\n?/g, '\n').trim(), MAX_TEXT);
  const plain = { charset, language: serverLanguage, ...clipped, wordCount: countWords(clipped.text) };
  if (kind !== 'markdown') return { ...NOT_HTML, format: kind, ...plain };
  const markdown = { markdown: clipped.text, markdownTruncated: clipped.truncated, markdownMissing: null };
  return { ...NOT_HTML, format: kind, ...plain, ...markdown };
}

function requireJson(text: string): void {
  try {
    JSON.parse(text);
  } catch {
    throw new UnreadablePage('it answers what is not JSON');
  }
}

/** As browsers do: byte order mark, header, the page's declaration, UTF-8 if valid, windows-1252. Refuses no bytes. */
export function decodePage(bytes: Uint8Array, contentType: string | null, kind: 'html' | 'xhtml' | 'text') {
  const name = sniff(bytes, {
    xml: kind === 'xhtml',
    transportLayerEncodingLabel: charsetOf(contentType),
    defaultEncoding: isUtf8(bytes) ? 'UTF-8' : 'windows-1252',
  });
  // The "replacement" encoding is the standard's name for those that are unsafe to decode (ISO-2022-KR and others).
  const label = name === 'replacement' ? 'utf-8' : name.toLowerCase();
  return { text: new TextDecoder(label).decode(bytes), charset: label };
}

function charsetOf(contentType: string | null): string | undefined {
  return /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType ?? '')?.[1];
}

/** XHTML may close any element in its opening tag. To an HTML parser such a script would hold the rest of the page. */
function expandEmpty(xhtml: string): string {
  return xhtml.replace(
    /<(script|style|title|textarea|iframe|div|p|span|a|i|b|em|strong|td|th|li|h[1-6]|section|article)\b((?:[^<>"']|"[^"]*"|'[^']*')*)\/>/gi,
    '<$1$2></$1>',
  );
}

type HtmlContent = Omit<PageContent, 'format' | 'charset' | 'wordCount' | 'pageCount'>;

function readHtml(whole: string, url: string, serverLanguage: string | null): HtmlContent {
  const { html, cut } = boundMarkup(whole, MAX_TOKENS);
  const { head, base, links, seen, article } = readTree(treeOf(html), whole, url, serverLanguage);
  // Readability has changed the tree, so the page is parsed anew. The first tree would not fit beside the new one.
  const root = article?.root ?? seenRoot(treeOf(html));
  const clipped = clipText(article?.text ?? seen, MAX_TEXT);
  return {
    ...head,
    ...clipped,
    truncated: clipped.truncated || cut,
    ...chooseLinks(links, root, base),
    ...(root === null ? { markdown: '', markdownTruncated: false, markdownMissing: null } : markdownOf(root, base)),
  };
}

const LESS = 0x3c;
const GREATER = 0x3e;
const AMPERSAND = 0x26;
const EQUALS = 0x3d;
const SLASH = 0x2f;

/** Removes scripts and styles, and cuts markup of too large a tree: a worker out of memory may end the process. */
export function boundMarkup(html: string, maxTokens: number): { html: string; cut: boolean } {
  const kept: string[] = [];
  let from = 0;
  let tokens = 0;
  let at = 0;
  while (at < html.length && tokens <= maxTokens) {
    const code = html.charCodeAt(at);
    if (code === AMPERSAND) tokens += 1;
    if (code !== LESS) {
      at += 1;
      continue;
    }
    const raw = rawEnd(html, at);
    if (raw !== null) {
      kept.push(html.slice(from, at));
      from = raw;
      at = raw;
      continue;
    }
    const tag = scanTag(html, at, maxTokens - tokens);
    tokens += tag.tokens;
    at = tag.end;
  }
  kept.push(html.slice(from, at));
  return { html: kept.join(''), cut: at < html.length };
}

/** The end of a script or style that begins here, else null. One without an end takes the rest, as in a browser. */
function rawEnd(html: string, at: number): number | null {
  const name = /^<(script|style)[\s/>]/i.exec(html.slice(at, at + 8))?.[1];
  if (name === undefined) return null;
  const end = new RegExp(`</${name}`, 'gi');
  end.lastIndex = at;
  const close = end.exec(html) ? html.indexOf('>', end.lastIndex) : -1;
  return close < 0 ? html.length : close + 1;
}

/** Counts a tag and its attributes. A quote opens a value only after `=` (HTML, 13.2.5); else it would hide others. */
function scanTag(html: string, start: number, budget: number): { end: number; tokens: number } {
  let tokens = 1;
  let last = LESS;
  let at = start + 1;
  while (at < html.length && tokens <= budget) {
    const code = html.charCodeAt(at);
    if (code === GREATER) return { end: at + 1, tokens };
    if (last === EQUALS && (code === 0x22 || code === 0x27)) {
      const close = html.indexOf(html.charAt(at), at + 1);
      at = close < 0 ? html.length : close + 1;
      tokens += 1;
      last = code;
      continue;
    }
    const separates = code <= 0x20 || code === SLASH;
    if (separates && last !== EQUALS) tokens += last <= 0x20 || last === SLASH ? 0 : 1;
    if (!separates || last !== EQUALS) last = code;
    at += 1;
  }
  return { end: at, tokens };
}

/** linkedom treats a text without a root element as a fragment and does not find its parts, so a root is added. */
function treeOf(html: string): PageDocument {
  const whole = /<html[\s>]/i.test(html) ? html : `<html><head></head><body>${html}</body></html>`;
  return (parseHTML(whole) as unknown as { document: PageDocument }).document;
}

/** Everything but the Markdown. `article` is null when the page holds none. */
function readTree(document: PageDocument, whole: string, url: string, serverLanguage: string | null) {
  const base = baseOf(document, url);
  const head = headOf(document, whole, base, serverLanguage);
  const links = linksOf(document, url, base);
  const seen = seenOf(document);
  // Last, because it changes the document.
  const found = articleOf(document);
  const author = head.author ?? lineOf(found?.byline, MAX_AUTHOR);
  const article = found !== null && found.text.length >= MIN_ARTICLE ? found : null;
  return { head: { ...head, author }, base, links, seen, article };
}

/** Of the page's main part, or of the whole page when no main part is marked. */
function seenOf(document: PageDocument): string {
  const root = seenRoot(document);
  return root ? visibleText(root, MAX_UNITS) : '';
}

function seenRoot(document: PageDocument): PageElement | null {
  const main = document.querySelector('main, [role="main"]');
  const isMain = main !== null && visibleText(main, MAX_UNITS).length >= MIN_ARTICLE;
  return isMain || !document.body ? main : document.body;
}

interface Article {
  readonly root: PageElement;
  readonly text: string;
  readonly byline: string | null;
}

function articleOf(document: PageDocument): Article | null {
  if (document.body && isDeeper(document.body, MAX_DEPTH)) return null;
  try {
    const serializer = (node: unknown) => node as PageElement;
    const options = { serializer, disableJSONLD: true };
    const article = new Readability(document as never, options).parse();
    const root = article?.content;
    if (!root) return null;
    const text = visibleText(root, MAX_UNITS);
    let linked = 0;
    for (const link of root.querySelectorAll('a')) linked += tidy(ownText(link, isLink)).length;
    return linked > text.length * MAX_LINKED ? null : { root, text, byline: article.byline ?? null };
  } catch {
    // Readability failed on an unusual page; the visible text is used instead.
    return null;
  }
}
