import { parentPort } from 'node:worker_threads';
import { readPage } from './page.ts';
import { type PageContent, type PageSource, UnreadablePage } from './page-content.ts';

// A thread that only reads pages, so that third parties' documents never block the thread that serves and settles.

/** What the thread answers: the content, or why there is none. */
export type PageReading = { readonly content: PageContent } | { readonly unreadable: string };

async function read(source: PageSource): Promise<PageReading> {
  try {
    return { content: source.kind === 'pdf' ? await readPdf(source) : readPage({ ...source, kind: source.kind }) };
  } catch (error) {
    if (error instanceof UnreadablePage) return { unreadable: error.message };
    throw error;
  }
}

/** Most threads never see a PDF, and its library takes 10 MB. */
async function readPdf(source: PageSource): Promise<PageContent> {
  const pdf = await import('./pdf.ts');
  return pdf.readPdf(source);
}

parentPort?.on('message', async (source: PageSource) => {
  parentPort?.postMessage(await read(source));
});
