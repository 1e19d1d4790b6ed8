import { beforeEach, describe, expect, test } from 'vitest';
import {
  type AccountReads,
  createAccountReads,
  createAccountWrites,
  createDeployReads,
} from '../../../../src/collector/store/accounts.ts';
import { createChainFacts } from '../../../../src/collector/store/facts.ts';
import type { BlockRow } from '../../../../src/collector/store/rows.ts';
import { type ChainWrites, createChainWrites } from '../../../../src/collector/store/writes.ts';
import type { Sqlite } from '../../../../src/lib/sqlite-file.ts';
import { account, emptyChainDatabase, hash, putBlocks, putCoverage, toHex } from '../../../support/chain/chain-rows.ts';

const HOUR = 3600;
const START = 1_795_003_200;
/** One block a minute: 60 an hour, the first of each at its beginning. */
const at = (block: number) => START + block * 60;
const place = (block: number) => ({ block, at: at(block) });
const TOKEN = account(0xe0);
const [ALICE, BOB, CAROL] = [1, 2, 3].map(account) as [Buffer, Buffer, Buffer];
const saw = (block: number, who: Buffer) => ({ block, at: at(block), account: who });
const moved = (block: number, who: Buffer, token = TOKEN) => ({ ...saw(block, who), token });
const row = (number: number): BlockRow => ({
  number,
  at: at(number),
  hash: hash(number),
  parentHash: hash(number - 1),
  baseFee: 1n,
  nextBaseFee: null,
  utilisation: 0,
  gasLimit: 1n,
  transactions: 1,
  deploys: 0,
  nativeTransfers: 1,
  tokenTransfers: 0,
  contractCalls: 0,
});
const blocks = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, offset) => row(from + offset));
const logs = (tokenAccounts: readonly ReturnType<typeof moved>[]) => () => ({
  trades: [],
  tokenEvents: [],
  pools: [],
  tokenAccounts,
});

let db: Sqlite;
let writes: ChainWrites;
let reads: AccountReads;
beforeEach(() => {
  db = emptyChainDatabase();
  writes = createChainWrites(db);
  reads = createAccountReads(db);
});
const activity = (who: Buffer) => reads.activityOf(toHex(who));
const ends = (who: Buffer) => [activity(who)?.first?.block ?? null, activity(who)?.last?.block ?? null];
const store = (from: number, to: number, accounts: readonly ReturnType<typeof saw>[]) =>
  writes.storeBlocks({ blocks: blocks(from, to), deploys: [], accounts, scan: null });

describe('accounts of transactions', () => {
  test('nothing is known before a block was searched, and nothing of blocks that an earlier version stored', () => {
    expect(activity(ALICE)).toBeNull();
    writes.storeBlocks({ blocks: blocks(1, 5), deploys: [], scan: null });
    expect(activity(ALICE)).toBeNull();
    store(6, 6, [saw(6, BOB)]);
    expect(activity(ALICE)).toEqual({ since: place(6), until: place(6), first: null, last: null, complete: true });
  });

  test('first and last are found over hours, in whatever order and however often blocks are stored', () => {
    for (let times = 0; times < 2; times += 1) {
      store(100, 130, [saw(125, ALICE), saw(103, ALICE), saw(110, BOB)]);
      store(1, 99, [saw(7, ALICE)]);
      store(131, 190, [saw(183, ALICE), saw(140, ALICE)]);
    }
    expect(activity(ALICE)).toEqual({
      since: place(1),
      until: place(190),
      first: place(7),
      last: place(183),
      complete: true,
    });
    expect([ends(BOB), ends(CAROL)]).toEqual([
      [110, 110],
      [null, null],
    ]);
    // Hours 0 to 3, with Alice in each, and Bob in one.
    expect(db.prepare('SELECT count(*) FROM account_hours').pluck().get()).toBe(5);
  });

  test('only the newest unbroken span counts', () => {
    store(1, 60, [saw(10, ALICE)]);
    store(190, 200, [saw(195, ALICE)]);
    expect(activity(ALICE)).toMatchObject({ since: place(190), first: place(195), last: place(195) });
  });

  test('a replaced block takes its accounts along, and an account keeps a block in which it was seen', () => {
    store(1, 30, [saw(5, ALICE), saw(20, ALICE), saw(20, BOB), saw(25, CAROL), saw(12, CAROL)]);
    writes.storeBlocks({
      blocks: blocks(20, 21),
      deploys: [],
      accounts: [saw(21, BOB)],
      scan: null,
      replaceFrom: 20,
    });
    expect([ends(ALICE), ends(BOB), ends(CAROL)]).toEqual([
      [5, 5],
      [21, 21],
      [12, 12],
    ]);
    writes.drop({ from: 1, to: 12 });
    expect(createChainFacts(db).coverage('accounts')).toEqual([{ from: 13, to: 21 }]);
    expect([ends(ALICE), ends(CAROL)]).toEqual([
      [null, null],
      [null, null],
    ]);
  });

  test('a rolled-up hour loses its accounts', () => {
    store(1, 130, [saw(3, ALICE), saw(70, ALICE), saw(4, BOB)]);
    expect(writes.rollUpHour(START + HOUR)).toBe(true);
    expect(activity(ALICE)).toMatchObject({ since: place(60), first: place(70), complete: true });
    expect(ends(BOB)).toEqual([null, null]);
  });

  test('a full hour keeps the accounts that it has, and says that it has not all', () => {
    const few = createAccountWrites(db, { perHour: 2, perToken: 9 });
    putBlocks(
      db,
      [1, 2, 3, 61].map((number) => ({ number, at: at(number) })),
    );
    putCoverage(db, 'accounts', [[1, 61]]);
    few.storeHours([saw(1, ALICE), saw(1, BOB)]);
    expect(activity(ALICE)?.complete).toBe(true);
    few.storeHours([saw(2, CAROL), saw(3, ALICE), saw(3, CAROL)]);
    few.storeHours([saw(61, CAROL)]);
    expect(activity(CAROL)).toMatchObject({ first: place(61), last: place(61), complete: false });
    expect(ends(ALICE)).toEqual([1, 3]);
    // The hour's two accounts, the row that says that there were more, and the next hour's account.
    expect(db.prepare('SELECT count(*) FROM account_hours').pluck().get()).toBe(4);
    few.prune(START + HOUR);
    expect(activity(CAROL)?.complete).toBe(true);
  });
});

