import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { migrate, type Sqlite } from '../../../../src/lib/sqlite-file.ts';
import { IS_TO_READ } from '../../../../src/store/channels.ts';
import { stepsOf } from '../../../../src/store/db/migrate.ts';
import { openLedgerDatabase } from '../../../../src/store/db/sqlite.ts';
import { OPEN } from '../../../../src/store/payments.ts';
import type { LedgerStore } from '../../../../src/store/ports/payments.ts';
import { openTestLedger, storesOf } from '../../../support/ledger/fresh-ledger.ts';
import { hash32, reservation } from '../../../support/ledger/ledger-rows.ts';

let folder: string;
let file: string;
let db: Sqlite;
let other: Sqlite;
let store: LedgerStore;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ledger-store-'));
  file = join(folder, 'ledger.db');
  db = openTestLedger(file);
  db.pragma('busy_timeout = 0');
  other = new Database(file);
  store = storesOf(db).payments;
});
afterEach(() => {
  db.close();
  other.close();
  rmSync(folder, { recursive: true });
});

const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const ends = async (writes: readonly Promise<unknown>[]): Promise<unknown[]> =>
  (await Promise.allSettled(writes)).map((end) => (end.status === 'fulfilled' ? end.value : end.reason.cause.code));
const seen = (sql: string): unknown => other.prepare(sql).pluck().get();

describe('durability', () => {
  test('a noted broadcast is on disk when the call resolves, and the call does not resolve before', async () => {
    await store.reserve(reservation('a', 'a'), 0, null);
    await store.move('a', ['reserved'], 'settling', {}, { store: Buffer.from('reply') });
    const transaction = hash32('sent');
    let reported = false;
    const noted = store.noteBroadcast([{ id: 'a', transaction }], ['settling']).then((ids) => {
      reported = true;
      return ids;
    });
    await Promise.resolve();
    expect([reported, seen('SELECT transaction_hash FROM usdc_payments')]).toEqual([false, null]);
    expect(await noted).toEqual(new Set(['a']));
    expect(seen('SELECT transaction_hash FROM usdc_payments')).toEqual(Buffer.from(transaction));
  });

  test('a full disk rejects all writes of the batch and changes nothing', async () => {
    await store.reserve(reservation('before', 'before'), 0, null);
    const pages = Number(db.pragma('page_count', { simple: true }));
    db.pragma(`max_page_count = ${pages + 1}`);
    const writes = [
      store.reserve(reservation('a', 'a'), 0, null),
      store.move('before', ['reserved'], 'settling', {}, { store: Buffer.alloc(40_000) }),
      store.noteBroadcast([{ id: 'before', transaction: hash32('t') }], ['settling']),
      store.release('before', ['reserved']),
    ];
    expect(await ends(writes)).toEqual(many(4, () => 'SQLITE_FULL'));
    expect(await store.get('before')).toMatchObject({ state: 'reserved', transaction: null });
    expect([await store.get('a'), await store.replyBytes()]).toEqual([null, 0]);
    db.pragma(`max_page_count = ${pages + 1000}`);
    expect(await store.reserve(reservation('a', 'a'), 0, null)).toBe(true);
  });

  test('a database that another process has locked refuses them all, and takes them when it is free', async () => {
    other.exec('BEGIN IMMEDIATE');
    const reserve = () => many(3, (at) => store.reserve(reservation(`p${at}`, `n${at}`), 0, null));
    expect(await ends(reserve())).toEqual(many(3, () => 'SQLITE_BUSY'));
    other.exec('ROLLBACK');
    expect(await ends(reserve())).toEqual([true, true, true]);
  });
});

describe('the account of kept bytes', () => {
  test('includes replies that are being written, and excludes them after a refusal', async () => {
    await store.reserve(reservation('a', 'a'), 0, null);
    const stored = store.move('a', ['reserved'], 'settling', {}, { store: Buffer.alloc(100) });
    const refused = store.move('nobody', ['reserved'], 'settling', {}, { store: Buffer.alloc(7) });
    expect(await store.replyBytes()).toBe(107);
    expect(await Promise.all([stored, refused])).toEqual([true, false]);
    expect(await store.replyBytes()).toBe(100);
  });
});

test('the payments of a payer that were reserved before one are found by an index, whatever has ended', () => {
  const text = `EXPLAIN QUERY PLAN SELECT sum(amount) FROM usdc_payments
    WHERE network = ? AND contract IN (?) AND payer = ? AND id <> ? AND state IN ${OPEN} AND place < ?`;
  expect(JSON.stringify(db.prepare(text).all('', '', '', '', 1))).toContain('usdc_payments_open');
});

test('channels that the leader is to read are found by an index', () => {
  const plan = db
    .prepare(`EXPLAIN QUERY PLAN SELECT * FROM channels WHERE network = 'n' AND id > x'' AND ${IS_TO_READ} ORDER BY id`)
    .all({ head: 1 });
  expect(JSON.stringify(plan)).toContain('channels_to_read');
});

describe('an identifier', () => {
  const identifierHash = hash32('identifier');

  test('is found by an index', () => {
    const plan = db
      .prepare("EXPLAIN QUERY PLAN SELECT * FROM usdc_payments WHERE identifier_hash = ? AND state <> 'failed'")
      .all(identifierHash);
    expect(JSON.stringify(plan)).toContain('usdc_payments_identifier');
  });

  test('that rows of an older ledger share stays with the latest of them', async () => {
    const old = join(folder, 'old.db');
    const first = new Database(old);
    migrate(first, stepsOf('sqlite').slice(0, 3));
    const insert = first.prepare(`
      INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after,
                                 valid_before, request_hash, client_hash, identifier_hash, reserved_at)
      SELECT ?, 'eip155:5042', zeroblob(20), zeroblob(20), ?, ?, 'b', 1, zeroblob(20), '0', '1', zeroblob(32), zeroblob(32), ?, 1`);
    for (const [id, state] of [
      ['p1', 'settled'],
      ['p2', 'settled'],
      ['p3', 'failed'],
      ['p4', 'settled'],
    ] as const) {
      insert.run(id, hash32(id), state, id === 'p4' ? null : identifierHash);
    }
    first.close();
    const opened = openLedgerDatabase(old);
    const kept = opened.prepare('SELECT id FROM usdc_payments WHERE identifier_hash IS NOT NULL ORDER BY id').pluck();
    expect(kept.all()).toEqual(['p2', 'p3']);
    expect((await storesOf(opened).payments.findByIdentifier(identifierHash))?.id).toBe('p2');
    opened.close();
  });
});
