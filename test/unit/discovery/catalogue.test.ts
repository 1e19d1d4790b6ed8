import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import type { CatalogueStore } from '../../../src/store/ports/stores.ts';
import { openMemoryLedger, openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { entriesOf, gateway, item, openCatalogue, paged, plain } from '../../support/market/catalogue.ts';
import { type Replay, startReplay } from '../../support/upstream/replay.ts';

const HOUR_MS = 3_600_000;

let db: Sqlite;
let store: CatalogueStore;
let server: Replay;
let clock: { now: number; slept: number; nowMs(): number; sleep(ms: number): Promise<void> };
const closing: (() => Promise<void>)[] = [];

beforeEach(async () => {
  db = openMemoryLedger();
  store = storesOf(db).catalogue;
  server = await startReplay();
  clock = {
    now: 1_800_000_000_000,
    slept: 0,
    nowMs: () => clock.now,
    sleep: async (ms) => {
      clock.slept += ms;
    },
  };
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await server.stop();
  db.close();
});

function open(query = '') {
  const opened = openCatalogue(`${server.url}/list${query}`, store, clock);
  closing.push(opened.close);
  return opened;
}
const serve = (items: readonly unknown[], most?: number) => {
  server.answers['/list'] = paged(items, most);
};
const items = (count: number) => Array.from({ length: count }, (_, n) => item(n));
const asked = () => server.received.map(({ url }) => Object.fromEntries(new URL(url, server.url).searchParams));

describe('the catalogue', () => {
  test('before the first read is empty and has no time', async () => {
    const { catalogue } = open();
    await catalogue.load();
    expect([catalogue.listings(), catalogue.readAtMs(), catalogue.version()]).toEqual([[], null, 0]);
  });

  test('is read to its end, page by page, a second apart, for our network', async () => {
    serve(items(450));
    const { catalogue, read, warned } = open();
    expect(await read()).toBe(true);
    expect(catalogue.listings()).toHaveLength(450);
    expect(catalogue.readAtMs()).toBe(clock.now);
    expect(asked()).toEqual(['0', '200', '400'].map((offset) => ({ network: 'eip155:5042', limit: '200', offset })));
    expect([clock.slept, warned]).toEqual([2000, []]);
  });

  test('that returns fewer items than requested is read to its end', async () => {
    serve(items(25), 10);
    const { catalogue, read } = open('?type=http');
    await read();
    expect(catalogue.listings()).toHaveLength(25);
    expect(asked().map(({ offset, type }) => [offset, type])).toEqual([
      ['0', 'http'],
      ['10', 'http'],
      ['20', 'http'],
    ]);
  });

  test.each([
    ['without a total', (all: unknown[]) => ({ items: all })],
    ['under another name', (all: unknown[]) => ({ resources: all, pagination: { total: 'many' } })],
  ])('that ignores paging, %s, is read once and recognised as repeating', async (_what, answer) => {
    server.answers['/list'] = { body: JSON.stringify(answer(items(3))) };
    const { catalogue, read } = open();
    expect(await read()).toBe(true);
    expect(catalogue.listings()).toHaveLength(3);
    expect(server.received).toHaveLength(2);
  });

  test('without an end is read for a bounded number of pages', async () => {
    let n = 0;
    server.answers['/list'] = () => ({ body: JSON.stringify({ items: [item(n++)] }) });
    const { catalogue, read, warned } = open();
    expect(await read()).toBe(true);
    expect([server.received.length, catalogue.listings().length]).toEqual([25, 25]);
    expect(warned).toEqual([expect.stringContaining('larger')]);
  });

  test('of too many entries or bytes is cut', async () => {
    const heavy = (from: number) =>
      Array.from({ length: 200 }, (_, n) =>
        item(from + n, [gateway()], { description: 'x'.repeat(500), input: { properties: fields } }),
      );
    const fields = Object.fromEntries(
      Array.from({ length: 20 }, (_, n) => [`p${n}`, { description: 'y'.repeat(200), example: 'z'.repeat(200) }]),
    );
    server.answers['/list'] = ({ url }) => ({
      body: JSON.stringify({ items: heavy(Number(new URL(url, server.url).searchParams.get('offset'))) }),
    });
    const { catalogue, read, warned } = open();
    expect(await read()).toBe(true);
    expect(JSON.stringify(catalogue.listings()).length).toBeLessThanOrEqual(8.1 * 1024 * 1024);
    expect(catalogue.listings().length).toBeGreaterThan(100);
    expect(warned).toEqual([expect.stringContaining('larger')]);
  });

  test('is filtered to entries payable on our chain, and an unreadable entry does not affect the others', async () => {
    serve([
      null,
      'x',
      {},
      item(1, [plain({ network: 'eip155:1' })]),
      item(2),
      { resource: 'x', accepts: 7 },
      item(3, [plain()]),
    ]);
    const { catalogue, read } = open();
    await read();
    expect(catalogue.listings().map(({ entry }) => [entry.host, entry.rail])).toEqual([
      ['seller2.example', 'gateway'],
      ['seller3.example', 'direct'],
    ]);
  });

  test('is available at once after a restart, with the time of its read', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'catalogue-'));
    const start = () => {
      db.close();
      db = openTestLedger(join(folder, 'ledger.db'));
      store = storesOf(db).catalogue;
      return open();
    };
    serve(items(3));
    const first = start();
    await first.read();
    const readAt = clock.now;
    clock.now += HOUR_MS;
    const second = start();
    await second.catalogue.load();
    expect(second.catalogue.listings()).toEqual(first.catalogue.listings());
    expect(second.catalogue.readAtMs()).toBe(readAt);
    rmSync(folder, { recursive: true });
  });

  test('read by another process is loaded, an older copy is not', async () => {
    serve(items(3));
    const follower = open();
    await follower.catalogue.load();
    const reader = open();
    await reader.read();
    await follower.catalogue.load();
    expect(follower.catalogue.listings()).toHaveLength(3);
    const { version } = follower.catalogue;
    const before = version();
    await follower.catalogue.load();
    expect(version()).toBe(before);
  });

  test.each([
    ['no JSON', '{'],
    ['of another shape', '[{"entry":1}]'],
  ])('a stored copy that is %s is logged and ignored', async (_what, entries) => {
    await store.save({ readAt: 1, entries });
    const { catalogue, warned } = open();
    await catalogue.load();
    expect([catalogue.listings(), catalogue.readAtMs(), warned.length]).toEqual([[], null, 1]);
  });

  test('a stored copy of another chain’s entries is ignored', async () => {
    serve(items(2));
    const { catalogue, read } = open();
    await read();
    const kept = (await store.load()) ?? { readAt: 0, entries: '' };
    await store.save({ readAt: kept.readAt + 1, entries: kept.entries.replaceAll('eip155:5042', 'eip155:1') });
    await catalogue.load();
    expect(catalogue.listings()).toEqual([]);
  });

  describe('that suddenly shrinks', () => {
    test.each([
      [20, 0, 'kept'],
      [20, 1, 'kept'],
      [20, 2, 'renewed'],
      [20, 19, 'renewed'],
      [1, 0, 'kept'],
    ])('from %i to %i entries: the copy is %s', async (before, after, what) => {
      serve(items(before));
      const { catalogue, read, warned } = open();
      await read();
      const readAt = clock.now;
      clock.now += HOUR_MS;
      serve(items(after));
      expect(await read()).toBe(what === 'renewed');
      expect(catalogue.listings()).toHaveLength(what === 'renewed' ? after : before);
      expect(catalogue.readAtMs()).toBe(what === 'renewed' ? clock.now : readAt);
      expect(entriesOf(await store.load())).toHaveLength(what === 'renewed' ? after : before);
      expect(warned).toHaveLength(what === 'renewed' ? 0 : 1);
    });

    test('is believed after a day', async () => {
      serve(items(20));
      const { catalogue, read } = open();
      await read();
      serve([]);
      clock.now += 24 * HOUR_MS;
      expect(await read()).toBe(false);
      clock.now += 1;
      expect(await read()).toBe(true);
      expect(catalogue.listings()).toEqual([]);
    });

    test('from nothing is no shrinking', async () => {
      serve([]);
      const { catalogue, read, warned } = open();
      expect([await read(), await read()]).toEqual([true, true]);
      expect([catalogue.readAtMs(), warned]).toEqual([clock.now, []]);
    });
  });

  test('a failing page discards the others', async () => {
    serve(items(3));
    const { catalogue, read, warned } = open();
    await read();
    const whole = paged(items(450));
    server.answers['/list'] = (request) =>
      request.url.includes('offset=200') ? { status: 500, body: '{}' } : whole(request);
    expect(await read()).toBe(false);
    expect([catalogue.listings().length, warned.length]).toEqual([3, 1]);
  });

  test('that cannot be stored is still searched', async () => {
    serve(items(3));
    const broken = { ...store, save: () => Promise.reject(new Error('disk full')) };
    const { catalogue, read, warned, close } = openCatalogue(`${server.url}/list`, broken, clock);
    closing.push(close);
    expect(await read()).toBe(true);
    expect([catalogue.listings().length, warned]).toEqual([3, [expect.stringContaining('cannot be stored')]]);
  });

  test('an aborted read changes and logs nothing', async () => {
    serve(items(3));
    const { catalogue, warned } = open();
    expect(await catalogue.read(AbortSignal.abort(new Error('stop')))).toBe(false);
    expect([catalogue.listings(), warned]).toEqual([[], []]);
  });
});
