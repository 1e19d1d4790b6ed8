import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Sqlite } from '../../../../src/lib/sqlite-file.ts';
import {
  closeAfterWrites,
  createGroupCommit,
  type GroupCommit,
  groupOf,
  rewriteLog,
  syncFailureOf,
} from '../../../../src/store/db/group-commit.ts';
import { type LogSync, openLogSync } from '../../../../src/store/db/log-sync.ts';
import { openLedgerDatabase } from '../../../../src/store/db/sqlite.ts';
import { openTestLedger } from '../../../support/ledger/fresh-ledger.ts';
import { openFiles } from '../../../support/open-files.ts';

let folder: string;
let db: Sqlite;
let other: Sqlite;
let log: LogSync;
let commit: GroupCommit;
/** The syncs that have begun and not ended: each is ended by its function. */
let syncs: ((error: Error | null) => void)[];
let begun: () => void;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'log-sync-'));
  const file = join(folder, 'ledger.db');
  db = openTestLedger(file);
  db.exec('CREATE TABLE notes (name TEXT PRIMARY KEY) STRICT');
  other = new Database(file);
  syncs = [];
  begun = () => {};
  const syncFile = (_file: number, done: (error: Error | null) => void) => {
    syncs.push(done);
    begun();
  };
  log = openLogSync(db, syncFile) as LogSync;
  commit = createGroupCommit(db, log);
});
afterEach(() => {
  log.close();
  db.close();
  other.close();
  rmSync(folder, { recursive: true });
});

const note = (name: string) => () => db.prepare('INSERT INTO notes (name) VALUES (?)').run(name).changes;
const names = (): unknown[] => other.prepare('SELECT name FROM notes ORDER BY rowid').pluck().all();
const synchronous = (): unknown => db.pragma('synchronous', { simple: true });
const nextSync = () =>
  new Promise<void>((resolve) => {
    begun = resolve;
  });
const end = (error: Error | null = null) => syncs.shift()?.(error);
const path = (): string => `${db.name}-wal`;
/** How often this process has the log open. */
const opened = (): number => openFiles().filter((one) => one === path()).length;
/** The log's time of its last change, which begins long ago. */
const age = (): void => utimesSync(path(), 1, 1);
const isRewritten = (): boolean => statSync(path()).mtimeMs > 1000;

test('a write is in the database before its sync, and resolves only after it', async () => {
  let isOnDisk = false;
  const write = commit(note('a')).then(() => expect(isOnDisk).toBe(true));
  await nextSync();
  expect(names()).toEqual(['a']);
  // Several turns of the event loop, in which a write that waits for no sync would resolve.
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  isOnDisk = true;
  end();
  await write;
});

test('writes that come during a sync share the next transaction, and only one sync runs at a time', async () => {
  const first = commit(note('a'));
  await nextSync();
  const rest = [commit(note('b')), commit(note('c'))];
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  expect([names(), syncs.length]).toEqual([['a'], 1]);
  const second = nextSync();
  end();
  await Promise.all([first, second]);
  expect([names(), syncs.length]).toEqual([['a', 'b', 'c'], 1]);
  end();
  expect(await Promise.all(rest)).toEqual([1, 1]);
});

test('a burst larger than one batch is synced batch by batch, and no write is lost', async () => {
  const all = Promise.all(Array.from({ length: 600 }, (_, at) => commit(note(`n${at}`))));
  for (let batch = 1; batch <= 3; batch++) {
    await nextSync();
    expect(syncs).toHaveLength(1);
    end();
  }
  expect(await all).toHaveLength(600);
  expect(names()).toHaveLength(600);
});

