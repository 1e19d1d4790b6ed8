import { afterEach, describe, expect, test } from 'vitest';
import type { OpenChainClient } from '../../../../src/chain/rpc/client.ts';
import { RpcError } from '../../../../src/chain/rpc/wire.ts';
import { UpstreamFailed } from '../../../../src/errors.ts';
import type { Clock } from '../../../../src/lib/clock.ts';
import { openClient } from '../../../support/chain/client.ts';
import { type Fault, RpcFault, type RpcServer, startRpcServer } from '../../../support/chain/rpc-server.ts';

/** Of every provider of a client where one hangs, in ms. Long enough for the good one on a busy machine; the test takes as long. */
const TIMEOUT_MS = 5000;
const open: (RpcServer | OpenChainClient)[] = [];
const warnings: string[] = [];

afterEach(async () => {
  for (const part of open.splice(0)) await ('close' in part ? part.close() : part.stop());
  warnings.length = 0;
});

async function server(methods: Parameters<typeof startRpcServer>[0] = {}): Promise<RpcServer> {
  const started = await startRpcServer(methods);
  open.unshift(started);
  return started;
}

const STILL: Clock = { nowMs: () => 0, sleep: async () => undefined };

/** With a clock that the test moves: back-offs need no waiting. */
function client(rpcUrls: string[], clock = STILL, timeoutMs = 60_000): OpenChainClient {
  const log = {
    info: (fields: object, message: string) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
    warn: (fields: object, message: string) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
    error: (fields: object, message: string) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
  };
  const created = openClient({ rpcUrls, chainId: 5042, timeoutMs, log, clock });
  open.unshift(created);
  return created;
}

const call = (method: string) => ({ method, params: [] });
const revert = () => {
  throw new RpcFault(3, 'execution reverted: no', '0x08c379a0');
};
const limited = () => fault(-32011, 'request limit reached');
const fault = (code: number, message: string): never => {
  throw new RpcFault(code, message);
};

describe('one healthy provider', () => {
  test('a single call is sent as a plain object and a batch as an array, after one request for the chain id', async () => {
    const node = await server({ a: () => 1, b: () => null });
    const chain = client([node.url]);
    expect(await chain.request('a', [])).toBe(1);
    expect(await chain.batch([call('a'), call('b')])).toEqual([{ result: 1 }, { result: null }]);
    expect(await chain.batch([call('b')])).toEqual([{ result: null }]);
    expect(await chain.batch([])).toEqual([]);
    expect(node.bodies.map((body) => (Array.isArray(body) ? body.length : 'object'))).toEqual([
      'object',
      'object',
      2,
      'object',
    ]);
    expect(node.count('eth_chainId')).toBe(1);
  });

  test('parallel first calls share one request for the chain id', async () => {
    const node = await server({ a: () => 1 });
    const chain = client([node.url]);
    await Promise.all(Array.from({ length: 20 }, () => chain.request('a', [])));
    expect(node.count('eth_chainId')).toBe(1);
  });

  test('each call of a batch gets its own outcome, in order', async () => {
    const node = await server({ a: () => 1, revert });
    const outcomes = await client([node.url]).batch([call('revert'), call('a')]);
    expect(outcomes[1]).toEqual({ result: 1 });
    const [first] = outcomes;
    if (!first || !('error' in first)) throw new Error('expected an error');
    expect(first.error).toBeInstanceOf(RpcError);
    expect(first.error).toMatchObject({ code: 3, message: 'execution reverted: no', data: '0x08c379a0' });
  });

  test('batches over 100 calls are split, and the answers are joined in order', async () => {
    const node = await server({ echo: ([value]) => value });
    const calls = Array.from({ length: 250 }, (_, at) => ({ method: 'echo', params: [at] }));
    const outcomes = await client([node.url]).batch(calls);
    expect(outcomes).toEqual(calls.map(({ params }) => ({ result: params[0] })));
    expect(node.bodies.slice(1).map((body) => (body as unknown[]).length)).toEqual([100, 100, 50]);
  });

  test('a connection closed while idle is opened again without a failure', async () => {
    const node = await server({ a: () => 1 });
    const chain = client([node.url]);
    await chain.request('a', []);
    let resets = 1;
    node.fault = () => (resets-- > 0 ? 'reset' : null);
    expect(await chain.request('a', [])).toBe(1);
    expect(warnings).toEqual([]);
  });

  test('credentials of the URL are sent in the header, path and query in the request line, and publicUrl holds none of them', async () => {
    const node = await server({ a: () => 1 });
    const url = node.url.replace('http://', 'http://me:pass%40word@');
    const chain = client([`${url}/v2/secret-key?token=secret`]);
    await chain.request('a', []);
    expect(chain.publicUrl).toBe(node.url);
    expect(node.requests[0]?.url).toBe('/v2/secret-key?token=secret');
    expect(node.requests[0]?.headers.authorization).toBe(`Basic ${Buffer.from('me:pass@word').toString('base64')}`);
  });
});

