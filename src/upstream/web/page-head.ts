import { MAX_AUTHOR, MAX_LINE, type PageContent } from './page-content.ts';
import type { PageDocument } from './page-dom.ts';
import { articleFacts } from './page-json-ld.ts';
import { webUrl } from './page-links.ts';
import { lineOf, ownText } from './page-text.ts';
import { secondsOf } from './published-at.ts';

/** Far more than pages for readers have. It limits the answer. */
const MAX_HEADINGS = 200;

/** Names of meta elements, with a colon where some pages write a dot. */
const AUTHOR_METAS = [
  ...['dc:creator', 'dcterms:creator', 'author', 'citation_author', 'parsely-author', 'article:author'],
];
const DATE_METAS = [
  ...['article:published_time', 'og:article:published_time', 'datepublished', 'citation_publication_date'],
  ...['dc:date', 'dcterms:created', 'parsely-pub-date', 'date'],
];
const DATE_ELEMENTS = '[itemprop="datePublished"], time[pubdate], time.published, time.entry-date';

type Head = Pick<
  PageContent,
  'title' | 'description' | 'language' | 'author' | 'publishedAt' | 'canonicalUrl' | 'headings'
>;

/** What a page says about itself. `html` is its whole markup; `serverLanguage` the language that the server gives. */
export function headOf(
  document: PageDocument,
  { html, base, serverLanguage }: { html: string; base: string; serverLanguage: string | null },
): Head {
  const meta = metasOf(document);
  const facts = articleFacts(html);
  const headings = headingsOf(document);
  const canonical = document.querySelector('link[rel~="canonical" i][href]')?.getAttribute('href') ?? null;
  return {
    title: line(document.querySelector('title')?.textContent) ?? meta('og:title') ?? headings[0]?.text ?? null,
    description: meta('description') ?? meta('og:description') ?? meta('twitter:description'),
    language: languageTag(langOf(document)) ?? serverLanguage ?? languageTag(meta('content-language')),
    author: authorOf(document, [facts.author, ...AUTHOR_METAS.map(meta)]),
    publishedAt: first([facts.datePublished, ...DATE_METAS.map(meta), dateOf(document)], secondsOf),
    canonicalUrl: webUrl(canonical, base) ?? webUrl(meta('og:url'), base),
    headings,
  };
}

/** The first language tag of a list, if it is well-formed (RFC 5646). */
export function languageTag(value: string | null): string | null {
  const tag = value?.split(',')[0]?.trim() ?? '';
  return /^[a-z]{2,8}(-[a-z0-9]{1,8})*$/i.test(tag) ? tag : null;
}

function first<T, R>(values: readonly T[], use: (value: T) => R | null): R | null {
  for (const value of values) {
    const found = use(value);
    if (found !== null) return found;
  }
  return null;
}

/** A name. Some pages give the address of a profile instead, which is none. */
function authorOf(document: PageDocument, said: readonly (string | null)[]): string | null {
  const named = document.querySelector('[itemprop="author"] [itemprop="name"]');
  const shown = named ?? document.querySelector('[rel~="author"], [itemprop="author"]');
  return first([...said, shown?.textContent], (name) => {
    // Bylines end with what parts them from the date.
    const text = lineOf(name, MAX_AUTHOR)?.replace(/[\s\u2013\u2014|\u00b7,-]+$/, '') ?? '';
    return text === '' || /^https?:/i.test(text) ? null : text;
  });
}

function dateOf(document: PageDocument): string | null {
  const element = document.querySelector(DATE_ELEMENTS);
  if (element === null) return null;
  return element.getAttribute('datetime') ?? element.getAttribute('content') ?? element.textContent;
}

const isHeading = (nodeName: string) => /^h[1-6]$/i.test(nodeName);

function headingsOf(document: PageDocument) {
  const headings: { level: number; text: string }[] = [];
  for (const element of document.querySelectorAll('h1,h2,h3,h4,h5,h6')) {
    const text = line(ownText(element, isHeading));
    if (text !== null) headings.push({ level: Number(element.nodeName[1]), text });
    if (headings.length === MAX_HEADINGS) break;
  }
  return headings;
}

/** The meta elements by property, or else by name, itemprop or http-equiv, in any case of letters. The first one that says something counts. */
function metasOf(document: PageDocument): (name: string) => string | null {
  const metas = new Map<string, string>();
  const note = (names: string | null, content: string | null) => {
    const text = line(content);
    if (names === null || text === null) return;
    // RDFa allows several properties in one element.
    for (const name of names.toLowerCase().replaceAll('.', ':').split(/\s+/))
      if (!metas.has(name)) metas.set(name, text);
  };
  const elements = Array.from(document.querySelectorAll('meta'));
  for (const meta of elements) note(meta.getAttribute('property'), meta.getAttribute('content'));
  for (const meta of elements)
    for (const key of ['name', 'itemprop', 'http-equiv']) note(meta.getAttribute(key), meta.getAttribute('content'));
  return (name) => metas.get(name) ?? null;
}

function langOf(document: PageDocument): string | null {
  const root = document.documentElement;
  return root?.getAttribute('lang') ?? root?.getAttribute('xml:lang') ?? null;
}

const line = (text: string | null | undefined) => lineOf(text, MAX_LINE);
