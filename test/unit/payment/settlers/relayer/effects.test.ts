import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ChainClient, OpenChainClient } from '../../../../../src/chain/rpc/client.ts';
import type { RpcOptions } from '../../../../../src/chain/rpc/wire.ts';
import { createEffects, type Effects } from '../../../../../src/payment/relayer/requests.ts';
import type { Ask, Timer } from '../../../../../src/payment/relayer/state.ts';
import type { Flight } from '../../../../../src/payment/relayer/transactions.ts';
import { createChainCheck } from '../../../../../src/payment/usdc/checks.ts';
import { createEvidence } from '../../../../../src/payment/usdc/evidence.ts';
import { openClient } from '../../../../support/chain/client.ts';
import { RpcFault } from '../../../../support/chain/rpc-server.ts';
import { createManualClock, type ManualClock } from '../../../../support/manual-clock.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { randomJob, startTokenNode, type TokenNode } from '../../../../support/usdc/token-node.ts';

// How each effect of the machine is carried out: what the chain is asked, and when a wait is over.

const RELAYER = '0x00000000000000000000000000000000000000aa';

let node: TokenNode;
let chain: OpenChainClient;
let clock: ManualClock;
let stopping: AbortController;
let fees: string[];
/** The signal of each request, by what was asked. */
let signals: Map<string, AbortSignal | undefined>;
let effects: Effects;
let optionsOf: (chain: ChainClient) => Parameters<typeof createEffects>[0];
beforeEach(async () => {
  node = await startTokenNode();
  node.server.methods.eth_getTransactionCount = () => '0x5';
  node.server.methods.eth_sendRawTransaction = () => '0x1';
  chain = openClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 60_000 });
  clock = createManualClock(1_800_000_000_000);
  stopping = new AbortController();
  [fees, signals] = [[], new Map()];
  const noted = (calls: readonly { method: string; params: readonly unknown[] }[], options?: RpcOptions) => {
    // The shared reads of payers are not the relayer's own.
    const own = calls.filter(({ method, params }) => method !== 'eth_call' || JSON.stringify(params).includes(RELAYER));
    for (const { method } of own) signals.set(method, options?.signal);
  };
  const watched: ChainClient = {
    ...chain,
    request: (method, params, options) => {
      noted([{ method, params }], options);
      return chain.request(method, params, options);
    },
    batch: (calls, options) => {
      noted(calls, options);
      return chain.batch(calls, options);
    },
    each: (calls, options) => {
      noted(calls, options);
      return chain.each(calls, options);
    },
    everywhere: (calls, options) => {
      noted(calls, options);
      return chain.everywhere(calls, options);
    },
  };
  optionsOf = (own) => ({
    chain: own,
    clock,
    usdc: USDC,
    relayer: RELAYER,
    signal: stopping.signal,
    check: createChainCheck(own, USDC, () => USDC),
    evidence: createEvidence(own, USDC),
    token: { check: async () => true },
    fees: { ready: async () => void fees.push('ready'), refresh: async () => void fees.push('refresh') },
    noteBroadcast: async () => new Set<string>(),
  });
  effects = createEffects(optionsOf(watched));
});
afterEach(async () => {
  await chain.close();
  await node.server.stop();
});

const sent = { flight: {} as Flight, transaction: { hash: `0x${'ab'.repeat(32)}` } };
const planOf = (...free: ReturnType<typeof randomJob>[]) => ({
  limits: { gas: 1_000_000n, gasPrice: 1n },
  free,
  trialGroups: free.map((job) => [job]),
  alone: [],
  unresolved: [],
});
const answerOf = async (effect: Ask): Promise<unknown> => (await effects.ask(effect)).answer;

describe('the chain', () => {
  test('is asked for the number of mined transactions of the relayer, not of waiting ones', async () => {
    expect(await answerOf({ kind: 'countTransactions', for: 'round' })).toBe(5);
    expect(node.server.bodies.flat().at(-1)).toMatchObject({
      method: 'eth_getTransactionCount',
      params: [RELAYER, 'latest'],
    });
  });

  test('is asked nothing more by a relayer that stops: every request ends with it', async () => {
    await effects.ask({ kind: 'countTransactions', for: 'round' });
    await effects.ask({ kind: 'tryOut', plan: planOf(randomJob()) });
    await effects.ask({ kind: 'send', flights: [], raws: ['0x01'] });
    await effects.ask({ kind: 'fetchReceipts', sent: [sent] as never, for: 'look' });
    const ended = [...signals.entries()].filter(([, signal]) => signal === stopping.signal).map(([method]) => method);
    expect(ended.sort()).toEqual([
      ...['eth_call', 'eth_getTransactionCount', 'eth_getTransactionReceipt', 'eth_sendRawTransaction'],
    ]);
    signals.clear();
    effects.resendEverywhere(['0x01']);
    expect(signals).toEqual(new Map([['eth_sendRawTransaction', stopping.signal]]));
  });

  test('is read anew for a transaction that is late, while a round uses the last prices', async () => {
    await effects.ask({ kind: 'readFees', for: 'round' });
    await effects.ask({ kind: 'readFees', for: 'resend' });
    expect(fees).toEqual(['ready', 'refresh']);
  });

  test('that gives no answer for a payer yields no reading, no balance and an unknown end', async () => {
    const job = randomJob();
    node.server.fault = '500';
    const sorting = { after: 'reopen', unused: [], toLookUp: [], next: 0, asked: 0 } as const;
    expect(await answerOf({ kind: 'readPayers', jobs: [job], for: { ...sorting } })).toEqual([null]);
    expect(await answerOf({ kind: 'readBalance', job, atBlock: 9 })).toBeNull();
    expect(await answerOf({ kind: 'lookUp', job, atBlock: 9, for: 'alone' })).toEqual({ kind: 'unknown' });
  });
});

