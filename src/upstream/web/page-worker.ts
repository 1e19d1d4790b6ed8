import { parentPort } from 'node:worker_threads';
import { limitDecompression } from './limit-decompression.ts';
import { type PageContent, type PageSource, UnreadablePage } from './page-content.ts';

// A thread that only reads pages, so that third parties' documents never block the thread that serves and settles.

/**
 * What one stream of a PDF may decode to. The largest document has 3 MB (MAX_PAGE_BYTES in web.ts), and text and drawings become three to five times as
 * long. The library holds a stream twice while it decodes it. That is below the limit of the thread's memory (PDF_MB in page-reader.ts).
 */
const MAX_STREAM_BYTES = 20 * 2 ** 20;

/** What the thread answers: the content, or why there is none. */
export type PageReading = { readonly content: PageContent } | { readonly unreadable: string };

async function read(source: PageSource): Promise<PageReading> {
  try {
    return {
      content: source.kind === 'pdf' ? await readPdf(source) : await readPage({ ...source, kind: source.kind }),
    };
  } catch (error) {
    if (error instanceof UnreadablePage) return { unreadable: error.message };
    throw error;
  }
}

// Each thread loads only what its documents need: the PDF library takes 10 MB, and what pages need takes 8.

async function readPage(source: Parameters<typeof import('./page.ts').readPage>[0]): Promise<PageContent> {
  const page = await import('./page.ts');
  return page.readPage(source);
}

async function readPdf(source: PageSource): Promise<PageContent> {
  // Ends the thread. After an error the library would go on with a decoder of its own, which has no bound.
  limitDecompression(MAX_STREAM_BYTES, () => process.exit());
  const pdf = await import('./pdf.ts');
  return pdf.readPdf(source);
}

parentPort?.on('message', async (source: PageSource) => {
  parentPort?.postMessage(await read(source));
});
