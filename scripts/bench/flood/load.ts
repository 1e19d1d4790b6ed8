import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { LoadOptions, LoadReport } from './load-worker.ts';

/** A flood that is ready to flow. */
export interface Load {
  go(): void;
  /** Ends it and tells what it did. */
  stop(): Promise<LoadReport>;
}

/** Starts the flood's thread and returns when its payments are signed. */
export async function prepareLoad(workerData: LoadOptions): Promise<Load> {
  const worker = new Worker(new URL('./load-worker.ts', import.meta.url), { workerData });
  await once(worker, 'message');
  return {
    go: () => worker.postMessage('go'),
    stop: async () => {
      worker.postMessage('report');
      const [report] = await once(worker, 'message');
      await worker.terminate();
      return report as LoadReport;
    },
  };
}
