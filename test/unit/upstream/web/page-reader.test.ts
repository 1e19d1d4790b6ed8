import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createPageReader, type PageReader } from '../../../../src/upstream/web/page-reader.ts';

const signal = new AbortController().signal;
const page = (html: string) => ({
  bytes: Buffer.from(html),
  url: 'https://page.example/',
  contentType: 'text/html',
  contentLanguage: null,
  kind: 'html' as const,
});
const small = page('<title>Small</title><p>text</p>');
/** A quarter of a second of work. */
const slow = page(`<html><body>${'<div><p>some words</p></div>'.repeat(10_000)}</body></html>`);

/** In ms: how long a page may wait, and how long it may take, on a machine that is as busy as it may be. */
const PATIENCE_MS = 60_000;

/** A time-out of so many ms is over before any message of a thread arrives. */
const NO_TIME_MS = 1;

// A real timer would race the thread: after a pause of this process, messages may be handled before timers that are due.
beforeEach(() => {
  const start = globalThis.setTimeout;
  vi.spyOn(globalThis, 'setTimeout').mockImplementation((run, ms) => {
    if (ms !== NO_TIME_MS) return start(run, ms);
    process.nextTick(run);
    return start(() => undefined, ms);
  });
});

let reader: PageReader;
afterEach(async () => {
  vi.restoreAllMocks();
  await reader.close();
});

test('pages are read by a thread, as many at once as there are, and the caller’s bytes are not changed', async () => {
  reader = createPageReader({ workers: 2, waitMs: PATIENCE_MS, loadMs: PATIENCE_MS, parseMs: PATIENCE_MS });
  const bytes = Buffer.from(small.bytes);
  const read = await Promise.all(Array.from({ length: 6 }, () => reader.read(small, signal)));
  expect(read.map(({ title }) => title)).toEqual(Array(6).fill('Small'));
  expect(small.bytes.equals(bytes)).toBe(true);
});

test('a page without a free thread waits a little, then gets 503', async () => {
  reader = createPageReader({ workers: 1, waiting: 1, waitMs: NO_TIME_MS, loadMs: PATIENCE_MS, parseMs: PATIENCE_MS });
  await reader.read(small, signal);
  const busy = reader.read(slow, signal);
  const busyReply = { status: 503, code: 'pages_busy', retryAfterSeconds: 5, charged: false };
  // One page may wait, and does so for too long. The other finds no place.
  const refused = [small, small].map((page) => expect(reader.read(page, signal)).rejects.toMatchObject(busyReply));
  await Promise.all(refused);
  expect((await busy).text).toContain('some words');
  expect((await reader.read(small, signal)).title).toBe('Small');
});

test('only a page that takes too long fails', async () => {
  reader = createPageReader({ workers: 1, loadMs: PATIENCE_MS, parseMs: NO_TIME_MS });
  await expect(reader.read(slow, signal)).rejects.toThrow('its page takes too long to read');
  await reader.close();
  reader = createPageReader({ workers: 1, loadMs: PATIENCE_MS, parseMs: PATIENCE_MS });
  expect((await reader.read(small, signal)).title).toBe('Small');
});

test('a thread that takes too long to start is no fault of its page: 503, and the next page has a new thread', async () => {
  reader = createPageReader({ workers: 1, loadMs: NO_TIME_MS, parseMs: PATIENCE_MS });
  for (let page = 0; page < 2; page += 1) {
    const failed = reader.read(small, signal);
    await expect(failed).rejects.toMatchObject({ status: 503, code: 'pages_busy', charged: false });
  }
});
