import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { backUpDatabase } from '../../../../src/store/backup.ts';
import { openFiles } from '../../../support/open-files.ts';

let folder: string;
let source: string;
let target: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'backup-'));
  source = join(folder, 'source.db');
  target = join(folder, 'copies', 'copy.db');
});
afterEach(() => {
  expect(openFiles().filter((path) => path.startsWith(folder))).toEqual([]);
  rmSync(folder, { recursive: true });
});

/** A database of about 4 MiB, so that it is copied in several steps, and a writer that adds to both tables in one transaction. */
function fill() {
  const db = new Database(source);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = OFF');
  db.exec('CREATE TABLE bodies (id INTEGER PRIMARY KEY, body BLOB); CREATE TABLE ids (id INTEGER PRIMARY KEY);');
  const addBody = db.prepare('INSERT INTO bodies (body) VALUES (zeroblob(4000))');
  const addId = db.prepare('INSERT INTO ids DEFAULT VALUES');
  const add = db.transaction((rows: number) => {
    for (let row = 0; row < rows; row++) {
      addBody.run();
      addId.run();
    }
  });
  add(1000);
  return { add, close: () => db.close() };
}

const countsIn = (file: string): unknown => {
  const db = new Database(file, { readonly: true });
  try {
    return db.prepare('SELECT (SELECT count(*) FROM bodies) AS bodies, (SELECT count(*) FROM ids) AS ids').get();
  } finally {
    db.close();
  }
};

test('a copy made during continuous commits ends, and shows the one instant at which it began', async () => {
  const writer = fill();
  let commits = 0;
  let steps = 0;
  const rows = await backUpDatabase(source, target, () => {
    // Far more than the copy has steps: it would start over with each commit.
    if (++steps > 200) throw new Error('the copy starts over and over');
    writer.add(1);
    commits++;
  });
  writer.close();
  expect(commits).toBeGreaterThan(2);
  expect(rows).toEqual({ bodies: 1000, ids: 1000 });
  expect(countsIn(target)).toEqual({ bodies: 1000, ids: 1000 });
  expect(countsIn(source)).toEqual({ bodies: 1000 + commits, ids: 1000 + commits });
});

test('a copy is one file that its owner alone may read', async () => {
  fill().close();
  await backUpDatabase(source, target);
  expect(statSync(target).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(folder, 'copies'))).toEqual(['copy.db']);
});

test('an existing file is neither overwritten nor deleted', async () => {
  fill().close();
  await backUpDatabase(source, target);
  const first = readFileSync(target);
  await expect(backUpDatabase(source, target)).rejects.toThrow('is not overwritten');
  expect(readFileSync(target).equals(first)).toBe(true);
  expect(readdirSync(join(folder, 'copies'))).toEqual(['copy.db']);
});

test('a copy that another process is making under the same name is left alone', async () => {
  fill().close();
  await backUpDatabase(source, join(folder, 'copies', 'first.db'));
  writeFileSync(`${target}.part`, 'theirs');
  await expect(backUpDatabase(source, target)).rejects.toThrow('EEXIST');
  expect(readFileSync(`${target}.part`, 'utf8')).toBe('theirs');
  expect(existsSync(target)).toBe(false);
});

test('a damaged source gives no copy', async () => {
  const writer = fill();
  writer.close();
  const bytes = readFileSync(source);
  bytes.fill(0xff, Math.floor(bytes.length / 2 / 4096) * 4096, Math.floor(bytes.length / 2 / 4096) * 4096 + 4096);
  writeFileSync(source, bytes);
  await expect(backUpDatabase(source, target)).rejects.toThrow();
  expect(readdirSync(join(folder, 'copies'))).toEqual([]);
});

test('a row without its parent gives no copy', async () => {
  const db = new Database(source);
  db.pragma('foreign_keys = OFF');
  db.exec(`CREATE TABLE parents (id INTEGER PRIMARY KEY);
           CREATE TABLE children (parent INTEGER REFERENCES parents (id));
           INSERT INTO children VALUES (7);`);
  db.close();
  await expect(backUpDatabase(source, target)).rejects.toThrow('without their parents');
  expect(readdirSync(join(folder, 'copies'))).toEqual([]);
});

test('a missing source is not created', async () => {
  await expect(backUpDatabase(source, target)).rejects.toThrow();
  expect(readdirSync(folder)).toEqual([]);
});

test('tells how many pages are copied', async () => {
  fill().close();
  const said: [number, number][] = [];
  await backUpDatabase(source, target, (copied, total) => void said.push([copied, total]));
  expect(said.length).toBeGreaterThan(2);
  for (const [at, [copied, total]] of said.entries()) {
    expect(copied).toBeGreaterThan(said[at - 1]?.[0] ?? -1);
    expect(copied).toBeLessThanOrEqual(total);
  }
});

test('a source that reads well and breaks its own rules gives no copy', async () => {
  const db = new Database(source);
  db.exec('CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES (NULL);');
  db.unsafeMode();
  db.pragma('writable_schema = ON');
  db.exec("UPDATE sqlite_schema SET sql = 'CREATE TABLE notes (text TEXT NOT NULL)' WHERE name = 'notes'");
  db.close();
  await expect(backUpDatabase(source, target)).rejects.toThrow(
    'the copy is damaged, and so may be its source: NULL value in notes.text',
  );
  expect(readdirSync(join(folder, 'copies'))).toEqual([]);
});

test('what an earlier draft left beside it goes with the draft', async () => {
  fill().close();
  mkdirSync(join(folder, 'copies'));
  for (const suffix of ['-journal', '-wal', '-shm']) writeFileSync(`${target}.part${suffix}`, '');
  await backUpDatabase(source, target);
  expect(readdirSync(join(folder, 'copies'))).toEqual(['copy.db']);
});
