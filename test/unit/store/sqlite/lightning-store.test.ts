import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Sqlite } from '../../../../src/lib/sqlite-file.ts';
import type { LightningStore } from '../../../../src/store/ports/lightning.ts';
import { openTestLedger, storesOf } from '../../../support/ledger/fresh-ledger.ts';
import {
  accountedOf,
  grantOf,
  hashOf,
  invoiceOf,
  keyOf,
  NOON,
  TODAY,
} from '../../../support/lightning/lightning-rows.ts';

let folder: string;
let file: string;
let db: Sqlite;
let store: LightningStore;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lightning-store-'));
  file = join(folder, 'ledger.db');
  db = openTestLedger(file);
  store = storesOf(db).lightning;
});
afterEach(() => {
  db.close();
  rmSync(folder, { recursive: true });
});

const body = (text: string): Buffer => Buffer.from(text);

describe('claims', () => {
  test('resolve when another connection can read them, not before', async () => {
    const other = openTestLedger(join(folder, 'ledger.db'));
    const reader = storesOf(other).lightning;
    const pending = store.claim(grantOf('a'));
    expect(await reader.findClaim(keyOf('a'))).toBeNull();
    await pending;
    expect(await reader.findClaim(keyOf('a'))).not.toBeNull();
    other.close();
  });

  test('store no extra field, such as a preimage that a caller passed by mistake', async () => {
    const preimage = hashOf('preimage');
    const more = { preimage };
    await store.recordInvoice({ ...invoiceOf('a'), ...more }, body('sealed'));
    await store.claim({ ...grantOf('a'), ...more });
    const written = Buffer.concat([readFileSync(file), readFileSync(`${file}-wal`)]);
    expect(written.includes(hashOf('a'))).toBe(true);
    for (const trace of [preimage, preimage.toString('hex')]) expect(written.includes(trace)).toBe(false);
  });
});

describe('a disk that is full', () => {
  test('claims and counts nothing', async () => {
    const pages = Number(db.pragma('page_count', { simple: true }));
    db.pragma(`max_page_count = ${pages}`);
    const names = Array.from({ length: 100 }, (_, at) => `n${at}`);
    const ends = await Promise.allSettled(names.map((name) => store.claim(accountedOf(name))));
    expect(new Set(ends.map((end) => end.status === 'rejected' && end.reason.cause.code))).toEqual(
      new Set(['SQLITE_FULL']),
    );
    expect(await Promise.all(names.map((name) => store.findClaim(keyOf(name))))).toEqual(names.map(() => null));
    expect((await store.facilitatorCounts(TODAY, null)).total).toBe(0);
    db.pragma(`max_page_count = ${pages + 1000}`);
    expect(await store.claim(accountedOf('n0'))).toBe('claimed');
  });

  test('that cannot store an answer leaves the kept reply unchanged', async () => {
    await store.recordInvoice(invoiceOf('a'), body('kept'));
    await store.claim(grantOf('a'));
    await store.takeLease(keyOf('a'), 'p:1', NOON, NOON + 60_000);
    db.pragma(`max_page_count = ${Number(db.pragma('page_count', { simple: true }))}`);
    const tooBig = store.storeAnswer(keyOf('a'), 'p:1', Buffer.alloc(100_000));
    await expect(tooBig).rejects.toMatchObject({ code: 'ledger_unavailable', cause: { code: 'SQLITE_FULL' } });
    expect([(await store.findClaim(keyOf('a')))?.grant?.answered, await store.answer(keyOf('a'))]).toEqual([
      false,
      null,
    ]);
    expect(await store.keptReply(keyOf('a'))).toEqual(body('kept'));
  });
});
