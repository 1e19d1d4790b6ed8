import { getDocument } from 'unpdf/pdfjs';
import { clipText } from '../../lib/untrusted.ts';
import {
  MAX_AUTHOR,
  MAX_LINE,
  MAX_TEXT,
  NOT_HTML,
  type PageContent,
  type PageSource,
  UnreadablePage,
} from './page-content.ts';
import { languageTag, secondsOfPdfDate } from './page-head.ts';
import { CONTROLS, countWords, isSeen, lineOf, tidy } from './page-text.ts';

const ERRORS_ONLY = 0;

/** Nothing that draws, runs, or loads from elsewhere. */
const OPTIONS = {
  disableFontFace: true,
  useSystemFonts: false,
  useWasm: false,
  enableXfa: false,
  isOffscreenCanvasSupported: false,
  disableAutoFetch: true,
  disableRange: true,
  disableStream: true,
  stopAtErrors: false,
  verbosity: ERRORS_ONLY,
};

/** Throws UnreadablePage for a PDF that is broken, locked or without text. Its thread's memory and time are limited. */
export async function readPdf({ bytes, contentLanguage }: PageSource): Promise<PageContent> {
  const task = getDocument({ ...OPTIONS, data: bytes });
  const document = await task.promise.catch((error: unknown) => {
    throw new UnreadablePage(isLocked(error) ? 'its PDF needs a password' : 'its PDF is broken');
  });
  const { info } = await document.getMetadata().catch(() => ({ info: {} }));
  const said = (name: string) => textOf((info as Record<string, unknown>)[name]);
  const { text, isWhole } = await pdfText(document as unknown as PdfDocument);
  const clipped = clipText(tidy(text), MAX_TEXT);
  if (!isSeen(clipped.text)) throw new UnreadablePage('its PDF has no text; its pages may be pictures');
  return {
    ...NOT_HTML,
    format: 'pdf',
    charset: 'binary',
    ...clipped,
    truncated: clipped.truncated || !isWhole,
    title: lineOf(said('Title'), MAX_LINE),
    description: lineOf(said('Subject'), MAX_LINE),
    language: languageTag(said('Language')) ?? languageTag(contentLanguage),
    author: lineOf(said('Author'), MAX_AUTHOR),
    publishedAt: secondsOfPdfDate(said('CreationDate')),
    wordCount: countWords(clipped.text),
    pageCount: document.numPages,
  };
}

function isLocked(error: unknown): boolean {
  return error instanceof Error && error.name === 'PasswordException';
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

interface PdfDocument {
  readonly numPages: number;
  getPage(number: number): Promise<PdfPage>;
}

interface PdfPage {
  streamTextContent(): ReadableStream<{ readonly items: readonly PdfItem[] }>;
  cleanup(): unknown;
}

/** A run of glyphs, or a mark between two runs. */
interface PdfItem {
  readonly str?: string;
  readonly hasEOL?: boolean;
  /** The sixth number is the height of its baseline on the page. */
  readonly transform?: readonly number[];
  readonly height?: number;
}

/** The pages that are read. Only a document whose pages hold next to nothing, such as a scan, would need more. */
const MAX_PAGES = 200;
/** Text beyond this cannot become part of the answer: little of it is white space. */
const MAX_UNITS = 3 * MAX_TEXT;

/** Stops when no further text can be part of the answer. `isWhole` is false when anything was left out or is broken. */
async function pdfText(document: PdfDocument): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  const parts: string[] = [];
  let units = 0;
  let isWhole = document.numPages <= MAX_PAGES;
  for (let number = 1; number <= Math.min(document.numPages, MAX_PAGES) && units < MAX_UNITS; number++) {
    const read = await pageText(document, number, MAX_UNITS - units);
    parts.push(read.text);
    units += read.text.length;
    isWhole &&= read.isWhole && (units < MAX_UNITS || number === document.numPages);
  }
  return { text: parts.join('\n\n').replace(CONTROLS, ''), isWhole };
}

async function pageText(document: PdfDocument, number: number, maxUnits: number) {
  let text = '';
  try {
    const page = await document.getPage(number);
    const reader = page.streamTextContent().getReader();
    let below: PdfItem | null = null;
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      for (const item of next.value.items) {
        if (item.str !== undefined && item.str.trim() !== '') {
          if (below !== null && isApart(below, item)) text += '\n';
          below = item;
        }
        text += `${item.str ?? ''}${item.hasEOL ? '\n' : ''}`;
      }
      if (text.length < maxUnits) continue;
      await reader.cancel(new Error('enough')).catch(() => undefined);
      return { text, isWhole: false };
    }
    page.cleanup();
    return { text, isWhole: true };
  } catch {
    // One broken page does not make the others worthless.
    return { text, isWhole: false };
  }
}

/** Lines whose baselines lie further apart than this, in heights of their letters, belong to two paragraphs. */
const PARAGRAPH = 1.8;

function isApart(above: PdfItem, below: PdfItem): boolean {
  const height = Math.max(above.height ?? 0, below.height ?? 0);
  const distance = (above.transform?.[5] ?? 0) - (below.transform?.[5] ?? 0);
  return height > 0 && distance > PARAGRAPH * height;
}
