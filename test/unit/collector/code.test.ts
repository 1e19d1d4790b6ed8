import { afterEach, expect, test } from 'vitest';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import type { CollectorContext } from '../../../src/collector/context.ts';
import { readPendingCode } from '../../../src/collector/labels.ts';
import { createChainLookups } from '../../../src/collector/store/facts.ts';
import { createChainWrites } from '../../../src/collector/store/writes.ts';
import { account, emptyChainDatabase, hash, putBlocks } from '../../support/chain/chain-rows.ts';
import { openClient } from '../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';

/** The block of the contract. */
const CREATED = 10;

const open: (RpcServer | OpenChainClient)[] = [];
afterEach(async () => {
  for (const part of open.splice(0)) await ('close' in part ? part.close() : part.stop());
});

/** A node that has the blocks up to `state.head`. */
async function nodeAt(head: number) {
  const state = { head };
  const server = await startRpcServer({
    eth_getCode: ([, block]) => {
      const asked = block === 'latest' ? state.head : Number(block);
      if (asked > state.head) throw new RpcFault(-32000, 'header not found');
      return asked < CREATED ? '0x' : '0x6001';
    },
  });
  open.push(server);
  return { state, url: server.url };
}

/** A collector that has read the contract's block, and waits for its code. */
function collectorOver(urls: string[]) {
  const chain = openClient({ rpcUrls: urls, chainId: 5042, timeoutMs: 30_000 });
  open.unshift(chain);
  const db = emptyChainDatabase();
  putBlocks(db, [{ number: CREATED, at: 1000 }]);
  db.prepare('INSERT INTO deploys (block, at, address, deployer, transaction_hash) VALUES (?, 1000, ?, ?, ?)').run(
    ...[CREATED, account(1), account(9), hash(1)],
  );
  const context = {
    chain,
    lookups: createChainLookups(db),
    writes: createChainWrites(db),
    describeCode: null,
    state: { codeIsPending: true, next: CREATED + 1, refused: new Map() },
  } as unknown as CollectorContext;
  return { context, codeBytes: () => db.prepare('SELECT code_bytes FROM deploys').pluck().get() };
}

test('a node without the contract’s block is not believed that the contract has no code; the next one is asked', async () => {
  const [late, good] = [await nodeAt(CREATED - 1), await nodeAt(CREATED)];
  const { context, codeBytes } = collectorOver([late.url, good.url]);
  await readPendingCode(context);
  expect(codeBytes()).toBe(2);
});

test('while no node has the contract’s block, its code stays pending, and is read later', async () => {
  const late = await nodeAt(CREATED - 1);
  const { context, codeBytes } = collectorOver([late.url]);
  await expect(readPendingCode(context)).rejects.toThrow('no provider answered');
  expect(codeBytes()).toBeNull();
  expect(context.state.codeIsPending).toBe(true);
  late.state.head = CREATED;
  await readPendingCode(context);
  expect(codeBytes()).toBe(2);
  expect(context.state.codeIsPending).toBe(false);
});
