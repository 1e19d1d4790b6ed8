import { parentPort } from 'node:worker_threads';
import { type PageContent, type PageSource, UnreadablePage } from './page-content.ts';

// A thread that only reads pages, so that third parties' documents never block the thread that serves and settles.

/** Of one decoded stream: 3 MB (MAX_PAGE_BYTES) become at most five times that. Held twice, it stays below PDF_MB. */
const MAX_STREAM_BYTES = 20 * 2 ** 20;

/** The first answer for a page: the thread has loaded what it needs to read it. */
export type Loaded = { readonly loaded: true };

/** The second: the content, or why there is none. */
export type PageReading = { readonly content: PageContent } | { readonly unreadable: string };

const send = (message: Loaded | PageReading): void => parentPort?.postMessage(message);

parentPort?.on('message', async (source: PageSource) => {
  const read = await load(source);
  send({ loaded: true });
  try {
    send({ content: await read() });
  } catch (error) {
    if (!(error instanceof UnreadablePage)) throw error;
    send({ unreadable: error.message });
  }
});

/** Each thread loads only what its documents need: the PDF library takes 10 MB, and what pages need takes 8. */
async function load(source: PageSource): Promise<() => PageContent | Promise<PageContent>> {
  if (source.kind === 'pdf') {
    // Ends the thread. After an error the library would go on with a decoder of its own, which has no bound.
    limitDecompression(MAX_STREAM_BYTES, () => process.exit());
    const { readPdf } = await import('./pdf.ts');
    return () => readPdf(source);
  }
  const { kind } = source;
  const { readPage } = await import('./page.ts');
  return () => readPage({ ...source, kind });
}

type Format = 'deflate' | 'deflate-raw' | 'gzip';

/**
 * For a library that takes no limit: a stream that decodes to more calls `onTooMuch` and fails. Counting also holds the
 * decoder back to its reader's pace: without it a PDF's 20 MB take more memory than a thread may have.
 */
export function limitDecompression(maxBytes: number, onTooMuch: () => void): void {
  const { DecompressionStream: Unbounded } = globalThis;
  // A function and not an arrow, because it is called with `new`.
  function DecompressionStream(format: Format): DecompressionStream {
    const { readable, writable } = new Unbounded(format);
    let bytes = 0;
    const count = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        bytes += chunk.length;
        if (bytes <= maxBytes) return controller.enqueue(chunk);
        onTooMuch();
        throw new RangeError(`a stream decodes to more than ${maxBytes} bytes`);
      },
    });
    return { readable: readable.pipeThrough(count), writable };
  }
  globalThis.DecompressionStream = DecompressionStream as unknown as typeof Unbounded;
}
