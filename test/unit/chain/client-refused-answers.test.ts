import { afterEach, describe, expect, test } from 'vitest';
import { askChecked, Contradiction, resultOrRefusal } from '../../../src/chain/rpc/checked.ts';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { openClient } from '../../support/chain/client.ts';
import { type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';

const open: (RpcServer | OpenChainClient)[] = [];
afterEach(async () => {
  for (const part of open.splice(0)) await ('close' in part ? part.close() : part.stop());
});

async function server(methods: Parameters<typeof startRpcServer>[0] = {}): Promise<RpcServer> {
  const started = await startRpcServer(methods);
  open.unshift(started);
  return started;
}

const clock = { nowMs: () => 0, sleep: async () => undefined };
function client(nodes: readonly RpcServer[], genesisHash?: `0x${string}`): OpenChainClient {
  const rpcUrls = nodes.map(({ url }) => url);
  const created = openClient({ rpcUrls, chainId: 5042, timeoutMs: 60_000, clock, genesisHash });
  open.unshift(created);
  return created;
}

const CALLS = [
  { method: 'a', params: [] },
  { method: 'b', params: [] },
];
/** The two answers must be equal. */
const readEqual = (outcomes: Parameters<Parameters<typeof askChecked>[2]>[0]) => {
  const [a, b] = outcomes.map(resultOrRefusal);
  if (a !== b) throw new Contradiction('number', `${a} is not ${b}`);
  return a;
};

describe('answers that the caller checks', () => {
  test('after a contradictory answer the next provider is asked for the whole batch, and the first is held back', async () => {
    const lying = await server({ a: () => 1, b: () => 2 });
    const honest = await server({ a: () => 3, b: () => 3 });
    const chain = client([lying, honest]);
    const refused: string[] = [];
    expect(await askChecked(chain, CALLS, readEqual, (reason) => refused.push(reason))).toBe(3);
    expect(refused).toEqual(['number']);
    expect(await askChecked(chain, CALLS, readEqual)).toBe(3);
    expect([lying.count('a'), honest.count('a')]).toEqual([1, 2]);
  });

  test('when every provider is refused, none is held back, because the request may be the cause', async () => {
    const one = await server({ a: () => 1, b: () => 2 });
    const two = await server({ a: () => 1, b: () => 2 });
    const chain = client([one, two]);
    await expect(askChecked(chain, CALLS, readEqual)).rejects.toThrow(UpstreamFailed);
    expect(await chain.request('a', [])).toBe(1);
    expect([one.count('a'), two.count('a')]).toEqual([2, 1]);
  });

  test('an error that all providers agree on is checked by the caller too', async () => {
    const chain = client([await server({ a: () => 1 }), await server({ a: () => 1 })]);
    const read = (outcomes: Parameters<typeof readEqual>[0]) => outcomes.map((outcome) => 'error' in outcome);
    expect(await askChecked(chain, CALLS, read)).toEqual([false, true]);
  });

  test('an error of the reader that is not a Contradiction is rethrown', async () => {
    const chain = client([await server({ a: () => 1, b: () => 2 })]);
    const bug = () => {
      throw new TypeError('a bug');
    };
    await expect(askChecked(chain, CALLS, bug)).rejects.toThrow(TypeError);
  });

  test('every HTTP request is reported to the caller', async () => {
    const requests: string[] = [];
    const counted = { onRequest: () => void requests.push('one') };
    const chain = client([await server({ a: () => 1 }), await server({ a: () => 1, b: () => 1 })]);
    await chain.batch(CALLS, counted);
    // The first lacks b.
    expect(requests.length).toBe(2);
  });
});

describe('a method that one provider lacks', () => {
  test('is not asked of that provider again while another provider has it', async () => {
    const [lacks, has] = [await server({ a: () => 1 }), await server({ a: () => 1, b: () => 2 })];
    const chain = client([lacks, has]);
    for (let times = 0; times < 3; times += 1) expect(await chain.request('b', [])).toBe(2);
    expect(lacks.count('b')).toBe(1);
    expect(await chain.batch(CALLS)).toEqual([{ result: 1 }, { result: 2 }]);
    expect(lacks.count('a')).toBe(1);
  });

  test('is asked again when there is no other provider', async () => {
    const only = await server();
    const chain = client([only]);
    for (let times = 0; times < 2; times += 1) await expect(chain.request('b', [])).rejects.toThrow('not supported');
    only.methods.b = () => 5;
    expect(await chain.request('b', [])).toBe(5);
  });
});

describe('genesis', () => {
  const OURS = `0x${'5a'.repeat(32)}` as const;
  const genesis = (hash: string) => ({ eth_getBlockByNumber: () => ({ hash }), a: () => 1 });

  test('of another chain with our chain id is never asked for anything', async () => {
    const foreign = await server(genesis(`0x${'6b'.repeat(32)}`));
    const ours = await server(genesis(OURS.toUpperCase().replace('0X', '0x')));
    const chain = client([foreign, ours], OURS);
    expect(await chain.request('a', [])).toBe(1);
    expect([foreign.count('a'), ours.count('a')]).toEqual([0, 1]);
  });

  test('that a provider has pruned does not mean another chain', async () => {
    const pruned = await server({ eth_getBlockByNumber: () => null, a: () => 1 });
    expect(await client([pruned], OURS).request('a', [])).toBe(1);
  });

  test('is not requested when none is configured', async () => {
    const node = await server({ a: () => 1 });
    await client([node]).request('a', []);
    expect(node.count('eth_getBlockByNumber')).toBe(0);
  });
});
