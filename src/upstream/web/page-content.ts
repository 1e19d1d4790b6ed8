import type { Clipped } from '../../lib/untrusted.ts';

// What a reading thread takes and gives back, and how the kind of a page is told.

export interface PageSource {
  readonly bytes: Uint8Array;
  /** Where it came from, after redirects. */
  readonly url: string;
  readonly contentType: string | null;
  readonly contentLanguage: string | null;
  readonly kind: PageKind;
}

export interface PageContent {
  readonly format: 'html' | 'text' | 'markdown' | 'pdf' | 'json';
  readonly charset: string;
  readonly title: string | null;
  readonly description: string | null;
  readonly language: string | null;
  readonly author: string | null;
  /** Unix seconds. */
  readonly publishedAt: number | null;
  readonly canonicalUrl: string | null;
  readonly headings: { readonly level: number; readonly text: string }[];
  readonly text: string;
  readonly characters: number;
  readonly truncated: boolean;
  readonly wordCount: number;
  readonly markdown: string | null;
  readonly markdownTruncated: boolean;
  readonly markdownMissing: MarkdownMissing | null;
  readonly links: PageLink[];
  readonly linksTruncated: boolean;
  /** Pages of a PDF; null for other documents. */
  readonly pageCount: number | null;
}

export interface PageLink {
  /** Absolute, http or https. */
  readonly url: string;
  readonly text: string | null;
  /** Whether it stands in the content, and not in a menu or footer. */
  readonly inContent: boolean;
}

/** Why there is no Markdown: the page is not HTML, or its markup is nested too deeply or too strange. */
type MarkdownMissing = 'not_html' | 'unusual_markup';

/** Characters of a title, a description and other single lines. */
export const MAX_LINE = 500;
export const MAX_AUTHOR = 200;
/** Characters of the text, and of the Markdown: the route `web/extract` promises this number. */
export const MAX_TEXT = 20_000;
/** Text beyond this cannot become part of the answer, even after white space is collapsed. */
export const MAX_UNITS = 20 * MAX_TEXT;

/** A document that is not what it says, or that has nothing to read. The message may be published. */
export class UnreadablePage extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'UnreadablePage';
  }
}

export const NOT_HTML: Omit<PageContent, 'format' | 'charset' | 'language' | 'wordCount' | keyof Clipped> = {
  title: null,
  description: null,
  author: null,
  publishedAt: null,
  canonicalUrl: null,
  headings: [],
  markdown: null,
  markdownTruncated: false,
  markdownMissing: 'not_html',
  links: [],
  linksTruncated: false,
  pageCount: null,
};

/** How a body is read. No other is read. */
type PageKind = 'html' | 'xhtml' | 'text' | 'markdown' | 'pdf' | 'json';

const KINDS: Record<string, PageKind> = {
  'text/html': 'html',
  'application/xhtml+xml': 'xhtml',
  'text/plain': 'text',
  'text/markdown': 'markdown',
  'application/pdf': 'pdf',
  'application/x-pdf': 'pdf',
  'application/json': 'json',
  'text/json': 'json',
};

/** The bytes that browsers look at (WHATWG MIME Sniffing, 5.2). */
const SNIFFED_BYTES = 1445;
const PDF_MARK = Buffer.from('%PDF-');

/** By the header; without one by the first bytes (MIME Sniffing Standard), or html while they are not read (null). */
export function kindOfPage(contentType: string | null, bytes: Uint8Array | null): PageKind | 'other' {
  if (contentType !== null) {
    const type = (contentType.split(';')[0] ?? '').trim().toLowerCase();
    // RFC 6839: a structured syntax, such as JSON for Linked Data or for geography.
    return KINDS[type] ?? (type.endsWith('+json') ? 'json' : 'other');
  }
  if (bytes === null) return 'html';
  const head = Buffer.from(bytes.subarray(0, SNIFFED_BYTES));
  if (head.subarray(0, PDF_MARK.length).equals(PDF_MARK)) return 'pdf';
  if (head.includes(0) && !hasWideMark(head)) return 'other';
  return /<(!doctype html|html|head|body|title|h1|p|div|a|script|!--)[\s>]/i.test(head.toString('latin1'))
    ? 'html'
    : 'text';
}

/** UTF-16's byte order marks: its ASCII is full of zero bytes. */
function hasWideMark(head: Buffer): boolean {
  return (head[0] === 0xfe && head[1] === 0xff) || (head[0] === 0xff && head[1] === 0xfe);
}
