import { encodeAbiParameters } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import type { CollectorContext } from '../../../src/collector/context.ts';
import { createDescribeCode, nextLook, readLateLabels, readPendingCode } from '../../../src/collector/labels.ts';
import { createDeployReads } from '../../../src/collector/store/accounts.ts';
import { createChainLookups } from '../../../src/collector/store/facts.ts';
import { createChainWrites } from '../../../src/collector/store/writes.ts';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import { account, emptyChainDatabase, hash, putBlocks, toHex } from '../../support/chain/chain-rows.ts';
import { openClient } from '../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';

const CREATED = 1000;
const PLAIN = '0x6001';
const CLONE = `0x363d3d373d3d3d363d73${'99'.repeat(20)}5af43d82803e903d91602b57fd5bf3`;
const symbol = encodeAbiParameters([{ type: 'string' }], ['LATE']);

let node: RpcServer;
let chain: OpenChainClient;
let db: Sqlite;
let context: CollectorContext;
/** Contracts that answer `symbol()` by now. */
let named: Set<string>;
beforeEach(async () => {
  named = new Set();
  node = await startRpcServer({
    eth_getCode: ([address]) => (address === toHex(account(2)) ? CLONE : PLAIN),
    eth_getStorageAt: () => `0x${'0'.repeat(64)}`,
    eth_call: ([call]) => {
      if (!named.has((call as { to: string }).to)) throw new RpcFault(3, 'execution reverted');
      return symbol;
    },
  });
  chain = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 30_000 });
  db = emptyChainDatabase();
  putBlocks(db, [{ number: 10, at: CREATED }]);
  for (const value of [1, 2]) {
    db.prepare('INSERT INTO deploys (block, at, address, deployer, transaction_hash) VALUES (10, ?, ?, ?, ?)').run(
      ...[CREATED, account(value), account(9), hash(value)],
    );
  }
  context = {
    chain,
    lookups: createChainLookups(db),
    writes: createChainWrites(db),
    describeCode: createDescribeCode(createDeployReads(db)),
    signal: new AbortController().signal,
    state: { codeIsPending: true, next: 11 },
  } as unknown as CollectorContext;
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});

const stored = () => db.prepare('SELECT label, kinds, look_at FROM deploys ORDER BY transaction_hash').raw().all();
/** A newer block, so that the chain's time goes on. */
const advance = (at: number) => putBlocks(db, [{ number: 10 + at, at }]);
const requests = () => node.bodies.length;

test('a symbol that is set after the creation is filled in at the next look, and the contract is then left alone', async () => {
  await readPendingCode(context);
  const clone = `minimal proxy to 0x${'99'.repeat(20)}`;
  expect(stored()).toEqual([
    [null, 0, CREATED + 60],
    [clone, 2, CREATED + 60],
  ]);
  named.add(toHex(account(1)));
  const before = requests();
  advance(CREATED + 59);
  expect(await readLateLabels(context)).toBe(false);
  expect(requests()).toBe(before);
  advance(CREATED + 60);
  expect(await readLateLabels(context)).toBe(true);
  expect(stored()).toEqual([
    ['token "LATE"', 1, null],
    [clone, 2, CREATED + 900],
  ]);
  // One batch for the clone's code, one for slots and symbols.
  expect(requests()).toBe(before + 2);
  expect(await readLateLabels(context)).toBe(false);
});

test('a clone that is set up late keeps its target', async () => {
  await readPendingCode(context);
  named.add(toHex(account(2)));
  advance(CREATED + 100);
  await readLateLabels(context);
  expect(stored()[1]).toEqual([`minimal proxy to 0x${'99'.repeat(20)}, token "LATE"`, 3, null]);
});

test('after a failure the same contracts are due again', async () => {
  await readPendingCode(context);
  advance(CREATED + 60);
  const before = stored();
  node.fault = '500';
  await expect(readLateLabels(context)).rejects.toThrow('no provider answered');
  expect(stored()).toEqual(before);
});

describe('the next look', () => {
  test.each([
    ['a minute after the creation', 0, CREATED + 5, CREATED + 60],
    ['a quarter of an hour after it', 2, CREATED + 60, CREATED + 900],
    ['six hours after it', 0, CREATED + 900, CREATED + 21_600],
    ['never for one that was found late, after all of them', 0, CREATED + 21_600, null],
    ['never for a token', 1, CREATED + 5, null],
    ['never for a token behind a proxy', 3, CREATED + 5, null],
    ['never when nobody looks', null, CREATED + 5, null],
  ])('is %s', (_when, kinds, now, expected) => {
    expect(nextLook(CREATED, kinds, now)).toBe(expected);
  });
});