describe('a simulation', () => {
  test('gives results for the payers that can be read, and fails like the chain when none can', async () => {
    const [job, other] = [randomJob(), randomJob()];
    const honest = node.server.methods.eth_call;
    const hidden = Buffer.from(job.intent.authorization.from).toString('hex');
    node.server.methods.eth_call = (params) => {
      if (JSON.stringify(params).includes(hidden)) throw new RpcFault(-32000, 'missing trie node');
      return honest?.(params);
    };
    const { readings } = (await answerOf({ kind: 'tryOut', plan: planOf(job, other) })) as {
      readings: Map<unknown, unknown>;
    };
    expect([readings.has(job), readings.get(other)]).toMatchObject([false, { used: false, hasCode: false }]);
    node.server.fault = '500';
    await expect(effects.ask({ kind: 'tryOut', plan: planOf(job, other) })).rejects.toMatchObject({ status: 502 });
  });

  test('of no payer has no result, and does not fail', async () => {
    node.server.fault = '500';
    expect(await answerOf({ kind: 'tryOut', plan: planOf() })).toMatchObject({ readings: new Map() });
  });
});

describe('a broadcast that the first provider refuses', () => {
  const refuse = (message: string) => () => {
    throw new RpcFault(-32000, message);
  };
  const counts = (nodes: readonly TokenNode[]) => nodes.map(({ server }) => server.count('eth_sendRawTransaction'));

  /** Sends one transaction over two providers of different hosts, of which each takes it or refuses it. */
  async function sendOver(first: () => unknown, second: () => unknown) {
    const nodes = [node, await startTokenNode()];
    const both = openClient({
      rpcUrls: nodes.map(({ server }) => server.url),
      chainId: 5042,
      timeoutMs: 60_000,
    });
    for (const [at, own] of [first, second].entries())
      if (nodes[at]) nodes[at].server.methods.eth_sendRawTransaction = own;
    const own = createEffects(optionsOf(both));
    const { answer } = await own.ask({ kind: 'send', flights: [], raws: ['0x01'] });
    await both.close();
    await nodes[1]?.server.stop();
    return { answer, counts: counts(nodes) };
  }

  test.each<[string, () => unknown, object]>([
    ['is sent when another one takes it', () => '0x2', { result: '0x2' }],
    ['is sent when another one has it already', refuse('already known'), { error: { message: 'already known' } }],
    ['is refused when the other one refuses it too', refuse('other reason'), { error: { message: 'no reason' } }],
  ])('%s', async (_, second, outcome) => {
    expect((await sendOver(refuse('no reason'), second)).answer).toMatchObject([outcome]);
  });

  test('is handed to another one only then: one that is taken costs one request', async () => {
    expect((await sendOver(() => '0x1', refuse('unused'))).counts).toEqual([1, 0]);
    expect((await sendOver(refuse('already known'), refuse('unused'))).counts).toEqual([2, 0]);
  });

  test('is asked for no second time where there is no other one', async () => {
    node.server.methods.eth_sendRawTransaction = refuse('no reason');
    expect(await answerOf({ kind: 'send', flights: [], raws: ['0x01'] })).toMatchObject([
      { error: { message: 'no reason' } },
    ]);
    expect(counts([node])).toEqual([1]);
  });
});

describe('a wait', () => {
  /** Whether the wait has ended by now. */
  async function waiting(ms: number, timer: Timer) {
    let isOver = false;
    const over = effects.ask({ kind: 'wait', ms, timer }).then(({ answer }) => {
      isOver = true;
      return answer;
    });
    await new Promise((next) => setImmediate(next));
    return { over, isOver: () => isOver };
  }

  test('is over at its time, and not before', async () => {
    const { over, isOver } = await waiting(200, { name: 'window' });
    await clock.advance(199);
    expect(isOver()).toBe(false);
    await clock.advance(1);
    expect(await over).toBeNull();
  });

  test('of no time lets the event loop run once, and asks no clock', async () => {
    let isOver = false;
    const over = effects.ask({ kind: 'wait', ms: 0, timer: { name: 'window' } }).then(() => {
      isOver = true;
    });
    await Promise.resolve();
    expect([isOver, clock.pendingSleeps()]).toEqual([false, []]);
    await over;
  });

  test('is ended by its own name alone; a name that no wait has ends nothing', async () => {
    const [window, poll] = [await waiting(200, { name: 'window' }), await waiting(60_000, { name: 'poll' })];
    effects.wake('poll');
    effects.wake('pause');
    expect(await poll.over).toBeNull();
    expect([window.isOver(), clock.pendingSleeps()]).toEqual([false, [200]]);
  });

  test('ends at once where the relayer stops', async () => {
    const { over } = await waiting(60_000, { name: 'poll' });
    stopping.abort();
    expect(await over).toBeNull();
    expect(clock.pendingSleeps()).toEqual([]);
  });
});
