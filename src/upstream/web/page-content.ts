import type { Clipped } from '../../lib/untrusted.ts';
import type { PageKind } from './page-kind.ts';

/** A page as received, for the worker. */
export interface PageSource {
  readonly bytes: Uint8Array;
  /** Where it came from, after redirects. */
  readonly url: string;
  readonly contentType: string | null;
  readonly contentLanguage: string | null;
  readonly kind: PageKind;
}

/** A link of a page. */
export interface PageLink {
  /** Absolute, http or https. */
  readonly url: string;
  readonly text: string | null;
  /** Whether it stands in the content, and not in a menu or footer. */
  readonly inContent: boolean;
}

/** Why there is no Markdown: the page is not HTML, or its markup is nested too deeply or too strange. */
export type MarkdownMissing = 'not_html' | 'unusual_markup';

/** The content of a page. */
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
  /** Words of `text`. */
  readonly wordCount: number;
  readonly markdown: string | null;
  readonly markdownTruncated: boolean;
  readonly markdownMissing: MarkdownMissing | null;
  readonly links: PageLink[];
  readonly linksTruncated: boolean;
  /** Pages of a PDF; null for other documents. */
  readonly pageCount: number | null;
}

/** Characters of a title, a description and other single lines. */
export const MAX_LINE = 500;
/** Characters of an author's name. */
export const MAX_AUTHOR = 200;
/** The limit of `web/extract`, in characters: the route promises this number. It limits the text and the Markdown, each. */
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

/** What a document has that is no HTML page. */
export const NOT_HTML: Omit<PageContent, 'format' | 'charset' | 'language' | 'wordCount' | keyof Clipped> = {
  ...{ title: null, description: null, author: null, publishedAt: null, canonicalUrl: null, headings: [] },
  ...{ markdown: null, markdownTruncated: false, markdownMissing: 'not_html', links: [], linksTruncated: false },
  pageCount: null,
};
