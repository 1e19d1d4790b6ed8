import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OpenChainClient } from '../../../../src/chain/rpc/client.ts';
import { hexToBytes } from '../../../../src/lib/hex.ts';
import { createTokenWatch, type TokenWatch } from '../../../../src/payment/usdc/checks.ts';
import { zeroTransferCalldata } from '../../../../src/payment/usdc/token.ts';
import { openClient } from '../../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../../support/chain/rpc-server.ts';
import { watchedChain } from '../../../support/chain/watched-chain.ts';
import { createManualClock, type ManualClock } from '../../../support/manual-clock.ts';
import { USDC } from '../../../support/usdc/payments.ts';

const SHUT = 'the USDC token is paused, or refuses the seller';
const PAY_TO = `0x${'5e'.repeat(20)}` as const;
const paused = () => {
  throw new RpcFault(3, 'execution reverted: Pausable: paused');
};
const fine = () => `0x${'1'.padStart(64, '0')}`;

let node: RpcServer;
let chain: OpenChainClient;
let asked: ReturnType<typeof watchedChain>['asked'];
let clock: ManualClock;
let sender: `0x${string}`;
let said: [level: string, detail: object][];
let watch: TokenWatch;
beforeEach(async () => {
  node = await startRpcServer({ eth_call: fine });
  chain = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 30_000 });
  clock = createManualClock(1_800_000_000_000);
  [said, sender] = [[], `0x${'aa'.repeat(20)}`];
  const watched = watchedChain(chain);
  asked = watched.asked;
  watch = createTokenWatch({
    chain: watched.chain,
    usdc: USDC,
    payTo: PAY_TO,
    sender: () => sender,
    clock,
    log: {
      error: (detail) => void said.push(['error', detail]),
      info: (detail) => void said.push(['info', detail]),
    },
  });
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});

const tries = () => node.count('eth_call');

test('the token is tested with a transfer of zero from the settlements’ sender to the seller', async () => {
  expect([await watch.check(), watch.refusal()]).toEqual([true, null]);
  const calls = () =>
    (node.bodies as { method: string; params: unknown[] }[]).filter(({ method }) => method === 'eth_call');
  expect(calls()[0]?.params).toEqual([
    { from: sender, to: USDC, data: zeroTransferCalldata(hexToBytes(PAY_TO)) },
    'latest',
  ]);
  expect(asked).toEqual([{ method: 'eth_call', rank: 'settle' }]);
  sender = `0x${'bb'.repeat(20)}`;
  await watch.check();
  expect(calls()[1]?.params[0]).toMatchObject({ from: sender });
});

describe('a token that refuses every transfer', () => {
  test('stops sales and is logged once, and its recovery is logged once as well', async () => {
    node.methods.eth_call = paused;
    expect([await watch.check(), watch.refusal()]).toEqual([false, SHUT]);
    expect(await watch.check()).toBe(false);
    expect(said).toEqual([['error', { usdc: USDC, payTo: PAY_TO }]]);
    node.methods.eth_call = fine;
    expect([await watch.check(), watch.refusal()]).toEqual([true, null]);
    await watch.check();
    expect(said).toEqual([
      ['error', { usdc: USDC, payTo: PAY_TO }],
      ['info', { usdc: USDC, payTo: PAY_TO }],
    ]);
  });

  test('is recognised by a revert without an error code, as some nodes answer', async () => {
    node.methods.eth_call = () => {
      throw new RpcFault(-32000, 'Execution REVERTED');
    };
    expect([await watch.check(), watch.refusal()]).toEqual([false, SHUT]);
  });
});

describe('a chain that does not answer', () => {
  test.each<[string, () => void]>([
    [
      'for a node’s own reason',
      () => {
        node.methods.eth_call = () => {
          throw new RpcFault(-32602, 'invalid argument');
        };
      },
    ],
    [
      'at all',
      () => {
        node.fault = '500';
      },
    ],
  ])('%s changes nothing: the last known state of the token stays', async (_, away) => {
    const heal = () => {
      Object.assign(node, { fault: null });
      node.methods.eth_call = paused;
    };
    away();
    expect([await watch.check(), watch.refusal()]).toEqual([true, null]);
    heal();
    // The provider is held back for a while after it failed; then it answers.
    expect(await watch.check()).toBe(false);
    away();
    expect([await watch.check(), watch.refusal()]).toEqual([false, SHUT]);
    expect(said).toHaveLength(1);
  });
});

test('concurrent callers share one test of the token, and the next caller starts a new one', async () => {
  expect(await Promise.all([watch.check(), watch.check(), watch.check()])).toEqual([true, true, true]);
  expect(tries()).toBe(1);
  await watch.check();
  expect(tries()).toBe(2);
});

describe('the timer', () => {
  test('tests the token once a minute while it works', async () => {
    await watch.refresh();
    expect(tries()).toBe(1);
    await clock.advance(59_999);
    await watch.refresh();
    expect(tries()).toBe(1);
    await clock.advance(1);
    await watch.refresh();
    expect(tries()).toBe(2);
  });

  test('does not repeat a test that another caller made just before', async () => {
    await watch.refresh();
    await clock.advance(59_999);
    await watch.check();
    await clock.advance(1);
    await watch.refresh();
    expect(tries()).toBe(2);
  });

  test('tests the token in every round while it refuses transfers, so that sales go on at once', async () => {
    node.methods.eth_call = paused;
    await watch.check();
    await watch.refresh();
    await watch.refresh();
    expect(tries()).toBe(3);
    node.methods.eth_call = fine;
    await watch.refresh();
    expect([tries(), watch.refusal()]).toEqual([4, null]);
    await watch.refresh();
    expect(tries()).toBe(4);
  });

  test('counts a test without an answer, so that a chain that does not answer is asked once a minute only', async () => {
    node.fault = '500';
    await watch.refresh();
    const before = node.bodies.length;
    await watch.refresh();
    expect(node.bodies.length).toBe(before);
  });
});

describe('over several providers', () => {
  type Say = () => unknown;
  const unable: Say = () => {
    throw new RpcFault(-32602, 'invalid argument');
  };

  /** Tests the token over a provider for each of these, in the order in which they are asked. */
  async function over(...says: readonly Say[]) {
    const nodes = await Promise.all(says.map((say) => startRpcServer({ eth_call: say })));
    const several = openClient({ rpcUrls: nodes.map(({ url }) => url), chainId: 5042, timeoutMs: 30_000 });
    const own = createTokenWatch({
      chain: several,
      usdc: USDC,
      payTo: PAY_TO,
      sender: () => sender,
      clock,
      log: { error: () => {}, info: () => {} },
    });
    const lets = await own.check();
    await several.close();
    await Promise.all(nodes.map((one) => one.stop()));
    return { lets, asked: nodes.map((one) => one.count('eth_call')) };
  }

  test.each<[string, readonly Say[], boolean]>([
    ['one that alone says it is paused stops nothing', [paused, fine], true],
    ['one that alone says anything, and says it is paused, stops nothing', [paused, unable], true],
    ['one of three stops nothing', [paused, fine, fine], true],
    ['two of three stop sales', [paused, fine, paused], false],
    ['two that say so stop sales', [paused, paused], false],
  ])('%s', async (_, says, lets) => {
    expect((await over(...says)).lets).toBe(lets);
  });

  test('a token that works at the first one costs one request', async () => {
    expect(await over(fine, paused)).toEqual({ lets: true, asked: [1, 0] });
  });
});
