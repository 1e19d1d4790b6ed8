import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Sqlite } from '../../src/lib/sqlite-file.ts';
import type { CatalogueStore } from '../../src/store/ports/stores.ts';
import { openTestLedger, storesOf } from '../support/ledger/fresh-ledger.ts';
import { entriesOf, item, openCatalogue, paged } from '../support/market/catalogue.ts';
import { countRunningTime } from '../support/running-time.ts';
import { ownPort } from '../support/service/own-port.ts';
import { SLACK_MS } from '../support/slack.ts';
import { FAULTS, type Replay, startReplay } from '../support/upstream/replay.ts';

/** In milliseconds: the source is silent in some tests, and answers in others, on a machine that may be busy. */
const TIMEOUT_MS = 2000;
const runningMs = countRunningTime();

let folder: string;
let db: Sqlite;
let store: CatalogueStore;
let server: Replay;
let opened: ReturnType<typeof openCatalogue>;
const clock = { now: 0, nowMs: () => clock.now, sleep: async () => {} };
const items = (count: number) => Array.from({ length: count }, (_, n) => item(n));

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'catalogue-fault-'));
  db = openTestLedger(join(folder, 'ledger.db'));
  store = storesOf(db).catalogue;
  server = await startReplay({ '/list': paged(items(450)) }, { port: await ownPort() });
  clock.now = 1_800_000_000_000;
  opened = openCatalogue(`${server.url}/list`, store, clock, TIMEOUT_MS);
});
afterEach(async () => {
  await opened.close();
  await server.stop();
  db.close();
  rmSync(folder, { recursive: true });
});

describe.each(FAULTS)('%s', (fault) => {
  test('the last copy stays with its time, in memory and on disk, and the log says so once', async () => {
    const { catalogue, read, warned } = opened;
    expect(await read()).toBe(true);
    const [version, readAt, entries] = [catalogue.version(), clock.now, catalogue.listings()];
    clock.now += 3_600_000;
    await server.setFault(fault);
    const from = runningMs();
    expect(await read()).toBe(false);
    expect(runningMs() - from).toBeLessThan(TIMEOUT_MS + SLACK_MS);
    expect([catalogue.version(), catalogue.readAtMs(), catalogue.listings()]).toEqual([version, readAt, entries]);
    expect([await store.readAt(), entriesOf(await store.load())?.length]).toEqual([readAt, 450]);
    expect(warned).toHaveLength(1);
    await server.setFault(null);
    // Later than the client's pause after failures.
    clock.now += 3_600_000;
    expect([await read(), catalogue.readAtMs()]).toEqual([true, clock.now]);
  });

  test('before the first good read there is nothing, and no time', async () => {
    await server.setFault(fault);
    const { catalogue, read } = opened;
    expect(await read()).toBe(false);
    expect([catalogue.listings(), catalogue.readAtMs(), await store.load()]).toEqual([[], null, null]);
  });
});