describe('failing over', () => {
  const faults: [fault: Fault, reason: RegExp, timeoutMs?: number][] = [
    ['hang', /timed out/, TIMEOUT_MS],
    ['reset', /the connection failed \(UND_ERR_SOCKET\)/],
    ['500', /HTTP 500/],
    ['429', /rate limited/],
    ['garbage', /not JSON"/],
    ['no-json-rpc', /not JSON-RPC/],
    ['wrong-ids', /ids of other requests/],
    ['too-large', /too large/],
    ['stalled-body', /timed out/, TIMEOUT_MS],
  ];
  test.each(faults)(
    '%s: the next provider answers, and the failed one is asked after it',
    async (fault, reason, timeoutMs) => {
      const [bad, good] = [await server({ a: () => 'bad' }), await server({ a: () => 'good' })];
      const chain = client([bad.url, good.url], STILL, timeoutMs);
      await chain.request('a', []);
      bad.fault = fault;
      expect(await chain.request('a', [])).toBe('good');
      const asked = bad.bodies.length;
      expect(await chain.request('a', [])).toBe('good');
      expect(bad.bodies.length).toBe(asked);
      // A provider at its limit is not failing: its allowance keeps requests from it.
      expect(warnings).toEqual(fault === '429' ? [] : [expect.stringMatching(reason)]);
    },
  );

  test.each<Fault>(['missing-entry', 'wrong-ids', 'object-for-batch', 'garbage'])(
    'a batch answered with %s goes to the next as a whole',
    async (fault) => {
      const [bad, good] = [await server(), await server({ a: () => 'good', b: () => 'too' })];
      bad.fault = (requests) => (requests[0]?.method === 'eth_chainId' ? null : fault);
      expect(await client([bad.url, good.url]).batch([call('a'), call('b')])).toEqual([
        { result: 'good' },
        { result: 'too' },
      ]);
    },
  );

  test('a refused connection: the next provider answers', async () => {
    const gone = await startRpcServer();
    await gone.stop();
    const good = await server({ a: () => 'good' });
    expect(await client([gone.url, good.url]).request('a', [])).toBe('good');
  });

  test.each([
    [-32011, 'request limit reached'],
    [-32005, 'limit exceeded'],
    [429, 'compute units'],
    [-32601, 'method not supported'],
    [-32001, 'block not found'],
    [-32000, 'header not found'],
    [-32602, 'BlockOutOfRangeError: block height is 3'],
    [-32000, 'request beyond head block: requested 22352770, head 22352769'],
  ])('error %i "%s" is asked of the next provider', async (code, message) => {
    const fail = () => {
      throw new RpcFault(code, message);
    };
    const [bad, good] = [await server({ a: fail }), await server({ a: () => 'good' })];
    expect(await client([bad.url, good.url]).request('a', [])).toBe('good');
  });

  test.each([
    [3, 'execution reverted: block not found'],
    [3, 'execution reverted: request beyond head block'],
    [-32602, 'block range extends beyond current head block'],
    [-32000, 'execution reverted: rate limit'],
    [-32012, 'requested range too large'],
    [-32602, 'invalid params'],
    [-32000, 'nonce too low'],
  ])('error %i "%s" is final: no other provider is asked', async (code, message) => {
    const fail = () => {
      throw new RpcFault(code, message);
    };
    const [first, second] = [await server({ a: fail }), await server({ a: () => 'other' })];
    await expect(client([first.url, second.url]).request('a', [])).rejects.toMatchObject({ name: 'RpcError', code });
    expect(second.bodies).toEqual([]);
  });

  describe('a node whose head is older than the block asked for', () => {
    const behind = () => {
      throw new RpcFault(-32000, 'request beyond head block: requested 8, head 7');
    };

    test.each([1, 2])('is asked again, and answers at repeat %i', async (repeats) => {
      let asked = 0;
      const node = await server({ a: () => 'a', b: () => (asked++ < repeats ? behind() : 'caught up') });
      expect(await client([node.url]).batch([call('a'), call('b')])).toEqual([
        { result: 'a' },
        { result: 'caught up' },
      ]);
      // The call that was answered is not repeated.
      expect([node.count('a'), node.count('b')]).toEqual([1, repeats + 1]);
    });

    test('is asked three times; then its refusal is the answer', async () => {
      const node = await server({ a: behind });
      await expect(client([node.url]).request('a', [])).rejects.toMatchObject({ name: 'RpcError', code: -32000 });
      expect(node.count('a')).toBe(3);
    });

    test.each(['free', 'admit'] as const)('is asked once for rank %s, which does not wait', async (rank) => {
      const node = await server({ a: behind });
      await expect(client([node.url]).request('a', [], { rank })).rejects.toThrow('beyond head');
      expect(node.count('a')).toBe(1);
    });

    test('is not waited for when another provider has the block', async () => {
      const [late, good] = [await server({ a: behind }), await server({ a: () => 'good' })];
      expect(await client([late.url, good.url]).request('a', [])).toBe('good');
      expect(late.count('a')).toBe(1);
    });
  });

  test('only the refused calls of a batch are asked again', async () => {
    const [first, second] = [
      await server({ a: () => 'first', b: limited, revert }),
      await server({ a: () => 'x', b: () => 'second' }),
    ];
    const outcomes = await client([first.url, second.url]).batch([call('a'), call('b'), call('revert')]);
    expect(outcomes.slice(0, 2)).toEqual([{ result: 'first' }, { result: 'second' }]);
    expect(second.count('a') + second.count('revert')).toBe(0);
  });

  describe('calls that one provider must answer', () => {
    const both = [call('a'), call('b')];

    test.each([
      ['is limited for one', limited],
      ['lacks the method of one', undefined],
      ['lacks the block of one', () => fault(-32000, 'header not found')],
    ])('are all asked of the next provider when the first %s', async (_what, b) => {
      const first = await server({ a: () => 'first', ...(b && { b }) });
      const second = await server({ a: () => 'second', b: () => 'second' });
      const chain = client([first.url, second.url]);
      // At the second time it is known what the first provider lacks.
      for (let times = 0; times < 2; times++)
        expect(await chain.batch(both, { fromOneProvider: true })).toEqual([
          { result: 'second' },
          { result: 'second' },
        ]);
    });

    test('are all repeated when a node is behind for one', async () => {
      let asked = 0;
      const b = () => (asked++ === 0 ? fault(-32000, 'request beyond head block: requested 8, head 7') : asked);
      const node = await server({ a: () => asked, b });
      expect(await client([node.url]).batch(both, { fromOneProvider: true })).toEqual([{ result: 1 }, { result: 2 }]);
    });

    test('have the outcomes of the last provider when all refuse one of them', async () => {
      const refusing = (name: string) => server({ a: () => name });
      const [first, second] = [await refusing('first'), await refusing('second')];
      const [a, b] = await client([first.url, second.url]).batch(both, { fromOneProvider: true });
      expect([a, b]).toMatchObject([{ result: 'second' }, { error: { code: -32601 } }]);
    });

    test('keep a final refusal: no other provider is asked', async () => {
      const [first, second] = [await server({ a: () => 'first', b: revert }), await server({ a: () => 'second' })];
      const [a, b] = await client([first.url, second.url]).batch(both, { fromOneProvider: true });
      expect([a, b]).toMatchObject([{ result: 'first' }, { error: { code: 3 } }]);
      expect(second.bodies).toEqual([]);
    });
  });

  test('"method not found" from every provider is the answer, not a failure', async () => {
    const [first, second] = [await server(), await server()];
    await expect(client([first.url, second.url]).request('eth_none', [])).rejects.toMatchObject({ code: -32601 });
    second.fault = '500';
    await expect(client([first.url, second.url]).request('eth_none', [])).rejects.toBeInstanceOf(UpstreamFailed);
  });

  test('"method not found" of one provider does not hide what another refuses', async () => {
    const lacksBlock = () => fault(-32001, 'resource not found');
    for (const servers of [
      [await server({ a: lacksBlock }), await server()],
      [await server(), await server({ a: lacksBlock })],
    ]) {
      const urls = servers.map(({ url }) => url);
      await expect(client(urls).request('a', [])).rejects.toMatchObject({ name: 'RpcError', code: -32001 });
    }
  });

  test('"method not found" replaces a limit that the same provider had before', async () => {
    let asked = 0;
    const first = await server({ a: () => (asked++ === 0 ? limited() : fault(-32601, 'method not supported')) });
    let nowMs = 0;
    const sleep = async (ms: number) => {
      nowMs += ms;
    };
    const chain = client([first.url, (await server()).url], { nowMs: () => nowMs, sleep });
    await expect(chain.request('a', [], { rank: 'settle' })).rejects.toMatchObject({ code: -32601 });
    expect(asked).toBe(2);
  });

  test('when all providers fail, the 502 shows no path, no key and no text of a provider', async () => {
    const [first, second] = [await server({ a: limited }), await server({ a: () => 1 })];
    second.fault = '500';
    const chain = client([`${first.url}/v2/secret-key`, `${second.url}/?key=secret-key`]);
    const failure = await chain.request('a', []).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UpstreamFailed);
    expect(failure).toMatchObject({ status: 502, message: 'chain: no provider answered (rate limited; HTTP 500)' });
    expect(warnings.join()).not.toContain('secret-key');
    // Providers that are held back are asked again when there is no other provider.
    second.fault = null;
    expect(await chain.request('a', [])).toBe(1);
  });
});