describe('accounts of tokens', () => {
  const kept = () => reads.accountsOfToken(toHex(TOKEN));

  test('each account of a token counts once, with the newest transfer that moved it', () => {
    expect(kept()).toBeNull();
    putBlocks(
      db,
      [1, 100].map((number) => ({ number, at: at(number) })),
    );
    for (let times = 0; times < 2; times += 1) {
      writes.storeLogs(
        { from: 50, to: 100 },
        logs([moved(60, ALICE), moved(70, BOB), moved(60, CAROL, account(0xe1))]),
      );
      writes.storeLogs({ from: 1, to: 49 }, logs([moved(2, ALICE)]));
    }
    expect(kept()).toEqual({ since: place(1), until: place(100), accounts: 2, complete: true });
    expect(reads.lastMoved(toHex(TOKEN), toHex(ALICE))).toEqual(place(60));
    expect(reads.lastMoved(toHex(TOKEN), toHex(CAROL))).toBeNull();
  });

  test('replaced blocks and rolled-up hours take the accounts along that were last seen in them', () => {
    writes.storeBlocks({
      blocks: blocks(1, 130),
      deploys: [],
      scan: logs([moved(1, ALICE), moved(80, BOB), moved(120, CAROL)]),
    });
    writes.drop({ from: 100, to: 130 });
    expect(kept()).toMatchObject({ accounts: 2, until: place(99) });
    writes.rollUpHour(START + HOUR);
    expect(kept()).toMatchObject({ accounts: 1, since: place(60) });
    expect(reads.lastMoved(toHex(TOKEN), toHex(BOB))).toEqual(place(80));
  });

  test('a token with too many accounts keeps those that it has, and another token has its own', () => {
    const few = createAccountWrites(db, { perHour: 9, perToken: 1 });
    putBlocks(db, [{ number: 1, at: at(1) }]);
    putCoverage(db, 'logs', [[1, 1]]);
    few.storeTokens([moved(1, ALICE), moved(1, ALICE)]);
    expect(kept()).toMatchObject({ accounts: 1, complete: true });
    few.storeTokens([moved(2, BOB), moved(2, ALICE), moved(2, BOB, account(0xe1))]);
    expect(kept()).toMatchObject({ accounts: 1, complete: false });
    expect(reads.lastMoved(toHex(TOKEN), toHex(ALICE))).toEqual(place(2));
    expect(reads.accountsOfToken(toHex(account(0xe1)))).toMatchObject({ accounts: 1, complete: true });
  });

  test('another chain’s accounts go with everything else', () => {
    writes.storeBlocks({
      blocks: blocks(1, 2),
      deploys: [],
      accounts: [saw(1, ALICE)],
      scan: logs([moved(1, ALICE)]),
    });
    writes.reset();
    expect([activity(ALICE), kept()]).toEqual([null, null]);
    expect(reads.lastMoved(toHex(TOKEN), toHex(ALICE))).toBeNull();
  });
});

test('a contract’s creation is found by its address, the newest where there are two, with the label that its code got', () => {
  const deploy = (block: number) => ({
    block,
    at: at(block),
    address: ALICE,
    deployer: account(block),
    transactionHash: hash(block),
  });
  const { creationOf } = createDeployReads(db);
  writes.storeBlocks({ blocks: blocks(1, 9), deploys: [deploy(4), deploy(8)], scan: null });
  const created = { deployer: toHex(account(8)), transaction: toHex(hash(8)), ...place(8) };
  expect(creationOf(toHex(ALICE))).toEqual({ ...created, label: null });
  const found = { codeBytes: 2, codeHash: hash(1), label: 'token "A"', kinds: 1, lookAt: null };
  writes.storeCode([{ block: 8, transactionHash: hash(8), ...found }]);
  expect(creationOf(toHex(ALICE))).toEqual({ ...created, label: 'token "A"' });
  expect(creationOf(toHex(BOB))).toBeNull();
});
