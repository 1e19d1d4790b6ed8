import { afterEach, describe, expect, test } from 'vitest';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import type { Rank } from '../../../src/chain/rpc/wire.ts';
import { Unavailable, UpstreamFailed } from '../../../src/errors.ts';
import { openClient } from '../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts';

const open: (RpcServer | OpenChainClient)[] = [];
afterEach(async () => {
  for (const part of open.splice(0)) await ('close' in part ? part.close() : part.stop());
});

const BUSY = { status: 503, code: 'chain_busy', retryAfterSeconds: 1 };

/** A provider that answers `ask` at most `most` times a second by the test's clock and refuses the rest, as public providers do. */
async function limitedNode(clock: ManualClock, perSecond: { most: number }): Promise<RpcServer & { served(): number }> {
  let second: number[] = [];
  let served = 0;
  const node = await startRpcServer({
    ask: () => {
      second = second.filter((atMs) => clock.nowMs() - atMs < 1000);
      if (second.length >= perSecond.most) throw new RpcFault(-32011, 'request limit reached');
      second.push(clock.nowMs());
      served += 1;
      return 'answer';
    },
  });
  open.unshift(node);
  return Object.assign(node, { served: () => served });
}

/** A client over limited providers; each has `limit`, which a test may change. */
async function bench(providers = 1, limit = { most: 4 }) {
  const clock = createManualClock(1_800_000_000_000);
  const nodes = await Promise.all(Array.from({ length: providers }, () => limitedNode(clock, limit)));
  const chain = openClient({ rpcUrls: nodes.map(({ url }) => url), chainId: 5042, timeoutMs: 60_000, clock });
  open.unshift(chain);
  const ask = (rank?: Rank, signal?: AbortSignal) =>
    chain.request<string>('ask', [], { ...(rank && { rank }), ...(signal && { signal }) });
  const asked = () => nodes.reduce((sum, node) => sum + node.count('ask'), 0);
  return { clock, nodes, limit, chain, ask, asked };
}

/** Advances the clock until a request ends. Resolves or rejects as the request does. */
async function runUntilEnd<T>(clock: ManualClock, request: Promise<T>): Promise<T> {
  let isOver = false;
  const over = (): void => {
    isOver = true;
  };
  request.then(over, over);
  while (!isOver) {
    await clock.advance(25);
    // The loopback network takes real time.
    await new Promise((next) => setTimeout(next, 1));
  }
  return request;
}

/** A client that has learned its provider's limit of four a second, because the fifth request was refused. */
async function learned() {
  const opened = await bench();
  for (let at = 0; at < 4; at++) await opened.ask();
  await expect(opened.ask('free')).rejects.toMatchObject(BUSY);
  expect(opened.chain.requestsPerSecond()).toBe(4);
  return opened;
}

/** The same client after its provider refused everything: less than one request a second is left. */
async function exhausted() {
  const opened = await learned();
  opened.limit.most = 0;
  for (let lesson = 0; lesson < 20; lesson++) {
    await runUntilEnd(opened.clock, opened.ask('settle')).catch(() => {});
    await opened.clock.advance(1000);
  }
  return opened;
}

/** Reports how a request ended, or that it has not ended. */
function ended(request: Promise<unknown>) {
  const state = { is: 'open' };
  request.then(
    (answer) => {
      state.is = String(answer);
    },
    (error: { code?: string; message: string }) => {
      state.is = error.code ?? error.message;
    },
  );
  return state;
}
const turns = async () => {
  for (let at = 0; at < 5; at++) await new Promise((next) => setImmediate(next));
};

describe('providers that never refused a request for a rate limit', () => {
  test('are asked without any delay', async () => {
    const { ask, chain } = await bench(1, { most: 1000 });
    expect(chain.requestsPerSecond()).toBe(Number.POSITIVE_INFINITY);
    const ranks: Rank[] = ['settle', 'sale', 'collect', 'offer', 'admit', 'free'];
    expect(await Promise.all(ranks.map((rank) => ask(rank)))).toEqual(ranks.map(() => 'answer'));
    await chain.ready('free');
  });
});

