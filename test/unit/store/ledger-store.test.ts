import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openLedgerDatabase, type Sqlite } from '../../../src/store/database.ts';
import type { LedgerStore } from '../../../src/store/ledger-port.ts';
import { createLedgerStore } from '../../../src/store/ledger-store.ts';
import { hash32, reservation } from '../../support/ledger-rows.ts';

let folder: string;
let file: string;
let db: Sqlite;
let other: Sqlite;
let store: LedgerStore;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ledger-store-'));
  file = join(folder, 'ledger.db');
  db = openLedgerDatabase(file);
  db.pragma('busy_timeout = 0');
  other = new Database(file);
  store = createLedgerStore(db);
});
afterEach(() => {
  db.close();
  other.close();
  rmSync(folder, { recursive: true });
});

const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const ends = async (writes: readonly Promise<unknown>[]): Promise<unknown[]> =>
  (await Promise.allSettled(writes)).map((end) => (end.status === 'fulfilled' ? end.value : end.reason.code));
const seen = (sql: string): unknown => other.prepare(sql).pluck().get();
const settle = async (id: string) => {
  await store.move(id, ['reserved'], 'settling', {}, { store: Buffer.from(`reply ${id}`) });
  await store.move(id, ['settling'], 'settled', { endedAt: 1 }, { keepUntil: 1000 });
};
const fail = async (id: string, reason: string) => {
  await store.move(id, ['reserved'], 'settling', {}, { store: Buffer.from('reply') });
  await store.move(id, ['settling'], 'failed', { reason }, 'drop');
};

describe('writes at once', () => {
  test('128 reservations of one authorization have one winner, and it is the first', async () => {
    const wins = await Promise.all(many(128, (at) => store.reserve(reservation(`p${at}`, 'n'), 0, null)));
    expect(wins.map((won, at) => (won ? at : -1)).filter((at) => at >= 0)).toEqual([0]);
    expect((await store.find(reservation('any', 'n')))?.id).toBe('p0');
  });

  test('128 reservations over two connections have one winner', async () => {
    const second = createLedgerStore(openLedgerDatabase(file));
    const both = [store, second];
    const wins = await Promise.all(many(128, (at) => both[at % 2]?.reserve(reservation(`p${at}`, 'n'), 0, null)));
    expect(wins.filter(Boolean)).toHaveLength(1);
    expect(await store.find(reservation('any', 'n'))).toEqual(await second.find(reservation('any', 'n')));
    await second.close();
  });

  test('of one payer stop at the cap within one turn too', async () => {
    const wins = await Promise.all(many(20, (at) => store.reserve(reservation(`p${at}`, `n${at}`), 3, null)));
    expect(wins.map(Boolean)).toEqual(many(20, (at) => at < 3));
  });

  test('that break a rule reject alone, and the rest is done', async () => {
    const broken = reservation('broken', 'broken', { amount: 0n });
    const writes = [
      store.reserve(reservation('a', 'a'), 0, null),
      store.reserve(broken, 0, null),
      store.reserve(reservation('a', 'another of the same id'), 0, null),
      store.move('a', ['reserved'], 'settling', {}, { store: Buffer.from('once') }),
      store.reserve(reservation('b', 'b'), 0, null),
    ];
    const constraint = (kind: string) => `SQLITE_CONSTRAINT_${kind}`;
    expect(await ends(writes)).toEqual([true, constraint('CHECK'), constraint('PRIMARYKEY'), true, true]);
    expect(await store.countByState()).toMatchObject({ reserved: 1, settling: 1 });
  });

  test('that change two tables do so whole: a reply that cannot be stored leaves the state as it was', async () => {
    await store.reserve(reservation('a', 'a'), 0, null);
    db.prepare("INSERT INTO usdc_replies (payment_id, body) VALUES ('a', x'00')").run();
    const move = store.move('a', ['reserved'], 'settling', {}, { store: Buffer.from('twice') });
    const next = store.reserve(reservation('b', 'b'), 0, null);
    expect(await ends([move, next])).toEqual(['SQLITE_CONSTRAINT_PRIMARYKEY', true]);
    expect((await store.get('a'))?.state).toBe('reserved');
  });
});

