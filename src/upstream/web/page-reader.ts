import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { Unavailable } from '../../errors.ts';
import { ExchangeFailed } from '../client/failure.ts';
import { createLimiter, LimiterFull } from '../client/limiter.ts';
import type { PageContent, PageSource } from './page-content.ts';
import type { Loaded, PageReading } from './page-worker.ts';

export interface PageReader {
  /** Rejects with ExchangeFailed for a page that is broken, too large or too slow, and with Unavailable (503). */
  read(source: PageSource, signal: AbortSignal): Promise<PageContent>;
  close(): Promise<void>;
}

interface PageReaderOptions {
  /** Threads; each takes a core while it works. */
  readonly workers: number;
  readonly waiting?: number;
  readonly waitMs?: number;
  /** Until a new thread has loaded what its page needs. */
  readonly loadMs?: number;
  /** The time-out of reading one page, from then on. */
  readonly parseMs?: number;
}

/** A 100 KB page takes some 20 ms (bench `extract`), so this many pages are read well within WAIT_MS. */
const WAITING = 256;
/** A buyer who waits longer had better hear 503 than the time-out of the whole call (HANDLER_TIMEOUT_MS). */
const WAIT_MS = 4000;
/** A thread loads in 0.3 s on an idle machine. On a busy one it has taken seconds, and the page is not at fault. */
const LOAD_MS = 8000;
const SLOW_START = 'the thread that reads pages takes too long to start; try again shortly';
/** A recorded page takes well under a second. A page that takes longer was most likely made as an attack. */
const PARSE_MS = 4000;
/** Twice the memory of the largest tree that page.ts allows. A worker that runs out of memory may end the process. */
const HEAP_MB = 144;
/** A PDF's thread has 25 MB before the document, up to 79 with the largest stream. With 80 MB one was refused once. */
const PDF_MB = 96;
/** Never reached, because a PDF that takes more than PDF_MB is ended before. So much is allocated between two looks. */
const PDF_HEAP_MB = 256;
/** The young generation. V8's default is 192 MB. With 8 MB pages are read more slowly, at the same peak of memory. */
const YOUNG_MB = 16;

/**
 * Threads that read pages are kept. One that fails, stalls or runs out of memory is replaced, and only its page fails.
 * A PDF has its own, because its library keeps what it read. Its buffers, which V8 does not limit, are watched.
 */
export function createPageReader(options: PageReaderOptions): PageReader {
  const { workers, waiting = WAITING, waitMs = WAIT_MS, loadMs = LOAD_MS, parseMs = PARSE_MS } = options;
  const limiter = createLimiter(workers, waiting, waitMs);
  // Invariant: holds exactly the workers without a page.
  const idle: Worker[] = [];
  const all = new Set<Worker>();

  function start(heapMb: number): Worker {
    const worker = spawnWorker(heapMb);
    all.add(worker);
    worker.once('exit', () => {
      all.delete(worker);
      const at = idle.indexOf(worker);
      if (at >= 0) idle.splice(at, 1);
    });
    return worker;
  }

  async function ask(source: PageSource): Promise<PageContent> {
    const isPdf = source.kind === 'pdf';
    const worker = isPdf ? start(PDF_HEAP_MB) : (idle.pop() ?? start(HEAP_MB));
    const reading = await readIn(worker, source, { loadMs, parseMs });
    if (isPdf) worker.terminate();
    else idle.push(worker);
    if ('unreadable' in reading) throw new ExchangeFailed('reading', reading.unreadable);
    return reading.content;
  }

  return {
    read: (source, signal) => limiter.run(signal, () => ask(source)).catch(refuse),
    close: async () => {
      await Promise.all([...all].map((worker) => worker.terminate()));
    },
  };
}

function refuse(error: unknown): never {
  if (error instanceof LimiterFull) throw new Unavailable('pages_busy', 'too many pages are waiting to be read', 5);
  throw error;
}

function spawnWorker(heapMb: number): Worker {
  // V8 puts the flag of `npm start` above YOUNG_MB. The main thread has its heap by now. Later threads keep the reset.
  setFlagsFromString('--max-semi-space-size=0');
  const worker = new Worker(new URL('./page-worker.ts', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: YOUNG_MB },
    // Empty, so that the thread that reads third parties' pages has no access to keys.
    env: {},
  });
  worker.unref();
  // A replaced worker may still emit an error.
  worker.on('error', () => undefined);
  return worker;
}

/** Ends the thread and rejects when a time-out is over, the memory is used up or the thread fails. */
function readIn(
  worker: Worker,
  source: PageSource,
  { loadMs, parseMs }: { loadMs: number; parseMs: number },
): Promise<PageReading> {
  return new Promise((resolve, reject) => {
    const give = (error: Error) => {
      settle();
      worker.terminate();
      reject(error);
    };
    const fail = (reason: string) => (cause?: unknown) => give(new ExchangeFailed('reading', reason, cause));
    const onError = fail('its page is too much to read');
    let timer = setTimeout(() => give(new Unavailable('pages_busy', SLOW_START, 5)), loadMs);
    const stopWatch = source.kind === 'pdf' ? watchMemory(worker, PDF_MB, onError) : () => undefined;
    const onMessage = (message: PageReading | Loaded) => {
      if ('loaded' in message) {
        clearTimeout(timer);
        timer = setTimeout(fail('its page takes too long to read'), parseMs);
        return;
      }
      settle();
      resolve(message);
    };
    const settle = () => {
      clearTimeout(timer);
      stopWatch();
      worker.off('message', onMessage).off('error', onError).off('exit', onError);
    };
    worker.on('message', onMessage).once('error', onError).once('exit', onError);
    // A copy, because small buffers share memory with others, so they cannot be transferred.
    const bytes = new Uint8Array(source.bytes);
    worker.postMessage({ ...source, bytes }, [bytes.buffer]);
  });
}

/** Milliseconds. A decoder makes some 5 MB in this time. */
const EVERY_MS = 20;

/** Watches a thread's heap, and its buffers, which V8 does not limit, also while its code runs without a pause. */
function watchMemory(worker: Worker, maxMb: number, onTooMuch: () => void): () => void {
  let isWatching = true;
  const look = async () => {
    const { used_heap_size: heap, external_memory: buffers } = await worker.getHeapStatistics();
    if (isWatching && heap + buffers > maxMb * 2 ** 20) onTooMuch();
  };
  let isLooking = false;
  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    look()
      // The thread has ended meanwhile.
      .catch(() => undefined)
      .finally(() => {
        isLooking = false;
      });
  }, EVERY_MS);
  return () => {
    isWatching = false;
    clearInterval(timer);
  };
}
