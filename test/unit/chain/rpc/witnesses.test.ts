import { afterEach, describe, expect, test, vi } from 'vitest';
import type { OpenChainClient } from '../../../../src/chain/rpc/client.ts';
import type { ProviderNote, ProviderNotes } from '../../../../src/chain/rpc/trust.ts';
import type { ReadStatements } from '../../../../src/chain/rpc/wire.ts';
import { Unconfirmed } from '../../../../src/chain/rpc/witnesses.ts';
import { openClient } from '../../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../../support/chain/rpc-server.ts';
import { createManualClock, type ManualClock } from '../../../support/manual-clock.ts';

// What counts only when two providers say it. Every provider here is a real HTTP server; what it says is the test's.

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

type Said = { readonly about: string; readonly says: string } | null;
const A = { about: '0xaa', says: 'mined' };
const LIE_ABOUT_A = { about: '0xaa', says: 'failed' };
const OTHER_BLOCK = { about: '0xbb', says: 'mined' };

const statements: ReadStatements = (outcomes) =>
  outcomes.map((outcome) => ('result' in outcome ? (outcome.result as Said) : null));

interface World {
  readonly chain: OpenChainClient;
  readonly nodes: readonly RpcServer[];
  readonly clock: ManualClock;
  readonly errors: string[];
  asked(): number[];
}

/** A client over providers that each give one answer to `say`; a function is called for each question. */
async function world(...answers: (Said | (() => unknown))[]): Promise<World> {
  const clock = createManualClock(1_800_000_000_000);
  const nodes = await Promise.all(
    answers.map((answer) =>
      startRpcServer({
        say: () => (typeof answer === 'function' ? answer() : answer),
        eth_blockNumber: () => '0x64',
      }),
    ),
  );
  const errors: string[] = [];
  const log = {
    info: () => {},
    warn: () => {},
    error: (fields: object, message: string) => void errors.push(`${message} ${JSON.stringify(fields)}`),
  };
  const rpcUrls = nodes.map(({ url }) => url);
  const chain = openClient({ rpcUrls, chainId: 5042, timeoutMs: 60_000, log, clock });
  closing.push(...nodes.map((node) => () => node.stop()), () => chain.close());
  return { chain, nodes, clock, errors, asked: () => nodes.map((node) => node.count('say')) };
}

const ask = (chain: OpenChainClient, options = {}) =>
  chain.batch([{ method: 'say', params: ['0x1'] }], { statements, rank: 'settle', ...options });

const isUnconfirmed = ([outcome]: Awaited<ReturnType<typeof ask>>): boolean =>
  outcome !== undefined && 'error' in outcome && outcome.error instanceof Unconfirmed;

const hostOf = (node: RpcServer | undefined): string => new URL(node?.url ?? '').host;

function store(): ProviderNotes & { readonly notes: ProviderNote[] } {
  const notes: ProviderNote[] = [];
  return {
    notes,
    list: async (nowMs) => notes.filter(({ untilMs }) => untilMs > nowMs),
    put: async (note) => void notes.push(note),
    agree: async (question) => void notes.splice(0, notes.length, ...notes.filter((one) => one.question !== question)),
  };
}

