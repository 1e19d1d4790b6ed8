import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import { clipText } from '../../lib/untrusted.ts';
import { decodePage } from './page-charset.ts';
import {
  MAX_AUTHOR,
  MAX_TEXT,
  MAX_UNITS,
  NOT_HTML,
  type PageContent,
  type PageSource,
  UnreadablePage,
} from './page-content.ts';
import type { PageDocument, PageElement } from './page-dom.ts';
import { headOf, languageTag } from './page-head.ts';
import { baseOf, chooseLinks, isLink, linksOf } from './page-links.ts';
import { markdownOf } from './page-markdown.ts';
import { boundMarkup } from './page-markup.ts';
import { isDeeper, lineOf, ownText, tidy, visibleText } from './page-text.ts';
import { countWords } from './word-count.ts';

/** Tags, attributes and entities that are read: some 60 MB as a tree. A long encyclopedia article has 20,000, a news page 5,000. */
const MAX_TOKENS = 40_000;
/** Readability's time grows with the cube of the depth: a second at 400. Pages for readers stay below 60. */
const MAX_DEPTH = 128;
/** A text with a larger share of links is a menu, however long. */
const MAX_LINKED = 0.5;
/** A shorter article is a menu, a notice or a mistake. The whole page's text is then used. */
const MIN_ARTICLE = 200;

/**
 * Reads a page: the article that it holds, or all its visible text when it holds none. Never throws on what a page contains. Throws UnreadablePage for a
 * JSON document that is none.
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

type HtmlContent = Omit<PageContent, 'format' | 'charset' | 'wordCount' | 'pageCount'>;

function readHtml(whole: string, url: string, serverLanguage: string | null): HtmlContent {
  const { html, cut } = boundMarkup(whole, MAX_TOKENS);
  const { head, base, links, seen, article } = readTree(treeOf(html), { whole, url, serverLanguage });
  // Readability has changed the tree, so a page without an article is parsed anew. The first tree is unreachable by now: two would not fit.
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

/** Everything that is read from a page's tree but its Markdown. `article` is null when the page holds none. */
function readTree(
  document: PageDocument,
  { whole, url, serverLanguage }: { whole: string; url: string; serverLanguage: string | null },
) {
  const base = baseOf(document, url);
  const head = headOf(document, { html: whole, base, serverLanguage });
  const links = linksOf(document, url, base);
  const seen = seenOf(document);
  // Last, because it changes the document.
  const found = articleOf(document);
  const author = head.author ?? lineOf(found?.byline, MAX_AUTHOR);
  const article = found !== null && found.text.length >= MIN_ARTICLE ? found : null;
  return { head: { ...head, author }, base, links, seen, article };
}

/** linkedom treats a text without a root element as a fragment and does not find its parts, so a root is added. */
function treeOf(html: string): PageDocument {
  const whole = /<html[\s>]/i.test(html) ? html : `<html><head></head><body>${html}</body></html>`;
  return (parseHTML(whole) as unknown as { document: PageDocument }).document;
}

/** The visible text of the page's main part, or of the whole page when no main part is marked. */
function seenOf(document: PageDocument): string {
  const root = seenRoot(document);
  return root ? visibleText(root, MAX_UNITS) : '';
}

function seenRoot(document: PageDocument): PageElement | null {
  const main = document.querySelector('main, [role="main"]');
  const isMain = main !== null && visibleText(main, MAX_UNITS).length >= MIN_ARTICLE;
  return isMain || !document.body ? main : document.body;
}

/** XHTML may close any element in its opening tag. For an HTML parser a script closed like this would contain the rest of the page. */
function expandEmpty(xhtml: string): string {
  return xhtml.replace(
    /<(script|style|title|textarea|iframe|div|p|span|a|i|b|em|strong|td|th|li|h[1-6]|section|article)\b((?:[^<>"']|"[^"]*"|'[^']*')*)\/>/gi,
    '<$1$2></$1>',
  );
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

function requireJson(text: string): void {
  try {
    JSON.parse(text);
  } catch {
    throw new UnreadablePage('it answers what is not JSON');
  }
}
