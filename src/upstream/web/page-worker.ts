import { parentPort } from 'node:worker_threads';
import { type PageSource, readPage } from './page.ts';

// A thread that does nothing but read pages: strangers' HTML must never take the time of the thread that serves and settles.

parentPort?.on('message', (source: PageSource) => {
  parentPort?.postMessage(readPage(source));
});