describe('an answer that needs two witnesses', () => {
  test('counts when two providers give it, and no third is asked', async () => {
    const { chain, asked } = await world(A, A, A);
    expect(await ask(chain)).toEqual([{ result: A }]);
    expect(asked()).toEqual([1, 1, 0]);
  });

  test('counts by the word of a lone provider', async () => {
    const { chain } = await world(A);
    expect(await ask(chain)).toEqual([{ result: A }]);
    expect(chain.agreed.whyUnconfirmed()).toBeNull();
  });

  test('does not count twice for two URLs of one host', async () => {
    const node = await startRpcServer({ say: () => A });
    const second = await startRpcServer({ say: () => null });
    const rpcUrls = [`${node.url}/one`, `${node.url}/two`, second.url];
    const chain = openClient({ rpcUrls, chainId: 5042, timeoutMs: 60_000 });
    closing.push(
      () => node.stop(),
      () => second.stop(),
      () => chain.close(),
    );
    expect(chain.agreed.witnesses).toBe(2);
    expect(isUnconfirmed(await ask(chain))).toBe(true);
    expect(node.count('say')).toBe(1);
  });

  test.each([0, 1, 2, 3])('that one of four alone gives, in place %i, proves nothing', async (place) => {
    const { chain, errors } = await world(...[0, 1, 2, 3].map((at) => (at === place ? A : null)));
    expect(isUnconfirmed(await ask(chain))).toBe(true);
    expect(errors).toEqual([]);
    expect(chain.agreed.providers().some(({ isApart }) => isApart)).toBe(false);
  });

  test.each([0, 1, 2, 3])(
    'is that of the majority: one of four that contradicts it, in place %i, is set apart',
    async (place) => {
      const { chain, nodes, errors } = await world(...[0, 1, 2, 3].map((at) => (at === place ? LIE_ABOUT_A : A)));
      for (let turn = 0; turn < 4; turn++) expect(await ask(chain, { turn })).toEqual([{ result: A }]);
      expect(chain.trust.isApart(hostOf(nodes[place]))).toBe(true);
      expect(chain.trust.notes()).toMatchObject([{ kind: 'apart', host: hostOf(nodes[place]), said: 'failed' }]);
      expect(errors).toHaveLength(1);
      const before = nodes[place]?.count('say');
      for (let turn = 0; turn < 4; turn++) await ask(chain, { turn });
      expect(nodes[place]?.count('say')).toBe(before);
    },
  );

  test('is that of the majority, and a minority about another block proves nothing against itself', async () => {
    const { chain, errors } = await world(OTHER_BLOCK, A, A);
    expect(await ask(chain)).toEqual([{ result: A }]);
    expect([chain.trust.notes(), errors]).toEqual([[], []]);
  });

  test('is asked of an outvoted provider after the others for a while', async () => {
    const { chain, asked } = await world(OTHER_BLOCK, A, A);
    await ask(chain);
    expect(asked()).toEqual([1, 1, 1]);
    await ask(chain);
    expect(asked()).toEqual([1, 2, 2]);
  });

  test('has no majority where two stand against two', async () => {
    const { chain, nodes } = await world(A, LIE_ABOUT_A, LIE_ABOUT_A, A);
    // The first three decide before the fourth is asked. Asked again from the last place on, they are out.
    expect(await ask(chain)).toEqual([{ result: LIE_ABOUT_A }]);
    expect(chain.trust.isApart(hostOf(nodes[0]))).toBe(true);
  });

  test('is the first one’s refusal where nobody says anything', async () => {
    const refuse = () => {
      throw new RpcFault(-32000, 'no such thing');
    };
    const { chain, asked } = await world(refuse, null);
    expect(await ask(chain)).toMatchObject([{ error: { message: 'no such thing' } }]);
    expect(asked()).toEqual([1, 1]);
  });

  test('that says nothing beside its neighbours is unconfirmed, whatever one provider’s result is', async () => {
    // The first provider makes itself unreadable, and the others refuse: nobody says anything, and its result must not pass.
    const refuse = () => {
      throw new RpcFault(-32000, 'missing trie node');
    };
    const { chain } = await world('0x0' as unknown as Said, refuse, refuse);
    const nothing: ReadStatements = (outcomes) => outcomes.map(() => null);
    expect(isUnconfirmed(await ask(chain, { statements: nothing }))).toBe(true);
  });

  test('comes from another URL of a host where its first one fails', async () => {
    const [good, dead, other] = await Promise.all([
      startRpcServer({ say: () => A }),
      startRpcServer({ say: () => A }),
      startRpcServer({ say: () => A, eth_blockNumber: () => '0x64' }),
    ]);
    good.methods.eth_blockNumber = () => '0x64';
    // Both URLs lead to one port: the path tells them apart, as a key does.
    good.fault = () => (good.requests.at(-1)?.url === '/dead' ? '500' : null);
    const rpcUrls = [`${good.url}/dead`, `${good.url}/good`, other.url];
    const chain = openClient({ rpcUrls, chainId: 5042, timeoutMs: 60_000 });
    closing.push(...[good, dead, other].map((node) => () => node.stop()), () => chain.close());
    await chain.watch();
    expect(chain.agreed.whyUnconfirmed()).toBeNull();
    expect(await ask(chain)).toEqual([{ result: A }]);
  });

  test('comes from the next providers where one fails', async () => {
    const { chain, nodes } = await world(A, A, A);
    for (const node of nodes.slice(0, 1)) node.fault = '500';
    expect(await ask(chain)).toEqual([{ result: A }]);
  });

  test('rejects when nobody answers', async () => {
    const { chain, nodes } = await world(A, A);
    for (const node of nodes) node.fault = '500';
    await expect(ask(chain)).rejects.toThrow('no provider answered');
  });

  test('waits for a provider that limits us, until it may be asked again', async () => {
    let times = 0;
    const limited = () => {
      if (times++ === 0) throw new RpcFault(-32011, 'request limit reached');
      return A;
    };
    const { chain, clock } = await world(limited, A);
    let said: unknown = null;
    const asking = ask(chain, { rank: 'offer' }).then((outcomes) => {
      said = outcomes;
    });
    for (let at = 0; said === null && at < 80; at++) {
      await vi.waitFor(() => expect(said !== null || clock.pendingSleeps().includes(25)).toBe(true));
      await clock.advance(25);
    }
    await asking;
    expect([said, times]).toEqual([[{ result: A }], 2]);
  });

  test('waits for a provider that is a block behind', async () => {
    let times = 0;
    const behind = () => {
      if (times++ === 0) throw new RpcFault(-32001, 'request beyond head block: requested 2, head 1');
      return A;
    };
    const { chain, clock } = await world(A, behind);
    const asking = ask(chain);
    await vi.waitFor(() => expect(clock.pendingSleeps()).toContain(250));
    await clock.advance(250);
    expect(await asking).toEqual([{ result: A }]);
  });
});