test('a failed sync rejects its batch, and every later write, which is not made', async () => {
  const write = commit(note('a'));
  await nextSync();
  const later = commit(note('b'));
  end(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' }));
  const lost = { code: 'ledger_unavailable', cause: { path: `${db.name}-wal`, code: 'EIO' } };
  const ends = [write, later, commit(note('c'))].map((one) => expect(one).rejects.toMatchObject(lost));
  await Promise.all(ends);
  expect(await log.syncFailed).toMatchObject({ code: 'EIO' });
  expect(names()).toEqual(['a']);
});

test('a transaction outside of the group is synced by its own commit, also after one in the group has failed', async () => {
  expect(synchronous()).toBe(2);
  let inside: unknown = null;
  const write = commit(() => {
    inside = synchronous();
  });
  await nextSync();
  expect([inside, synchronous()]).toEqual([1, 2]);
  end();
  await write;
  const overflow = commit(() => db.prepare('SELECT abs(-9223372036854775807 - 1)').get());
  await expect(overflow).rejects.toThrow('overflow');
  expect([synchronous(), syncs]).toEqual([2, []]);
});

test('the log of a ledger is synced by the system, and again after it was restarted by a checkpoint', async () => {
  const real = openLogSync(db) as LogSync;
  const durable = createGroupCommit(db, real);
  await durable(note('a'));
  db.pragma('wal_checkpoint(RESTART)');
  await durable(note('b'));
  expect(names()).toEqual(['a', 'b']);
  real.close();
});

test('a connection whose commits wait for no disk has no log to sync', () => {
  expect(openLogSync(openLedgerDatabase(':memory:'))).toBeNull();
  db.pragma('synchronous = OFF');
  expect(openLogSync(db)).toBeNull();
});

test('what a crash left in the log without a sync is in the database file before the next process reads anything', () => {
  log.commit(() => note('a')());
  const [crashed, alone] = [join(folder, 'crashed.db'), join(folder, 'alone.db')];
  for (const end of ['', '-wal']) copyFileSync(`${db.name}${end}`, `${crashed}${end}`);
  const next = openLedgerDatabase(crashed);
  // The file without its log. SQLite syncs the log before it copies from it, and the file afterwards.
  copyFileSync(crashed, alone);
  const read = new Database(alone);
  expect(read.prepare('SELECT name FROM notes').pluck().all()).toEqual(['a']);
  read.close();
  next.close();
});

test('its length is the log’s, and it is open until it is closed, once', () => {
  log.commit(() => note('a')());
  expect(log.bytes()).toBe(statSync(path()).size);
  expect([log.bytes() > 0, log.hasFailed()]).toEqual([true, false]);
  const before = opened();
  log.close();
  log.close();
  expect(opened()).toBe(before - 1);
});

test('a failed sync without a code has failed, too', async () => {
  const write = commit(note('a'));
  await nextSync();
  end(new Error('no reason'));
  await expect(write).rejects.toMatchObject({ cause: { code: 'unknown' } });
  expect(log.hasFailed()).toBe(true);
});

test('without waiting writes, no transaction follows a sync', async () => {
  let commits = 0;
  const counting: LogSync = {
    ...log,
    commit(transaction) {
      commits += 1;
      log.commit(transaction);
    },
  };
  const counted = createGroupCommit(db, counting);
  const writes = [counted(note('a')), counted(note('b'))];
  await nextSync();
  end();
  await Promise.all(writes);
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  expect([commits, syncs.length]).toEqual([1, 0]);
});

test('a log is written again byte for byte, in parts, and nothing stays open', () => {
  log.commit(() => {
    db.exec('CREATE TABLE large (bytes BLOB) STRICT');
    db.prepare('INSERT INTO large VALUES (randomblob(?))').run(2.5 * 2 ** 20);
  });
  const [bytes, before] = [readFileSync(path()), opened()];
  age();
  rewriteLog(db);
  expect(isRewritten()).toBe(true);
  expect([readFileSync(path()).equals(bytes), opened()]).toEqual([true, before]);
  expect(db.inTransaction).toBe(false);
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
});

test('a file without a log has nothing to write again', () => {
  const alone = new Database(join(folder, 'alone.db'));
  rewriteLog(alone);
  expect(alone.inTransaction).toBe(false);
  alone.close();
});

test('a ledger that is opened writes again what an earlier process left in its log', () => {
  log.commit(() => note('a')());
  age();
  openLedgerDatabase(db.name).close();
  expect(isRewritten()).toBe(true);
});

test.each([true, false])('a connection whose sync has failed (%s) is closed, its log written again', async (fails) => {
  // The log stays while another connection reads.
  names();
  let failure: Error | null = null;
  const { commit: shared } = groupOf(db, (_file, done) => done(failure));
  await shared(note('a'));
  if (fails) failure = Object.assign(new Error('EIO'), { code: 'EIO' });
  const write = shared(note('b'));
  if (fails) {
    await expect(write).rejects.toMatchObject({ code: 'ledger_unavailable' });
    expect(await syncFailureOf(db)).toMatchObject({ code: 'EIO' });
  } else expect(await Promise.race([syncFailureOf(db), write])).toBe(1);
  age();
  await closeAfterWrites(db);
  expect([db.open, isRewritten()]).toEqual([false, fails]);
});

test('a connection that waits for no disk never reports a failed sync', async () => {
  const memory = openLedgerDatabase(':memory:');
  expect(await Promise.race([syncFailureOf(memory), Promise.resolve('none')])).toBe('none');
});