describe('durability', () => {
  test('a broadcast is noted on disk when it is told, and not told before', async () => {
    await store.reserve(reservation('a', 'a'), 0, null);
    await store.move('a', ['reserved'], 'settling', {}, { store: Buffer.from('reply') });
    const transaction = hash32('sent');
    let told = false;
    const noted = store.noteBroadcast([{ id: 'a', transaction }], ['settling']).then((ids) => {
      told = true;
      return ids;
    });
    await Promise.resolve();
    expect([told, seen('SELECT transaction_hash FROM usdc_payments')]).toEqual([false, null]);
    expect(await noted).toEqual(new Set(['a']));
    expect(seen('SELECT transaction_hash FROM usdc_payments')).toEqual(Buffer.from(transaction));
  });

  test('a full disk refuses everything that came together and changes nothing', async () => {
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

  test('what was asked for before closing is done', async () => {
    const wins = many(300, (at) => store.reserve(reservation(`p${at}`, `n${at}`), 0, null));
    await store.close();
    expect(await ends(wins)).toEqual(many(300, () => true));
    expect(seen('SELECT count(*) FROM usdc_payments')).toBe(300);
  });
});

describe('the account of kept bytes', () => {
  test('counts replies that are still on their way, and those that were refused no longer', async () => {
    await store.reserve(reservation('a', 'a'), 0, null);
    const stored = store.move('a', ['reserved'], 'settling', {}, { store: Buffer.alloc(100) });
    const refused = store.move('nobody', ['reserved'], 'settling', {}, { store: Buffer.alloc(7) });
    expect(await store.replyBytes()).toBe(107);
    expect(await Promise.all([stored, refused])).toEqual([true, false]);
    expect(await store.replyBytes()).toBe(100);
  });
});

describe('an identifier', () => {
  const identifierHash = hash32('identifier');
  const named = (id: string, nonce: string) => reservation(id, nonce, { identifierHash });

  test('that two authorizations bring at once is given to one of them, over one connection or two', async () => {
    const second = createLedgerStore(openLedgerDatabase(file));
    const both = [store, second];
    const wins = await Promise.all(many(64, (at) => both[at % 2]?.reserve(named(`p${at}`, `n${at}`), 0, null)));
    expect(wins.filter(Boolean)).toHaveLength(1);
    const winner = `p${wins.indexOf(true)}`;
    expect((await store.findByIdentifier(identifierHash))?.id).toBe(winner);
    await second.close();
  });

  test('is nobody’s twice, even for a writer that does not ask', async () => {
    await store.reserve(named('a', 'a'), 0, null);
    await store.reserve(reservation('b', 'b'), 0, null);
    const take = db.prepare("UPDATE usdc_payments SET identifier_hash = ? WHERE id = 'b'");
    expect(() => take.run(identifierHash)).toThrow(/UNIQUE/);
  });

  test('stays with its payment when that is settled, and is not looked for row by row', async () => {
    await store.reserve(named('a', 'a'), 0, null);
    await settle('a');
    expect(await store.reserve(named('b', 'b'), 0, null)).toBe(false);
    expect((await store.findByIdentifier(identifierHash))?.id).toBe('a');
    const plan = db
      .prepare("EXPLAIN QUERY PLAN SELECT * FROM usdc_payments WHERE identifier_hash = ? AND state <> 'failed'")
      .all(identifierHash);
    expect(JSON.stringify(plan)).toContain('usdc_payments_identifier');
  });

  test('is free again when its reservation is given back or its payment failed, and the failed row still knows its buyer', async () => {
    await store.reserve(named('a', 'a'), 0, null);
    await store.release('a', ['reserved']);
    expect(await store.findByIdentifier(identifierHash)).toBeNull();
    expect(await store.reserve(named('b', 'b'), 0, null)).toBe(true);
    await fail('b', 'cancelled');
    expect(await store.findByIdentifier(identifierHash)).toBeNull();
    expect(await store.reserve(named('c', 'c'), 0, null)).toBe(true);
    expect((await store.get('b'))?.identifierHash).toEqual(Buffer.from(identifierHash));
  });

  test('comes with the payment that takes over a reverted one, unless another has it by then', async () => {
    for (const id of ['a', 'b']) {
      await store.reserve(named(id, id), 0, null);
      await fail(id, 'reverted');
    }
    expect(await store.reserve(named('a2', 'a'), 0, 'reverted')).toBe(true);
    expect(await store.reserve(named('b2', 'b'), 0, 'reverted')).toBe(false);
    expect((await store.findByIdentifier(identifierHash))?.id).toBe('a2');
    expect(await store.reserve(reservation('b3', 'b'), 0, 'reverted')).toBe(true);
    expect((await store.get('b3'))?.identifierHash).toBeNull();
  });

  test('that rows of an older ledger share is kept by the latest of them', async () => {
    const old = join(folder, 'old.db');
    const first = new Database(old);
    const migrations = join(import.meta.dirname, '../../../src/store/migrations');
    for (const name of readdirSync(migrations).filter((one) => one < '004')) {
      first.exec(readFileSync(join(migrations, name), 'utf8'));
    }
    first.pragma('user_version = 3');
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
    expect((await createLedgerStore(opened).findByIdentifier(identifierHash))?.id).toBe('p2');
    opened.close();
  });
});