describe('health', () => {
  test('a provider of another chain is never asked, is logged once, and is used again when it serves our chain', async () => {
    let nowMs = 0;
    const clock = { nowMs: () => nowMs, sleep: async () => undefined };
    const [wrong, good] = [await server({ a: () => 'wrong' }), await server({ a: () => 'good' })];
    wrong.methods.eth_chainId = () => '0x1';
    const chain = client([wrong.url, good.url], clock);
    expect(await chain.request('a', [])).toBe('good');
    nowMs = 60_000;
    expect(await chain.request('a', [])).toBe('good');
    expect(wrong.bodies).toHaveLength(1);
    expect(warnings).toEqual([expect.stringMatching(/excluded.*serves chain 1, not 5042/)]);
    wrong.methods.eth_chainId = () => '0x13b2';
    nowMs = 400_000;
    await expect.poll(() => chain.request('a', [])).toBe('wrong');
  });

  test('when every provider serves another chain, check and calls fail, and no call is sent to them', async () => {
    const wrong = await server({ eth_chainId: () => '0x1', a: () => 'wrong' });
    const chain = client([wrong.url]);
    await expect(chain.check()).rejects.toBeInstanceOf(UpstreamFailed);
    await expect(chain.request('a', [])).rejects.toBeInstanceOf(UpstreamFailed);
    await expect(chain.request('a', [])).rejects.toThrow('none serves this chain');
    expect(wrong.count('a')).toBe(0);
    expect(wrong.count('eth_chainId')).toBe(1);
    const good = await server();
    await client([wrong.url, good.url]).check();
  });

  test('a provider is used again after its back-off, once its chain id was checked again', async () => {
    let nowMs = 0;
    const clock = { nowMs: () => nowMs, sleep: async () => undefined };
    const [first, second] = [await server({ a: () => 'first' }), await server({ a: () => 'second' })];
    const chain = client([first.url, second.url], clock);
    await chain.check();
    first.fault = '500';
    expect(await chain.request('a', [])).toBe('second');
    first.fault = null;
    nowMs = 1001;
    const asked = first.count('eth_chainId');
    // The first call after the back-off still goes to the healthy provider, so that no caller waits for the check.
    expect(await chain.request('a', [])).toBe('second');
    await expect.poll(() => chain.request('a', [])).toBe('first');
    expect(first.count('eth_chainId')).toBe(asked + 1);
    expect(warnings).toHaveLength(2);
  });

  test('a rate-limited provider is used again without a chain id check, which would cost a request', async () => {
    let nowMs = 0;
    const clock = { nowMs: () => nowMs, sleep: async () => undefined };
    const [first, second] = [await server({ a: () => 'first' }), await server({ a: () => 'second' })];
    const chain = client([first.url, second.url], clock);
    await chain.check();
    first.fault = '429';
    expect(await chain.request('a', [])).toBe('second');
    first.fault = null;
    nowMs = 1001;
    expect(await chain.request('a', [])).toBe('first');
    expect(first.count('eth_chainId')).toBe(1);
  });
});

describe('signals', () => {
  test('an abort ends the call with its own reason and counts against no provider', async () => {
    const node = await server({ a: () => 1 });
    const chain = client([node.url, node.url]);
    await chain.check();
    node.fault = 'hang';
    const asked = node.bodies.length;
    const reason = new Error('the buyer left');
    const control = new AbortController();
    const asking = expect(chain.request('a', [], { signal: control.signal })).rejects.toBe(reason);
    await expect.poll(() => node.bodies.length, { interval: 2 }).toBe(asked + 1);
    control.abort(reason);
    await asking;
    expect(warnings).toEqual([]);
    await expect(chain.request('a', [], { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  test('an abort does not wait for the shared request for the chain id', async () => {
    const node = await server();
    node.fault = 'hang';
    const reason = new Error('gone');
    const control = new AbortController();
    setTimeout(() => control.abort(reason), 10);
    await expect(client([node.url]).request('a', [], { signal: control.signal })).rejects.toBe(reason);
  });
});
