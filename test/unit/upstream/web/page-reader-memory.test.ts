import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startCommand } from '../../../../scripts/lib/build/start-command.ts';

// V8's flags hold for a whole process, so each case has a process of its own.

const READER = join(import.meta.dirname, '../../../../src/upstream/web/page-reader.ts');

/** Prints the most that the heap of a page's thread may take, in bytes. */
const READ = `
  let thread;
  process.once('worker', (worker) => { thread = worker; });
  const { createPageReader } = await import(${JSON.stringify(READER)});
  const reader = createPageReader({ workers: 1, loadMs: 60_000, parseMs: 60_000 });
  const source = { url: 'https://page.example/', contentType: 'text/html', contentLanguage: null, kind: 'html' };
  await reader.read({ ...source, bytes: Buffer.from('<p>text</p>') }, new AbortController().signal);
  thread.ref();
  console.log((await thread.getHeapStatistics()).heap_size_limit);
  await reader.close();`;
/** Prints the same of a thread that only has limits. */
const BARE = `
  const { Worker } = await import('node:worker_threads');
  const resourceLimits = { maxOldGenerationSizeMb: 144, maxYoungGenerationSizeMb: 16 };
  const worker = new Worker('setInterval(() => 0, 1000)', { eval: true, resourceLimits });
  await new Promise((resolve) => worker.once('online', resolve));
  console.log((await worker.getHeapStatistics()).heap_size_limit);
  await worker.terminate();`;

function limitOf(script: string, options: readonly string[]): number {
  const words = [...options, '--eval', script];
  return Number(execFileSync(process.execPath, words, { encoding: 'utf8' }));
}

const { options } = startCommand();

test('a page’s thread has the heap that it is given, whatever `npm start` gives the main thread', () => {
  const limit = limitOf(READ, []);
  expect(limit).toBeGreaterThan(144 * 2 ** 20);
  expect(limitOf(READ, options)).toBe(limit);
});

test('a thread with limits alone gets a larger heap from the options of `npm start`', () => {
  expect(limitOf(BARE, options)).toBeGreaterThan(limitOf(BARE, []));
});