describe('a poll', () => {
  test('asks one provider while nothing has happened, and the next one in its turn', async () => {
    const { chain, asked } = await world(null, null, null);
    expect(await ask(chain, { isPoll: true })).toEqual([{ result: null }]);
    expect(asked()).toEqual([1, 0, 0]);
    await ask(chain, { isPoll: true, turn: 1 });
    await ask(chain, { isPoll: true, turn: 5 });
    expect(asked()).toEqual([1, 1, 1]);
  });

  test('asks a second one once for the whole batch, as soon as the first says something of one call', async () => {
    const says: Said[] = [A, null];
    const { chain, nodes } = await world(
      () => says.shift() ?? null,
      () => A,
      () => A,
    );
    const calls = [0, 1].map((at) => ({ method: 'say', params: [at] }));
    const outcomes = await chain.batch(calls, { statements, isPoll: true });
    expect(outcomes[0]).toEqual({ result: A });
    expect(nodes.map(({ bodies }) => bodies.filter(Array.isArray).length)).toEqual([1, 1, 1]);
  });

  test('asks a provider after the others once it alone made a statement', async () => {
    const { chain, clock, asked } = await world(A, null, null);
    await ask(chain, { isPoll: true });
    expect(asked()).toEqual([1, 1, 1]);
    await ask(chain, { isPoll: true });
    expect(asked()).toEqual([1, 2, 1]);
    await clock.advance(30_001);
    await ask(chain, { isPoll: true });
    expect(asked()[0]).toBe(2);
  });
});

describe('a question to each provider', () => {
  const each = (chain: OpenChainClient) => chain.each([{ method: 'say', params: [] }], { rank: 'collect' });

  test('brings the word of all that answer, one of each host', async () => {
    const { chain, nodes, asked } = await world(A, LIE_ABOUT_A, null, A);
    if (nodes[3]) nodes[3].fault = '500';
    expect(await each(chain)).toEqual([[{ result: A }], [{ result: LIE_ABOUT_A }], [{ result: null }]]);
    expect(asked()).toEqual([1, 1, 1, 0]);
  });

  test('goes to the lone provider, and rejects where nobody answers', async () => {
    const lone = await world(A);
    expect(await each(lone.chain)).toEqual([[{ result: A }]]);
    const { chain, nodes } = await world(A, A);
    for (const node of nodes) node.fault = '500';
    await expect(each(chain)).rejects.toThrow('no provider answered');
  });
});

