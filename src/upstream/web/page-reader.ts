import { Worker } from 'node:worker_threads';
import { Unavailable } from '../../errors.ts';
import { ExchangeFailed } from '../client/failure.ts';
import { createLimiter, NoRoom } from '../client/limiter.ts';
import type { PageContent, PageSource } from './page.ts';

/** Reads pages off the main thread. */
export interface PageReader {
  /** ExchangeFailed when the page is too much for the worker, Unavailable (503) when too many pages wait. */
  read(source: PageSource, signal: AbortSignal): Promise<PageContent>;
  close(): Promise<void>;
}

interface PageReaderOptions {
  /** Threads; each takes a core while it works. */
  readonly workers: number;
  /** Pages that may wait for one. */
  readonly waiting?: number;
  /** How long each may wait. */
  readonly waitMs?: number;
  /** What one page may take. */
  readonly parseMs?: number;
}

/** A 100 KB page takes some 20 ms (bench `extract`): so many are read well within the time that they may wait. */
const WAITING = 256;
/** A little: together with fetching it stays inside the handler's time-out. */
const WAIT_MS = 4000;
/** A 1.5 MB page takes well under a second; past this it was made to hurt. */
const PARSE_MS = 4000;
/** Twice what the largest tree needs that a page can make us build (page-markup.ts sees to that: a worker out of memory may end the process). */
const HEAP_MB = 144;
/** Small: most of what a page makes dies with it, and V8 would take three times 32 MB for it. */
const YOUNG_MB = 8;

/** Threads start with the first page and stay. One that fails, stalls or runs out of memory is replaced, at the cost of its one page. */
export function createPageReader(options: PageReaderOptions): PageReader {
  const { workers, waiting = WAITING, waitMs = WAIT_MS, parseMs = PARSE_MS } = options;
  const limiter = createLimiter({ running: workers, waiting, waitMs });
  // Invariant: a worker is in here exactly while it has no page.
  const idle: Worker[] = [];
  const all = new Set<Worker>();

  function start(): Worker {
    const worker = spawnWorker();
    all.add(worker);
    worker.unref();
    // A worker that was given up may still fail.
    worker.on('error', () => undefined);
    worker.once('exit', () => {
      all.delete(worker);
      const at = idle.indexOf(worker);
      if (at >= 0) idle.splice(at, 1);
    });
    return worker;
  }

  function ask(worker: Worker, source: PageSource): Promise<PageContent> {
    return new Promise((resolve, reject) => {
      const fail = (reason: string) => (cause?: unknown) => {
        settle();
        worker.terminate();
        reject(new ExchangeFailed('reading', reason, cause));
      };
      const onError = fail('its page is too much to read');
      const timer = setTimeout(fail('its page takes too long to read'), parseMs);
      const onMessage = (content: PageContent) => {
        settle();
        idle.push(worker);
        resolve(content);
      };
      const settle = () => {
        clearTimeout(timer);
        worker.off('message', onMessage).off('error', onError).off('exit', onError);
      };
      worker.once('message', onMessage).once('error', onError).once('exit', onError);
      // A copy of its own, to be handed over and not copied again: small buffers share memory with others.
      const bytes = new Uint8Array(source.bytes);
      worker.postMessage({ ...source, bytes }, [bytes.buffer]);
    });
  }

  return {
    read: (source, signal) =>
      limiter
        .run(signal, () => ask(idle.pop() ?? start(), source))
        .catch((error: unknown) => {
          if (error instanceof NoRoom) throw new Unavailable('pages_busy', 'too many pages are waiting to be read', 5);
          throw error;
        }),
    close: async () => {
      await Promise.all([...all].map((worker) => worker.terminate()));
    },
  };
}

function spawnWorker(): Worker {
  return new Worker(new URL('./page-worker.ts', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB },
    // Nothing of ours: no key is within reach of what reads strangers' pages.
    env: {},
  });
}
