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
import { languageTag } from './page-head.ts';
import { isSeen, lineOf, tidy } from './page-text.ts';
import { type PdfDocument, pdfText } from './pdf-text.ts';
import { secondsOfPdfDate } from './published-at.ts';
import { countWords } from './word-count.ts';

const ERRORS_ONLY = 0;

/** Nothing that draws, runs, or loads from elsewhere. */
const OPTIONS = {
  ...{
    disableFontFace: true,
    useSystemFonts: false,
    useWasm: false,
    enableXfa: false,
    isOffscreenCanvasSupported: false,
  },
  ...{ disableAutoFetch: true, disableRange: true, disableStream: true, stopAtErrors: false, verbosity: ERRORS_ONLY },
};

/**
 * Reads the text of a PDF, and what it says about itself. Throws UnreadablePage for one that is broken, needs a password or holds no text, as scans do.
 * Memory and time are limited from outside, by the thread's owner: a few KB can describe gigabytes.
 */
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
    ...{ format: 'pdf', charset: 'binary', ...clipped, truncated: clipped.truncated || !isWhole },
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
