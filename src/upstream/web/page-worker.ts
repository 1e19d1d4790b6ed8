import { parentPort } from 'node:worker_threads';
import { type PageSource, readPage } from './page.ts';

// A thread that only reads pages, so that third parties' HTML never blocks the thread that serves and settles.

parentPort?.on('message', (source: PageSource) => {
  parentPort?.postMessage(readPage(source));
});