describe('a provider with a rate limit', () => {
  test('is distinguished from one that fails: the chain is busy, with Retry-After of a second', async () => {
    const { ask, clock } = await bench(1, { most: 0 });
    const refused = runUntilEnd(clock, ask());
    await expect(refused).rejects.toBeInstanceOf(Unavailable);
    await expect(refused).rejects.toMatchObject(BUSY);
  });

  test('makes the chain busy in a batch too, which counts as one refusal for all its calls', async () => {
    const { chain, clock } = await bench(1, { most: 2 });
    const calls = Array.from({ length: 5 }, () => ({ method: 'ask', params: [] }));
    await expect(runUntilEnd(clock, chain.batch(calls, { rank: 'admit' }))).rejects.toMatchObject(BUSY);
    expect(chain.requestsPerSecond()).toBe(1);
  });

  test.each<Rank>(['admit', 'free'])(
    'has no request left for rank %s, which is refused at once without asking the provider',
    async (rank) => {
      const { ask, asked } = await learned();
      const before = asked();
      await expect(ask(rank)).rejects.toMatchObject(BUSY);
      expect(asked()).toBe(before);
    },
  );

  test('is asked for a settlement nevertheless, after three seconds at the longest', async () => {
    const { ask, asked, clock, chain } = await exhausted();
    expect(chain.requestsPerSecond()).toBeLessThan(1);
    const before = asked();
    const settling = ask('settle');
    const state = ended(settling.catch(() => 'refused by the provider'));
    await clock.advance(2999);
    expect([state.is, asked()]).toEqual(['open', before]);
    await clock.advance(1);
    expect(['answer', 'refused by the provider']).toContain(await settling.catch(() => 'refused by the provider'));
    expect(asked()).toBe(before + 1);
  });

  test('is asked for a sale as soon as its allowance permits, and the sale waits until then', async () => {
    const { ask, asked, clock, limit } = await learned();
    limit.most = 1000;
    const sale = ask();
    const before = asked();
    await clock.advance(250);
    expect(asked()).toBe(before);
    await clock.advance(50);
    expect(await sale).toBe('answer');
  });

  test('that refuses a sale is asked for it again while the sale may wait', async () => {
    const { ask, clock, limit, asked } = await bench(1, { most: 0 });
    const sale = ask();
    const state = ended(sale);
    await expect.poll(asked).toBe(1);
    await turns();
    expect(state.is).toBe('open');
    limit.most = 1000;
    expect(await runUntilEnd(clock, sale)).toBe('answer');
    expect(asked()).toBe(2);
  });

  test('is asked again only for the unanswered calls of a batch', async () => {
    const { chain, clock, nodes, limit } = await bench(1, { most: 1 });
    const calls = [1, 2].map(() => ({ method: 'ask', params: [] }));
    const batch = chain.batch(calls);
    await expect.poll(() => nodes[0]?.served()).toBe(1);
    limit.most = 1000;
    expect(await runUntilEnd(clock, batch)).toEqual([{ result: 'answer' }, { result: 'answer' }]);
    expect(nodes[0]?.served()).toBe(2);
  });

  test('is not asked for a sale that has waited for two seconds, and the sale is refused', async () => {
    const { ask, asked, clock } = await exhausted();
    const before = asked();
    const state = ended(ask('sale'));
    await clock.advance(1999);
    expect(state.is).toBe('open');
    await clock.advance(1);
    await turns();
    expect([state.is, asked()]).toEqual(['chain_busy', before]);
  });

  test('gets more requests after a while without refusals, so that no limit is learned for ever', async () => {
    const { ask, chain, clock, limit } = await learned();
    limit.most = 1000;
    const rates: number[] = [];
    for (let at = 0; at < 16; at++) {
      await clock.advance(2000);
      expect(await ask('free')).toBe('answer');
      rates.push(chain.requestsPerSecond());
    }
    expect(rates[0]).toBe(5);
    expect(rates.at(-1)).toBe(Number.POSITIVE_INFINITY);
    expect(await Promise.all(Array.from({ length: 50 }, () => ask('free')))).toEqual(Array(50).fill('answer'));
  });

  test('does not hold up a caller that aborts', async () => {
    const { ask } = await learned();
    const leaver = new AbortController();
    const waiting = ask('sale', leaver.signal);
    leaver.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
  });
});

describe('several providers', () => {
  test('serve a low rank within their common limit, and a buyer’s sales beside it', async () => {
    const { ask, clock } = await bench(4, { most: 2 });
    // A flood of the lowest rank, and one sale a second.
    const sales: string[] = [];
    for (let second = 0; second < 20; second++) {
      const flood = Array.from({ length: 20 }, () => ask('admit').catch(() => 'refused'));
      const sale = ask('sale').catch((error: Error) => error.message);
      sales.push(await runUntilEnd(clock, sale));
      await clock.advance(1000);
      await Promise.all(flood);
    }
    // The limit is learned in the first second.
    expect(sales.slice(1).filter((answer) => answer === 'answer').length).toBeGreaterThanOrEqual(18);
  });

  test('skip a provider without allowance while another has some', async () => {
    const { ask, nodes, chain } = await bench(2);
    const [first, second] = nodes;
    for (let at = 0; at < 4; at++) await ask();
    // The first provider refuses the fifth request, and the second answers it.
    expect(await ask()).toBe('answer');
    expect([first?.served(), second?.served()]).toEqual([4, 1]);
    // One of them has no known limit.
    expect(chain.requestsPerSecond()).toBe(Number.POSITIVE_INFINITY);
    const before = first?.count('ask');
    expect(await ask('free')).toBe('answer');
    expect(first?.count('ask')).toBe(before);
  });

  test('that all limit us make the chain busy; where one fails in another way, it is an upstream failure', async () => {
    const { ask, nodes, clock } = await bench(2, { most: 0 });
    await expect(ask('free')).rejects.toMatchObject(BUSY);
    expect(nodes.map((node) => node.count('ask'))).toEqual([1, 1]);
    await expect(runUntilEnd(clock, ask())).rejects.toMatchObject(BUSY);
    const other = await bench(2, { most: 0 });
    if (other.nodes[1]) other.nodes[1].fault = '500';
    await expect(other.ask()).rejects.toBeInstanceOf(UpstreamFailed);
  });

  test('that all limit us are each asked for a settlement before it is refused', async () => {
    const { ask, asked, clock, nodes } = await bench(3, { most: 0 });
    await ask('free').catch(() => {});
    expect(asked()).toBe(3);
    const settling = ask('settle').catch((error: { code: string }) => error.code);
    // No provider has answered a request: each gets one a second, and is asked as soon as it has one.
    expect(await runUntilEnd(clock, settling)).toBe('chain_busy');
    for (const node of nodes) expect(node.count('ask')).toBeGreaterThan(1);
  });
});

describe('waiting until a rank may ask', () => {
  test('ends when a request of the rank would not be refused, or when the signal aborts', async () => {
    const { chain, clock } = await learned();
    const state = ended(chain.ready('free').then(() => 'ready'));
    await clock.advance(350);
    expect(state.is).toBe('open');
    await clock.advance(50);
    expect(state.is).toBe('ready');
    const { chain: other } = await learned();
    const leaver = new AbortController();
    const waiting = other.ready('free', leaver.signal);
    leaver.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
  });
});
