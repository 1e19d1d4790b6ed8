import { afterEach, describe, expect, test, vi } from 'vitest';
import type { OpenChainClient } from '../../../../src/chain/rpc/client.ts';
import { openClient } from '../../../support/chain/client.ts';
import { type RpcServer, startRpcServer } from '../../../support/chain/rpc-server.ts';
import { createManualClock, type ManualClock } from '../../../support/manual-clock.ts';

// The head that two providers have reached, and whether two are there to confirm a payment.

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const HOUR_AHEAD = 1000 + 7200;
const NOW_MS = 1_800_000_000_000;

interface World {
  readonly chain: OpenChainClient;
  readonly nodes: readonly RpcServer[];
  readonly clock: ManualClock;
  readonly warnings: string[];
  /** The heads, which a test may change. */
  readonly heads: number[];
}

async function world(...heads: number[]): Promise<World> {
  const clock = createManualClock(NOW_MS);
  const nodes = await Promise.all(
    heads.map((_, at) =>
      startRpcServer({ eth_blockNumber: () => `0x${(heads[at] ?? 0).toString(16)}`, say: () => at }),
    ),
  );
  const warnings: string[] = [];
  const warn = (fields: object, message: string) => void warnings.push(`${message} ${JSON.stringify(fields)}`);
  const log = { info: () => {}, warn, error: warn };
  const rpcUrls = nodes.map(({ url }) => url);
  const chain = openClient({ rpcUrls, chainId: 5042, timeoutMs: 60_000, log, clock });
  closing.push(...nodes.map((node) => () => node.stop()), () => chain.close());
  return { chain, nodes, clock, warnings, heads };
}

describe('the agreed head', () => {
  test.each<[string, number[], number]>([
    ['the lower of two', [1000, 1003], 1000],
    ['the second highest of three', [1000, 1003, 1002], 1002],
    ['not moved by a head of 2^52', [2 ** 52, 1003, 1002], 1003],
    ['not moved by a head that is an hour ahead, in the last place', [1000, 1001, 1002, HOUR_AHEAD], 1002],
    ['not moved by a provider that is two minutes behind', [760, 1000, 1001], 1000],
  ])('is %s', async (_, heads, expected) => {
    const { chain } = await world(...heads);
    await chain.watch();
    expect(chain.agreed.lastHead()).toBe(expected);
    expect(await chain.agreed.head()).toBe(expected);
  });

  test.each([
    ['ahead', 2 ** 52],
    ['behind', 760],
  ])('holds a provider back that is far %s, says so once, and takes it back when it agrees', async (_, far) => {
    const { chain, nodes, warnings, heads } = await world(far, 1000, 1001);
    await chain.watch();
    expect(await chain.request('say', [])).toBe(1);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(`"provider":"${nodes[0]?.url}","head":${far},"agreed":100`);
    expect(chain.agreed.providers().map(({ isFar }) => isFar)).toEqual([true, false, false]);
    expect(chain.agreed.whyUnconfirmed()).toBeNull();
    await chain.agreed.head();
    expect(warnings).toHaveLength(1);
    heads[0] = 1002;
    await chain.agreed.head();
    expect(await chain.request('say', [])).toBe(0);
    expect(warnings).toHaveLength(2);
  });

  test('holds no provider back for a head that it said before the others said theirs', async () => {
    const { chain, nodes, clock, heads, warnings } = await world(1000, 1001, 1002);
    await chain.watch();
    heads.splice(0, 3, 1030, 1031, 1032);
    for (const node of nodes.slice(0, 1)) node.fault = '429';
    await clock.advance(4000);
    await chain.agreed.head();
    expect(chain.agreed.lastHead()).toBe(1031);
    expect([warnings, chain.agreed.providers().map(({ isFar }) => isFar)]).toEqual([[], [false, false, false]]);
  });

  test('is not taken back by one of two: without agreement nothing is read', async () => {
    const { chain, heads } = await world(1000, 1001);
    await chain.watch();
    heads[1] = 990;
    expect(await chain.agreed.head()).toBe(990);
    heads[1] = 750;
    await expect(chain.agreed.head()).rejects.toThrow('no two providers say how far the chain is');
    expect(chain.agreed.lastHead()).toBeNull();
    heads.splice(0, 2, 1010, 1009);
    expect(await chain.agreed.head()).toBe(1009);
  });

  test('needs two providers', async () => {
    const { chain, nodes } = await world(1000, 1001);
    for (const node of nodes.slice(0, 1)) node.fault = '500';
    await expect(chain.agreed.head()).rejects.toThrow('no two providers say how far the chain is');
  });

  test('of a lone provider is its newest block, unless its time is ahead of our clock', async () => {
    let timestamp = NOW_MS / 1000;
    const node = await startRpcServer({
      eth_getBlockByNumber: () => ({ number: '0x3e8', timestamp: `0x${timestamp.toString(16)}` }),
    });
    const clock = createManualClock(NOW_MS);
    const chain = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 60_000, clock });
    closing.push(
      () => node.stop(),
      () => chain.close(),
    );
    expect(await chain.agreed.head()).toBe(1000);
    timestamp += 901;
    await expect(chain.agreed.head()).rejects.toThrow('ahead of our clock');
  });
});

