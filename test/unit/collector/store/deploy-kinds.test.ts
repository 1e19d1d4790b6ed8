import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { readMigrations } from '../../../../src/lib/sqlite-file.ts';
import { account, emptyChainDatabase, hash, SCHEMA } from '../../../support/chain/chain-rows.ts';

const AT = `0x${'ab'.repeat(20)}`;

test.each([
  ['token "TRFC"', 1],
  ['token "TRFC", same code as 0x01', 1],
  [`proxy to ${AT}`, 2],
  [`proxy to ${AT} (USDC implementation), token "A"`, 3],
  [`minimal proxy to ${AT}, token "A"`, 3],
  [`minimal proxy to ${AT}`, 2],
  [`token "A, proxy to ${AT}"`, 1],
  [`same code as ${AT}`, 0],
  ['Multicall3', 0],
  [null, 0],
])('a stored label %j becomes kind %j, and is looked at again unless it is a token', (label, kinds) => {
  const db = new Database(':memory:');
  const migrations = readMigrations(SCHEMA);
  const upTo = (after: number, last: number) =>
    migrations.filter(({ version }) => version > after && version <= last).map(({ sql }) => db.exec(sql));
  upTo(0, 3);
  const insert = db.prepare('INSERT INTO deploys VALUES (1, 70, ?, ?, ?, ?, ?, ?)');
  insert.run(account(1), account(2), hash(1), 9, hash(3), label);
  insert.run(account(4), account(2), hash(2), 0, null, null);
  insert.run(account(5), account(2), hash(3), null, null, null);
  upTo(3, 5);
  const isToken = kinds === 1 || kinds === 3;
  expect(db.prepare('SELECT label, kinds, look_at FROM deploys ORDER BY transaction_hash').raw().all()).toEqual([
    [label, kinds, isToken ? null : 70],
    // A contract without code has nothing to look at, and one whose code was not read yet comes anyway.
    [null, 0, null],
    [null, null, null],
  ]);
});

test('the columns are the same in a new database', () => {
  const columns = emptyChainDatabase().prepare("SELECT name FROM pragma_table_info('deploys')").pluck().all();
  expect(columns.slice(-2)).toEqual(['kinds', 'look_at']);
});
