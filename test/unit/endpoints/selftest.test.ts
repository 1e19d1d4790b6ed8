import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { selftest } from '../../../src/endpoints/selftest.ts';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import type { SelfTestRun, SelfTestStore } from '../../../src/store/ports/stores.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { HASH, NOW_SECONDS } from './fixture.ts';

const ORIGIN = 'https://api.example.com';
const DAY = 86_400;
let folder: string;
let db: Sqlite;
let store: SelfTestStore;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selftest-endpoint-'));
  db = openTestLedger(join(folder, 'ledger.db'));
  store = storesOf(db).selfTests;
});
afterEach(() => {
  db.close();
  rmSync(folder, { recursive: true });
});

const good = (secondsAgo: number): SelfTestRun => ({
  at: (NOW_SECONDS - secondsAgo) * 1000 + 321,
  ok: true,
  latencyMs: 700,
  transaction: Buffer.from(HASH.slice(2), 'hex'),
  notCharged: true,
  reason: null,
});
const bad = (secondsAgo: number, changes: Partial<SelfTestRun> = {}): SelfTestRun => ({
  ...good(secondsAgo),
  ok: false,
  latencyMs: null,
  transaction: null,
  notCharged: null,
  reason: 'purchase_unreachable',
  ...changes,
});

async function answer(enabled = true) {
  const clock = { nowMs: () => NOW_SECONDS * 1000 + 999, sleep: async () => undefined };
  const sources = { selfTests: { results: store, enabled, origin: ORIGIN }, clock };
  return selftest.result.parse(await selftest.run({}, sources as never, new AbortController().signal));
}

describe('selftest', () => {
  test('says what it does not know before the first run, and that it is off when there is no wallet', async () => {
    const nothing = { last: null, lastNotCharged: null, last24h: { runs: 0, ok: 0 }, recent: [] };
    const source = { name: expect.any(String), url: ORIGIN, retrievedAt: NOW_SECONDS };
    const running = await answer();
    expect(running).toEqual({ note: expect.stringMatching(/not customer activity/), ...nothing, source });
    expect(running.note).not.toMatch(/\boff\b/);
    expect(await answer(false)).toEqual({
      note: expect.stringMatching(/it is off.*customer activity/),
      ...nothing,
      source,
    });
  });

  test('shows the newest run, and the newest one that saw the failing call', async () => {
    for (const run of [good(7200), bad(3600)]) await store.record(run, 0);
    expect(await answer()).toMatchObject({
      last: { at: NOW_SECONDS - 3600, ok: false, latencyMs: null, transaction: null },
      lastNotCharged: { at: NOW_SECONDS - 7200, ok: true },
      last24h: { runs: 2, ok: 1 },
      recent: [
        { at: NOW_SECONDS - 3600, ok: false, notCharged: null, reason: 'purchase_unreachable' },
        { at: NOW_SECONDS - 7200, ok: true, latencyMs: 700, transaction: HASH, notCharged: true, reason: null },
      ],
      source: { retrievedAt: NOW_SECONDS - 3600 },
    });
  });

  test('a charge for the failing call is reported as such, with the successful payment', async () => {
    const { transaction, latencyMs } = good(0);
    const charged = { transaction, latencyMs, notCharged: false, reason: 'failing_call_used_its_payment' };
    await store.record(bad(60, charged), 0);
    expect(await answer()).toMatchObject({
      last: { ok: false, transaction: HASH },
      lastNotCharged: { at: NOW_SECONDS - 60, ok: false },
      last24h: { runs: 1, ok: 0 },
    });
  });

  test('counts a day and lists a day of hourly runs', async () => {
    for (let hour = 30; hour >= 0; hour--) await store.record(good(hour * 3600), 0);
    const reply = await answer();
    expect(reply.last24h).toEqual({ runs: 25, ok: 25 });
    const times = (reply.recent as { at: number }[]).map(({ at }) => at);
    expect(times).toEqual(Array.from({ length: 24 }, (_, hour) => NOW_SECONDS - hour * 3600));
    expect(times.at(-1)).toBeGreaterThan(NOW_SECONDS - DAY);
  });
});
