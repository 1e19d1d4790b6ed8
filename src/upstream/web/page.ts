import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import { clipText } from '../../lib/clip-text.ts';
import { decodePage } from './page-charset.ts';
import { boundMarkup } from './page-markup.ts';
import { isDeeper, type PageNode, tidy, visibleText } from './page-text.ts';

/** A page as received, for the worker. */
export interface PageSource {
  readonly bytes: Uint8Array;
  readonly contentType: string | null;
  readonly contentLanguage: string | null;
  readonly kind: 'html' | 'xhtml' | 'text';
}

/** The content of a page. */
export interface PageContent {
  readonly charset: string;
  readonly title: string | null;
  readonly description: string | null;
  readonly language: string | null;
  readonly headings: { readonly level: number; readonly text: string }[];
  readonly text: string;
  readonly characters: number;
  readonly truncated: boolean;
}

/** The limit of `web/extract`, in characters: the route promises this number. */
export const MAX_TEXT = 20_000;
/** Text beyond this cannot become part of the answer, even after white space is collapsed. */
const MAX_UNITS = 20 * MAX_TEXT;
/** Far more than pages for readers have. It limits the answer. */
const MAX_HEADINGS = 200;
const MAX_LINE = 500;
/** Tags, attributes and entities that are read: some 60 MB as a tree. A long encyclopedia article has 20,000, a news page 5,000. */
const MAX_TOKENS = 40_000;
/** Readability's time grows with the cube of the depth: a second at 400. Pages for readers stay below 60. */
const MAX_DEPTH = 128;
/** A text with a larger share of links is a menu, however long. */
const MAX_LINKED = 0.5;
/** A shorter article is a menu, a notice or a mistake. The whole page's text is then used. */
const MIN_ARTICLE = 200;

interface PageElement extends PageNode {
  getAttribute(name: string): string | null;
}

interface PageDocument {
  readonly documentElement: PageElement | null;
  readonly body: PageElement | null;
  querySelector(selector: string): PageElement | null;
  querySelectorAll(selector: string): Iterable<PageElement>;
}

/** Reads a page: the article that it holds, or all its visible text when it holds none. Never throws on what a page contains. */
export function readPage({ bytes, contentType, contentLanguage, kind }: PageSource): PageContent {
  const { text, charset } = decodePage(bytes, contentType, kind);
  const headed = languageTag(contentLanguage);
  if (kind === 'text') {
    const plain = clipText(text.replace(/\r\n?/g, '\n').trim(), MAX_TEXT);
    return { charset, title: null, description: null, language: headed, headings: [], ...plain };
  }
  const { html, cut } = boundMarkup(kind === 'xhtml' ? expandEmpty(text) : text, MAX_TOKENS);
  const { document } = parseHTML(whole(html)) as { document: PageDocument };
  const headings = headingsOf(document);
  const described = {
    title:
      line(document.querySelector('title')?.textContent) ?? meta(document, 'og:title') ?? headings[0]?.text ?? null,
    description:
      meta(document, 'description') ?? meta(document, 'og:description') ?? meta(document, 'twitter:description'),
    language: languageTag(langOf(document)) ?? headed ?? languageTag(meta(document, 'content-language')),
  };
  const seen = seenOf(document);
  // Last, because it changes the document.
  const article = articleOf(document);
  const clipped = clipText(article.length >= MIN_ARTICLE ? article : seen, MAX_TEXT);
  return { charset, ...described, headings, ...clipped, truncated: clipped.truncated || cut };
}

/** The visible text of the page's main part, or of the whole page when no main part is marked. */
function seenOf(document: PageDocument): string {
  const main = document.querySelector('main, [role="main"]');
  const text = main ? visibleText(main, MAX_UNITS) : '';
  return text.length >= MIN_ARTICLE || !document.body ? text : visibleText(document.body, MAX_UNITS);
}

/** linkedom treats a text without a root element as a fragment and does not find its parts, so a root is added. */
function whole(html: string): string {
  return /<html[\s>]/i.test(html) ? html : `<html><head></head><body>${html}</body></html>`;
}

/** XHTML may close any element in its opening tag. For an HTML parser a script closed like this would contain the rest of the page. */
function expandEmpty(xhtml: string): string {
  return xhtml.replace(
    /<(script|style|title|textarea|iframe|div|p|span|a|i|b|em|strong|td|th|li|h[1-6]|section|article)\b((?:[^<>"']|"[^"]*"|'[^']*')*)\/>/gi,
    '<$1$2></$1>',
  );
}

function articleOf(document: PageDocument): string {
  if (document.body && isDeeper(document.body, MAX_DEPTH)) return '';
  try {
    const serializer = (node: unknown) => node as PageElement & Pick<PageDocument, 'querySelectorAll'>;
    const options = { serializer, disableJSONLD: true };
    const article = new Readability(document as never, options).parse()?.content;
    if (!article) return '';
    const text = visibleText(article, MAX_UNITS);
    let linked = 0;
    for (const link of article.querySelectorAll('a')) linked += tidy(link.textContent ?? '').length;
    return linked > text.length * MAX_LINKED ? '' : text;
  } catch {
    // Readability failed on an unusual page; the visible text is used instead.
    return '';
  }
}

function headingsOf(document: PageDocument) {
  const headings: { level: number; text: string }[] = [];
  for (const element of document.querySelectorAll('h1,h2,h3,h4,h5,h6')) {
    const text = line(element.textContent);
    if (text !== null) headings.push({ level: Number(element.nodeName[1]), text });
    if (headings.length === MAX_HEADINGS) break;
  }
  return headings;
}

/** A meta element by its name, property or http-equiv, in any case of letters. */
function meta(document: PageDocument, name: string): string | null {
  for (const element of document.querySelectorAll('meta')) {
    const key = element.getAttribute('name') ?? element.getAttribute('property') ?? element.getAttribute('http-equiv');
    if (key?.trim().toLowerCase() === name) {
      const text = line(element.getAttribute('content'));
      if (text !== null) return text;
    }
  }
  return null;
}

function langOf(document: PageDocument): string | null {
  const root = document.documentElement;
  return root?.getAttribute('lang') ?? root?.getAttribute('xml:lang') ?? null;
}

/** The first language tag of a list, if it is well-formed (RFC 5646). */
function languageTag(value: string | null): string | null {
  const tag = value?.split(',')[0]?.trim() ?? '';
  return /^[a-z]{2,8}(-[a-z0-9]{1,8})*$/i.test(tag) ? tag : null;
}

function line(text: string | null | undefined): string | null {
  const clipped = clipText(tidy(text ?? '').replace(/\n+/g, ' '), MAX_LINE).text;
  return clipped === '' ? null : clipped;
}