describe('two providers that contradict each other', () => {
  test('stop sales until they agree about it, and each is named with what it said', async () => {
    let said = LIE_ABOUT_A;
    const { chain, nodes, errors } = await world(A, () => said);
    await chain.watch();
    expect(chain.agreed.whyUnconfirmed()).toBeNull();
    expect(isUnconfirmed(await ask(chain))).toBe(true);
    const why = chain.agreed.whyUnconfirmed() ?? '';
    for (const node of nodes) expect(why).toContain(hostOf(node));
    expect(why).toContain('mined');
    expect(why).toContain('failed');
    expect(errors).toHaveLength(2);
    expect(chain.trust.notes().map(({ kind }) => kind)).toEqual(['disputed', 'disputed']);
    said = A;
    expect(await ask(chain)).toEqual([{ result: A }]);
    expect(chain.agreed.whyUnconfirmed()).toBeNull();
  });

  test('of whom a third decides later, when its limit lets it: the liar is set apart, and sales go on', async () => {
    let isLimited = true;
    const limited = () => {
      if (isLimited) throw new RpcFault(-32011, 'request limit reached');
      return A;
    };
    const { chain, nodes, clock } = await world(LIE_ABOUT_A, A, limited);
    await chain.watch();
    expect(isUnconfirmed(await ask(chain))).toBe(true);
    expect(chain.agreed.whyUnconfirmed()).toContain('contradict');
    isLimited = false;
    await clock.advance(4000);
    await vi.waitFor(() => expect(chain.trust.isApart(hostOf(nodes[0]))).toBe(true));
    await chain.agreed.head();
    expect(chain.agreed.whyUnconfirmed()).toBeNull();
  });

  test('do not stop the sales that two others can confirm', async () => {
    const { chain, nodes, clock } = await world(LIE_ABOUT_A, A, null, null);
    await chain.watch();
    expect(isUnconfirmed(await ask(chain))).toBe(true);
    expect(chain.trust.notes().map(({ host }) => host)).toEqual([hostOf(nodes[0]), hostOf(nodes[1])]);
    expect(chain.agreed.whyUnconfirmed()).toBeNull();
    await clock.advance(60_001);
    expect(chain.trust.notes().every(({ sinceMs }) => sinceMs > 1_800_000_000_000)).toBe(true);
  });

  test('stop no sales for longer than a minute where nobody can decide it any more, also after a restart', async () => {
    const kept = store();
    const { chain, nodes, clock } = await world(A, LIE_ABOUT_A);
    await chain.watch(kept);
    expect(isUnconfirmed(await ask(chain))).toBe(true);
    expect(kept.notes.map(({ kind }) => kind)).toEqual(['disputed', 'disputed']);
    const rpcUrls = nodes.map(({ url }) => url);
    const later = openClient({ rpcUrls, chainId: 5042, timeoutMs: 60_000, clock });
    closing.push(() => later.close());
    for (const node of nodes) node.methods.say = () => null;
    await later.watch(kept);
    expect(later.agreed.whyUnconfirmed()).toContain('contradict');
    await clock.advance(60_001);
    await later.agreed.head();
    expect(later.agreed.whyUnconfirmed()).toBeNull();
  });

  test('about different blocks stop sales for a minute: that proves nothing against either', async () => {
    const { chain, nodes, clock } = await world(A, OTHER_BLOCK);
    await chain.watch();
    expect(isUnconfirmed(await ask(chain))).toBe(true);
    expect(chain.agreed.whyUnconfirmed()).toContain('contradict');
    for (const node of nodes) node.fault = '500';
    await clock.advance(60_001);
    expect(chain.agreed.whyUnconfirmed() ?? '').not.toContain('contradict');
  });
});

describe('what is known of the providers', () => {
  test('is kept, holds in another process, and for a day', async () => {
    const kept = store();
    const first = await world(LIE_ABOUT_A, A, A);
    first.chain.trust.keepIn(kept);
    await ask(first.chain);
    expect(kept.notes).toMatchObject([{ kind: 'apart', host: hostOf(first.nodes[0]) }]);
    const rpcUrls = first.nodes.map(({ url }) => url);
    const clock = createManualClock(first.clock.nowMs());
    const later = openClient({ rpcUrls, chainId: 5042, timeoutMs: 60_000, clock });
    closing.push(() => later.close());
    later.trust.keepIn(kept);
    expect(later.trust.isApart(hostOf(first.nodes[0]))).toBe(false);
    await later.trust.refresh();
    expect(later.trust.isApart(hostOf(first.nodes[0]))).toBe(true);
    await clock.advance(86_400_001);
    expect(later.trust.isApart(hostOf(first.nodes[0]))).toBe(false);
  });

  test('holds in this process while it cannot be stored, and is stored later', async () => {
    const kept = store();
    const { chain, nodes } = await world(LIE_ABOUT_A, A, A);
    const put = kept.put;
    let isFull = true;
    chain.trust.keepIn({ ...kept, put: (note) => (isFull ? Promise.reject(new Error('disk full')) : put(note)) });
    await ask(chain);
    await chain.trust.refresh();
    expect([kept.notes.length, chain.trust.isApart(hostOf(nodes[0]))]).toEqual([0, true]);
    isFull = false;
    await chain.trust.refresh();
    expect([kept.notes.length, chain.trust.isApart(hostOf(nodes[0]))]).toEqual([1, true]);
  });

  test('ends when the operator ends it in the ledger', async () => {
    const kept = store();
    const { chain, nodes } = await world(LIE_ABOUT_A, A, A);
    chain.trust.keepIn(kept);
    await ask(chain);
    kept.notes.length = 0;
    await chain.trust.refresh();
    expect(chain.trust.isApart(hostOf(nodes[0]))).toBe(false);
  });
});
