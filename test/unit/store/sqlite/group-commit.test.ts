import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Sqlite } from '../../../../src/lib/sqlite-file.ts';
import { createGroupCommit, type GroupCommit, groupOf } from '../../../../src/store/db/group-commit.ts';

let folder: string;
let db: Sqlite;
let other: Sqlite;
let commit: GroupCommit;
let statements: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'group-commit-'));
  const file = join(folder, 'a.db');
  statements = [];
  db = new Database(file, { timeout: 0, verbose: (text) => statements.push(String(text)) });
  db.pragma('journal_mode = WAL');
  db.exec('CREATE TABLE notes (name TEXT PRIMARY KEY, body BLOB) STRICT');
  other = new Database(file);
  commit = createGroupCommit(db);
  statements = [];
});
afterEach(() => {
  db.close();
  other.close();
  rmSync(folder, { recursive: true });
});

const note = (name: string, body: Buffer | null = null) => {
  return () => db.prepare('INSERT INTO notes (name, body) VALUES (?, ?)').run(name, body).changes;
};
const names = (): unknown[] => other.prepare('SELECT name FROM notes ORDER BY rowid').pluck().all();
const ran = (text: string): number => statements.filter((statement) => statement === text).length;
const ends = async (writes: readonly Promise<unknown>[]): Promise<string[]> =>
  (await Promise.allSettled(writes)).map((end) =>
    end.status === 'fulfilled'
      ? String(end.value)
      : String(end.reason.cause?.code ?? end.reason.code ?? end.reason.message),
  );

describe('sharing', () => {
  test('writes of one turn share one immediate transaction and run in the order of their arrival', async () => {
    await Promise.all(['c', 'a', 'b'].map((name) => commit(note(name))));
    expect(names()).toEqual(['c', 'a', 'b']);
    expect([ran('BEGIN IMMEDIATE'), ran('COMMIT')]).toEqual([1, 1]);
  });

  test('consecutive writes do not share a transaction', async () => {
    for (const name of ['a', 'b', 'c']) await commit(note(name));
    expect([ran('BEGIN IMMEDIATE'), ran('COMMIT')]).toEqual([3, 3]);
  });

  test('a burst larger than one batch is done in several batches, completely', async () => {
    const results = await Promise.all(Array.from({ length: 1000 }, (_, at) => commit(note(`n${at}`))));
    expect(results).toEqual(Array.from({ length: 1000 }, () => 1));
    expect(names()).toEqual(Array.from({ length: 1000 }, (_, at) => `n${at}`));
    expect(ran('COMMIT')).toBe(4);
  });

  test('a write that comes while results are delivered is in the next batch, and is not lost', async () => {
    const first = commit(note('a')).then(() => commit(note('b')));
    await Promise.all([first, commit(note('c'))]);
    expect(names()).toEqual(['a', 'c', 'b']);
  });
});

describe('a write that can wait', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());
  /** Several turns of the event loop, in which a write that cannot wait would have been made. */
  async function turns(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  }

  test('is made in the transaction of the next write that cannot wait, in the order of their arrival', async () => {
    const late = commit(note('late'), 'canWait');
    await turns();
    expect([names(), ran('BEGIN IMMEDIATE')]).toEqual([[], 0]);
    await commit(note('now'));
    expect([await late, names()]).toEqual([1, ['late', 'now']]);
    expect(ran('COMMIT')).toBe(1);
  });

  test('is made after 100 ms without another write, with all others that can wait, and the next one waits again', async () => {
    const both = Promise.all(['a', 'b'].map((name) => commit(note(name), 'canWait')));
    vi.advanceTimersByTime(99);
    await turns();
    expect(names()).toEqual([]);
    vi.advanceTimersByTime(1);
    await both;
    expect([names(), ran('COMMIT')]).toEqual([['a', 'b'], 1]);
    const next = commit(note('c'), 'canWait');
    await turns();
    expect(ran('COMMIT')).toBe(1);
    vi.advanceTimersByTime(100);
    await next;
    expect([names(), ran('COMMIT')]).toEqual([['a', 'b', 'c'], 2]);
  });

  test('rejects alone when it fails, and the write whose transaction it joined is made', async () => {
    await commit(note('a'));
    const writes = [commit(note('a'), 'canWait'), commit(note('b'))];
    expect(await ends(writes)).toEqual(['SQLITE_CONSTRAINT_PRIMARYKEY', '1']);
    expect(names()).toEqual(['a', 'b']);
  });
});

