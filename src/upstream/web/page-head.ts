import { isObject } from '../../lib/untrusted.ts';
import { MAX_AUTHOR, MAX_LINE, type PageContent } from './page-content.ts';
import { lineOf, ownText, type PageDocument, webUrl } from './page-text.ts';

/** Far more than pages for readers have. */
const MAX_HEADINGS = 200;

/** Names of meta elements, with a colon where some pages write a dot. */
const AUTHOR_METAS = ['dc:creator', 'dcterms:creator', 'author', 'citation_author', 'parsely-author', 'article:author'];
const DATE_METAS = [
  ...['article:published_time', 'og:article:published_time', 'datepublished', 'citation_publication_date'],
  ...['dc:date', 'dcterms:created', 'parsely-pub-date', 'date'],
];
const DATE_ELEMENTS = '[itemprop="datePublished"], time[pubdate], time.published, time.entry-date';

type Head = Pick<
  PageContent,
  'title' | 'description' | 'language' | 'author' | 'publishedAt' | 'canonicalUrl' | 'headings'
>;

/** What a page says about itself, each fact from the first of the places that may state it. `html` is its markup. */
export function headOf(document: PageDocument, html: string, base: string, serverLanguage: string | null): Head {
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

/** The meta elements by property, else by name, itemprop or http-equiv, in any case. The first with a text counts. */
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

const line = (text: string | null | undefined) => lineOf(text, MAX_LINE);

function first<T, R>(values: readonly T[], use: (value: T) => R | null): R | null {
  for (const value of values) {
    const found = use(value);
    if (found !== null) return found;
  }
  return null;
}

function langOf(document: PageDocument): string | null {
  const root = document.documentElement;
  return root?.getAttribute('lang') ?? root?.getAttribute('xml:lang') ?? null;
}

/** The first language tag of a list, if it is well-formed (RFC 5646). */
export function languageTag(value: string | null): string | null {
  const tag = value?.split(',')[0]?.trim() ?? '';
  return /^[a-z]{2,8}(-[a-z0-9]{1,8})*$/i.test(tag) ? tag : null;
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

/** A page has one to three blocks of a few KB; larger ones describe catalogues. One without an end counts too. */
const MAX_BLOCKS = 8;
const MAX_BLOCK_UNITS = 100_000;
const MAX_THINGS = 50;
const MAX_AUTHORS = 5;
const MAX_TYPES = 10;

type Thing = Readonly<Record<string, unknown>>;

/** From the first JSON-LD blocks of the markup: they are scripts, which are removed before a tree is built. */
function articleFacts(html: string) {
  let author: string | null = null;
  let datePublished: string | null = null;
  for (const thing of thingsOf(html)) {
    author ??= authorInJsonLd(thing.author);
    if (typeof thing.datePublished === 'string') datePublished ??= thing.datePublished;
  }
  return { author, datePublished };
}

function thingsOf(html: string): Thing[] {
  const things = blocksOf(html).flatMap(flatten);
  const isArticle = (thing: Thing) => /Article|Posting|Report|Book|Thesis/.test(typesOf(thing));
  const isWork = (thing: Thing) => /Page|Work|Video|Recipe/.test(typesOf(thing));
  return [...things.filter(isArticle), ...things.filter((thing) => !isArticle(thing) && isWork(thing))];
}

function blocksOf(html: string): unknown[] {
  const blocks: unknown[] = [];
  const opening = /application\/ld\+json[^>]{0,200}>/gi;
  for (let found = opening.exec(html); found && blocks.length < MAX_BLOCKS; found = opening.exec(html)) {
    const within = html.slice(opening.lastIndex, opening.lastIndex + MAX_BLOCK_UNITS);
    const end = within.search(/<\/script/i);
    try {
      blocks.push(end < 0 ? null : JSON.parse(within.slice(0, end)));
    } catch {
      // Many pages write JSON with mistakes. Their other data are used.
      blocks.push(null);
    }
  }
  return blocks;
}

function flatten(block: unknown): Thing[] {
  return thingsIn(block).flatMap((thing) => (Array.isArray(thing['@graph']) ? thingsIn(thing['@graph']) : [thing]));
}

function thingsIn(value: unknown): Thing[] {
  return [value].flat().slice(0, MAX_THINGS).filter(isObject);
}

/** The names of what a thing is. Other values than names may be nested deeper than the call stack. */
function typesOf(thing: Thing): string {
  const types = thing['@type'];
  const named = (Array.isArray(types) ? types : [types]).slice(0, MAX_TYPES);
  return named.filter((type) => typeof type === 'string').join(' ');
}

function authorInJsonLd(value: unknown): string | null {
  const names = (Array.isArray(value) ? value : [value]).slice(0, MAX_AUTHORS).flatMap((one) => {
    const name = isObject(one) ? one.name : one;
    return typeof name === 'string' && name.trim() !== '' ? [name.trim()] : [];
  });
  return names.length === 0 ? null : names.join(', ');
}

const MONTH = /\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)/i;
/** A year, a month and a day, in this order. Numbers in another order are ambiguous. */
const NUMERIC = /^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})/;
const ZONE = /(?:\dz|gmt|utc|:\d{2}(?:\.\d+)? ?[+-]\d{2}:?\d{2})(?: \([^)]*\))?$/i;
/** The longest way to write a date. */
const MAX_LENGTH = 64;
/** 2100: a later date is a mistake. */
const LAST_SECONDS = 4_102_444_800;

/** Unix seconds; null for a date that is ambiguous or has no day. Without a zone it is UTC, without a time midnight. */
export function secondsOf(date: string | null | undefined): number | null {
  const text = date?.trim() ?? '';
  const isNumeric = NUMERIC.test(text);
  if (text.length > MAX_LENGTH || !(isNumeric || (MONTH.test(text) && /\d{4}/.test(text)))) return null;
  const ordered = text.replace(NUMERIC, (_all, year, month, day) => `${year}-${two(month)}-${two(day)}`);
  // Node would read a time without a zone in the machine's own.
  const zoned = ZONE.test(ordered) || /^\d{4}-\d{2}-\d{2}$/.test(ordered) ? ordered : `${ordered} UTC`;
  const seconds = Math.floor(Date.parse(zoned.replace(/^(\S{10}T\S+) UTC$/, '$1Z')) / 1000);
  return seconds > 0 && seconds < LAST_SECONDS ? seconds : null;
}

function two(digits: string): string {
  return digits.padStart(2, '0');
}

/** ISO 32000, 7.9.4, for example D:20240102030405+01'00'. Parts after the year may be missing. */
export function secondsOfPdfDate(date: string | null): number | null {
  const found = /^(?:D:)?(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?(?:([+-])(\d{2})'?(\d{2})?)?/.exec(date ?? '');
  if (found === null) return null;
  const [, year, month = '01', day = '01', hour = '00', minute = '00', second = '00', sign, ahead, more = '00'] = found;
  const zone = sign === undefined ? 'Z' : `${sign}${ahead}:${more}`;
  return secondsOf(`${year}-${month}-${day}T${hour}:${minute}:${second}${zone}`);
}