test('the head is read although cheap reads use up the providers’ allowance', async () => {
  const { chain, nodes, clock } = await world(1000, 1001, 1002);
  await chain.watch();
  // Each provider refuses once, so that its allowance is learned, and the rest of it is used up.
  for (const node of nodes) node.fault = '429';
  await chain.request('say', [], { rank: 'free' }).catch(() => {});
  for (const node of nodes) node.fault = null;
  for (const allowance of chain.allowances) while (allowance.free() >= 1) allowance.spend();
  await clock.advance(5001);
  for (const allowance of chain.allowances) while (allowance.free() >= 1) allowance.spend();
  await chain.agreed.head();
  expect(chain.agreed.lastHead()).toBe(1001);
});

describe('a sale over the chain begins', () => {
  test('only while two providers have answered within ten seconds', async () => {
    const { chain, nodes, clock } = await world(1000, 1000, 1000);
    expect(chain.agreed.whyUnconfirmed()).toBe('0 of 3 RPC providers can confirm a payment, 2 must');
    await chain.watch();
    expect(chain.agreed.whyUnconfirmed()).toBeNull();
    for (const node of nodes.slice(0, 2)) node.fault = '500';
    await clock.advance(10_000);
    await chain.agreed.head().catch(() => {});
    expect(chain.agreed.whyUnconfirmed()).toBeNull();
    await clock.advance(1);
    expect(chain.agreed.whyUnconfirmed()).toBe('1 of 3 RPC providers can confirm a payment, 2 must');
  });

  test('with two providers, not while one is far from the other', async () => {
    const { chain } = await world(1000, 760);
    await chain.watch();
    expect(chain.agreed.whyUnconfirmed()).toBe('1 of 2 RPC providers can confirm a payment, 2 must');
  });

  test('with two providers, not while one is set apart', async () => {
    const { chain, nodes } = await world(1000, 1000);
    await chain.watch();
    const said = { about: '0xaa', says: 'no' };
    chain.trust.setApart('question', { ...said, host: new URL(nodes[1]?.url ?? '').host }, { ...said, host: 'others' });
    expect(chain.agreed.whyUnconfirmed()).toBe('1 of 2 RPC providers can confirm a payment, 2 must');
  });
});

test('at rest each provider is asked for its head once in four seconds: 0.25 requests a second', async () => {
  const { chain, nodes, clock } = await world(1000, 1000, 1000);
  await chain.watch();
  const before = nodes.map(({ bodies }) => bodies.length);
  for (let round = 1; round <= 15; round++) {
    await clock.advance(3999);
    expect(nodes.map(({ bodies }, at) => bodies.length - (before[at] ?? 0))).toEqual(nodes.map(() => round - 1));
    await clock.advance(1);
    await vi.waitFor(() => expect(clock.pendingSleeps()).toContain(4000));
    expect(nodes.map(({ bodies }, at) => bodies.length - (before[at] ?? 0))).toEqual(nodes.map(() => round));
  }
});