describe('sharing between stores', () => {
  test('writes of several stores on one connection share a transaction; another connection has its own', async () => {
    const commits = [groupOf(db).commit, groupOf(db).commit];
    await Promise.all(commits.map((share, at) => share(note(`n${at}`))));
    expect([names(), ran('COMMIT')]).toEqual([['n0', 'n1'], 1]);
    expect(groupOf(other).commit).not.toBe(commits[0]);
  });
});

describe('durability', () => {
  test('no write resolves before another connection can read it', async () => {
    let reported = false;
    const write = commit(note('a')).then(() => {
      reported = true;
    });
    await Promise.resolve();
    expect([names(), reported]).toEqual([[], false]);
    await write;
    expect([names(), reported]).toEqual([['a'], true]);
  });
});

describe('failing', () => {
  test('only a write that violates a constraint or throws is rolled back and rejects', async () => {
    const throwing = () => {
      note('half')();
      throw new Error('a bug');
    };
    const all = [commit(note('a')), commit(note('a')), commit(throwing), commit(note('b'))];
    expect(await ends(all)).toEqual(['1', 'SQLITE_CONSTRAINT_PRIMARYKEY', 'a bug', '1']);
    expect(names()).toEqual(['a', 'b']);
  });

  test('savepoints are set only where a write has failed, and what ran before it runs again from the start', async () => {
    await Promise.all([commit(note('a')), commit(note('b'))]);
    expect(statements.filter((text) => text.startsWith('SAVEPOINT'))).toEqual([]);
    let runs = 0;
    const counted = () => {
      runs++;
      return note('c')();
    };
    expect(await ends([commit(counted), commit(note('a'))])).toEqual(['1', 'SQLITE_CONSTRAINT_PRIMARYKEY']);
    expect([names(), runs]).toEqual([['a', 'b', 'c'], 2]);
  });

  test('a write that returns a promise is a bug and the only one to reject, because a transaction is synchronous', async () => {
    const all = [commit(async () => note('late')()), commit(note('a'))];
    expect(await ends(all)).toEqual(['Transaction function cannot return a promise', '1']);
    expect(names()).toEqual(['a']);
  });

  test('any other error of the database rejects the whole batch, because the transaction failed half way', async () => {
    const overflow = () => db.prepare('SELECT abs(-9223372036854775807 - 1)').get();
    const all = [commit(note('a')), commit(overflow), commit(note('b'))];
    expect(await ends(all)).toEqual(['SQLITE_ERROR', 'SQLITE_ERROR', 'SQLITE_ERROR']);
    expect([names(), db.inTransaction]).toEqual([[], false]);
  });

  test('a locked database refuses the whole batch, and takes the next when it is free', async () => {
    other.exec('BEGIN IMMEDIATE');
    expect(await ends([commit(note('a')), commit(note('b'))])).toEqual(['SQLITE_BUSY', 'SQLITE_BUSY']);
    other.exec('COMMIT');
    expect(names()).toEqual([]);
    expect(await ends([commit(note('a'))])).toEqual(['1']);
  });

  test('a full disk refuses the whole batch, those that would have fitted too, and takes the next when there is room', async () => {
    const pages = Number(db.pragma('page_count', { simple: true }));
    db.pragma(`max_page_count = ${pages + 1}`);
    const big = Buffer.alloc(40_000);
    const all = [commit(note('small')), commit(note('big', big)), commit(note('after'))];
    expect(await ends(all)).toEqual(['SQLITE_FULL', 'SQLITE_FULL', 'SQLITE_FULL']);
    expect([names(), db.inTransaction]).toEqual([[], false]);
    db.pragma(`max_page_count = ${pages + 100}`);
    expect(await ends([commit(note('small')), commit(note('big', big))])).toEqual(['1', '1']);
    expect(names()).toEqual(['small', 'big']);
  });

  test('a closed database refuses every write', async () => {
    const writes = [commit(note('a')), commit(note('b'))];
    db.close();
    const closed = 'The database connection is not open';
    expect(await ends(writes)).toEqual([closed, closed]);
    expect(await ends([commit(note('c'))])).toEqual([closed]);
    expect(names()).toEqual([]);
  });
});

test('a write that the disk refuses is not tried again, and one that can wait leaves no transaction behind', async () => {
  let runs = 0;
  const full = commit(() => {
    runs += 1;
    throw new Database.SqliteError('database or disk is full', 'SQLITE_FULL');
  });
  await expect(full).rejects.toMatchObject({ code: 'ledger_unavailable' });
  expect(runs).toBe(1);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    await Promise.all([commit(note('late'), 'canWait'), commit(note('now'))]);
    statements = [];
    await vi.advanceTimersByTimeAsync(1000);
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    expect(statements).toEqual([]);
  } finally {
    vi.useRealTimers();
  }
});
