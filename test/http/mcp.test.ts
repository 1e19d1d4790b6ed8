import { LATEST_PROTOCOL_VERSION, SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js';
import type { FastifyInstance } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEndpoint, type Endpoint } from '../../src/catalogue/endpoint.ts';
import { createMinuteWindows, openClientWindows } from '../../src/lib/limits/count.ts';
import { type McpDeps, toolRoutes } from '../../src/mcp/mount.ts';
import { acceptsOf, createUsdcCheckout, type RailFor } from '../../src/payment/checkout.ts';
import { createOffer, toolProtocol } from '../../src/wiring/surfaces.ts';
import { runningWith } from '../support/payment/call.ts';
import { callMessage, connectClient, demandOf, MCP_HEADERS, postMessage, textsOf } from '../support/service/mcp.ts';
import { call } from '../support/service/service.ts';
import { PLAIN_RAILS, TERMS } from '../support/service/terms.ts';
import { countingEndpoint, createStillClock, createTestApp, listen, pricedEndpoint } from './harness.ts';

const ORIGIN = 'https://api.example.com';
const PAYMENT = {
  x402Version: 2,
  accepted: { network: 'eip155:5042' },
  payload: { signature: '0x' },
};
const buggy: Endpoint<object> = defineEndpoint({
  path: '/buggy',
  access: 'free',
  label: 'Buggy',
  summary: 'Has a bug.',
  notFor: null,
  tags: null,
  ofChain: false,
  params: z.object({}),
  result: z.object({}),
  example: { params: {}, result: {} },
  run: async () => {
    throw new Error('the password is hunter2');
  },
});

let apps: FastifyInstance[] = [];
let everyones: FastifyInstance | undefined;
afterEach(async () => {
  await Promise.all(apps.map((app) => app.close()));
  apps = [];
});

interface Shop {
  perMinute?: { free?: number; priced?: number };
  sell?: ReturnType<RailFor>['sell'];
}

/** The tools server in the application, over endpoints of the test. `lines` holds its log. */
async function open({ perMinute = {}, sell }: Shop = {}) {
  const counting = countingEndpoint();
  const clock = createStillClock();
  const logged: [object, string][] = [];
  const note = (detail: object, message: string) => void logged.push([detail, message]);
  const noSale = () => Promise.reject(new Error('this test sells nothing'));
  const windows = () => openClientWindows(() => createMinuteWindows(clock), 'calls');
  const limit = (most = 0) => ({ perMinute: most, windows: windows() });
  const terms = { ...TERMS, usdc: '0x36', payTo: '0x5e', publicOrigin: ORIGIN, rails: PLAIN_RAILS } as const;
  const words = ({ reason }: { reason: string }) => `refused for ${reason}.`;
  const deps: McpDeps<object> = {
    catalogue: [counting.endpoint, pricedEndpoint, buggy],
    clock,
    chain: { name: 'Arc', isPlayMoney: false },
    network: TERMS.network,
    handlerTimeoutMs: 1000,
    sources: {},
    publicOrigin: ORIGIN,
    protocol: toolProtocol,
    isLightning: () => false,
    checkoutOf: (endpoint) =>
      createUsdcCheckout(endpoint, {
        offer: () => createOffer(endpoint, terms),
        railFor: () => ({ recognises: () => true, sell: sell ?? noSale }),
        write: acceptsOf,
        running: runningWith({}),
        words,
      }),
    words,
    search: null,
    limits: { free: limit(perMinute.free), priced: limit(perMinute.priced) },
    log: { info: note, warn: note, error: note },
  };
  const env = { RATE_LIMIT_PRICED_PER_MINUTE: '0' };
  const made = await createTestApp({ env, clock, extra: (scope) => toolRoutes(scope, { tools: deps }) });
  apps.push(made.app);
  const origin = `http://127.0.0.1:${await listen(made.app)}`;
  const post = (message: unknown) => postMessage(origin, message);
  return { origin, calls: counting.calls, clock, logged, post };
}

/** Shared by all tests that leave no state behind. */
let shop: Awaited<ReturnType<typeof open>>;
beforeAll(async () => {
  shop = await open();
  [everyones] = apps.splice(0);
});
afterAll(() => everyones?.close());

const MANY = Array.from({ length: 2000 }, (_, at) => [`n${at}`, 1]);
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
const resultOf = (answer: { body: string }) => JSON.parse(answer.body).result;

describe('the official client', () => {
  test('connects, lists the tools and calls a free one, whose bytes are the text and the data', async () => {
    // Its answers count how often they were made.
    const { origin } = await open();
    const { client, call: tool, close } = await connectClient(origin);
    expect(client.getServerCapabilities()).toEqual({ tools: {} });
    expect(client.getInstructions()).toContain('x402/payment');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['free_chain_count', 'paid_chain_thing', 'free_buggy']);
    const result = await tool('free_chain_count', { n: 3 });
    expect(result).toEqual({
      content: [{ type: 'text', text: '{"n":3,"computed":1}' }],
      structuredContent: { n: 3, computed: 1 },
    });
    await close();
  });

  test('gets no schemas of answers unless it asks for them, and takes structured answers of both kinds', async () => {
    for (const [path, schemas] of [
      ['/mcp', 0],
      ['/mcp?schemas=full', 3],
    ] as const) {
      const { client, call: tool, close } = await connectClient(shop.origin, path);
      const { tools } = await client.listTools();
      expect(tools.filter(({ outputSchema }) => outputSchema)).toHaveLength(schemas);
      expect((await tool('free_chain_count', { n: 3 })).structuredContent).toMatchObject({ n: 3 });
      await close();
    }
    const { status, body } = await postMessage(shop.origin, ping, undefined, '/mcp?schemas=all');
    expect([status, JSON.parse(body)]).toMatchObject([400, { code: 'bad_parameter', errors: [{ path: 'schemas' }] }]);
  });

  test('sees at the address of Lightning the tools that bitcoin buys, at the price in bitcoin', async () => {
    const { client, call: tool, close } = await connectClient(shop.origin, '/mcp/lightning');
    expect(client.getInstructions()).toContain('pays in bitcoin over Lightning');
    const { tools } = await client.listTools();
    // The test's priced tool is sold in USDC alone.
    expect(tools.map(({ name }) => name)).toEqual(['free_chain_count', 'free_buggy']);
    await expect(tool('paid_chain_thing', { id: 'a' })).rejects.toThrow('Unknown tool');
    await close();
  });

  test("gets a failure as a result, which the client's own check against the listed schema accepts", async () => {
    const { origin } = shop;
    const { client, call: tool, close } = await connectClient(origin, '/mcp?schemas=full');
    await client.listTools();
    expect(await tool('free_chain_count', { n: 0, m: 1 })).toMatchObject({
      isError: true,
      structuredContent: {
        code: 'bad_parameter',
        charged: false,
        status: 400,
        errors: [{ path: 'm' }, { path: 'n' }],
      },
    });
    expect(demandOf(await tool('paid_chain_thing', { id: 'a' }))).toMatchObject({ x402Version: 2 });
    await close();
  });
});

describe('a free tool', () => {
  test('caches its answers as long as the route does', async () => {
    const { post, calls, clock } = await open();
    for (const n of ['3', 3, '3']) await post(callMessage('free_chain_count', { n }));
    expect(calls.count).toBe(1);
    clock.now += 1000;
    await post(callMessage('free_chain_count', { n: 3 }));
    expect(calls.count).toBe(2);
  });

  test('that has a bug says so without a detail, and the log has the detail', async () => {
    const { post, logged } = await open();
    const answer = await post(callMessage('free_buggy'));
    expect(answer.status).toBe(200);
    expect(resultOf(answer)).toMatchObject({ isError: true, structuredContent: { code: 'internal', status: 500 } });
    expect(answer.body).not.toContain('hunter2');
    expect(logged).toEqual([[expect.objectContaining({ tool: 'free_buggy' }), 'a tool call failed on a bug']]);
    expect(resultOf(answer).structuredContent.requestId).toBe(answer.headers['x-request-id']);
  });
});

describe('a priced tool', () => {
  test('without a payment demands one and does not call the selling functions', async () => {
    const { post } = shop;
    const result = resultOf(await post(callMessage('paid_chain_thing', { id: 'a' })));
    expect(result.isError).toBe(true);
    expect(demandOf(result)).toMatchObject({
      x402Version: 2,
      error: 'Payment required',
      resource: { url: 'mcp://tool/paid_chain_thing', mimeType: 'application/json' },
      accepts: [{ scheme: 'exact', network: 'eip155:5042', amount: '2000', asset: '0x36', payTo: '0x5e' }],
      extensions: { bazaar: { info: { input: { type: 'mcp', toolName: 'paid_chain_thing' } } } },
    });
    const [sentence, data, ...more] = textsOf(result);
    expect(sentence).toMatch(/^paid_chain_thing is not paid for yet, [^.]*\. It costs 0\.002 USDC on Arc: [^.]*\.$/);
    expect([JSON.parse(data!), more]).toEqual([result.structuredContent, []]);
  });

  test.each([
    ['unpaid', undefined],
    ['paid', { 'x402/payment': PAYMENT }],
  ])('with bad arguments, %s, names them and sells nothing', async (_name, meta) => {
    let asked = 0;
    const { post } = await open({ sell: () => Promise.reject(new Error(`asked ${++asked}`)) });
    const result = resultOf(await post(callMessage('paid_chain_thing', { di: 'a' }, meta)));
    expect(result.structuredContent).toMatchObject({ code: 'bad_parameter', charged: false });
    expect(result.structuredContent.errors.map(({ path }: { path: string }) => path)).toEqual(['di', 'id']);
    expect(asked).toBe(0);
  });

  test('sold over one rail alone says so when another is asked for', async () => {
    const { post } = shop;
    const message = callMessage('paid_chain_thing', { id: 'a' }, { 'percall/rail': 'lightning' });
    expect(resultOf(await post(message)).structuredContent).toMatchObject({
      code: 'bad_parameter',
      errors: [{ path: '_meta.percall/rail', message: 'this tool can be paid by: usdc' }],
    });
  });

  test.each([
    ['with a time', { ttl: 1000 }],
    ['without', {}],
    ['that is none', null],
    ['that is a number', 1],
  ])(
    'called as a task %s is refused before anything is sold, because the answer would be lost',
    async (_name, task) => {
      let asked = 0;
      const { post } = await open({ sell: () => Promise.reject(new Error(`asked ${++asked}`)) });
      const message = callMessage('paid_chain_thing', { id: 'a' }, { 'x402/payment': PAYMENT }) as { params: object };
      const answer = await post({ ...message, params: { ...message.params, task } });
      expect(JSON.parse(answer.body).error).toMatchObject({ code: expect.any(Number) });
      expect(asked).toBe(0);
      // The same call without the task is sold.
      await post(message);
      expect(asked).toBe(1);
    },
  );

  test('whose caller disconnects passes that on, and the sale does not settle', async () => {
    const left = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    const { origin } = await open({
      sell: ({ signal }) =>
        new Promise((_, reject) => {
          reached.resolve();
          signal.addEventListener('abort', () => {
            left.resolve();
            reject(new Error('gone'));
          });
        }),
    });
    const gone = new AbortController();
    const body = JSON.stringify(callMessage('paid_chain_thing', { id: 'a' }, { 'x402/payment': PAYMENT }));
    const asked = fetch(`${origin}/mcp`, { method: 'POST', headers: MCP_HEADERS, body, signal: gone.signal });
    await reached.promise;
    gone.abort();
    await expect(asked).rejects.toThrow();
    await left.promise;
  });
});

describe('wrong arguments', () => {
  const THOUSANDS = Array.from({ length: 6000 }, (_, at) => `n${at}`);
  const body = async (given: object) => {
    const { body } = await shop.post(callMessage('paid_chain_thing', given));
    return { body, problem: JSON.parse(body).result.structuredContent };
  };
  const times = (text: string, part: string) => text.split(part).length - 1;

  test.each([
    ['no text', []],
    ['unknown', 1],
  ])('by the thousand (%s): ten are named, each once in the data and once in its text', async (_kind, value) => {
    const answer = await body(Object.fromEntries(THOUSANDS.slice(0, 1500).map((name) => [name, value])));
    expect(answer.problem).toMatchObject({ code: 'bad_parameter', status: 400, charged: false });
    expect(answer.problem.errors.length).toBeGreaterThanOrEqual(10);
    expect(answer.problem.errors.length).toBeLessThan(12);
    expect(times(answer.body, 'n7:') + times(answer.body, '"n7"') + times(answer.body, '"n7\\"')).toBe(2);
    expect(answer.body.length).toBeLessThan(4096);
  });

  test('that fill a message are ten faults, and one of them is that they are too many', async () => {
    const { body: text, problem } = await body(Object.fromEntries(THOUSANDS.map((name) => [name, []])));
    expect(problem.errors).toHaveLength(10);
    expect(problem.errors.at(-1)).toEqual({ path: 'arguments', message: 'at most 8192 characters in all' });
    expect(text.length).toBeLessThan(4096);
  });

  test('with a name of thousands of characters are named by its beginning', async () => {
    const { body: text, problem } = await body({ ['\u0001'.repeat(8000)]: 1 });
    expect(problem.errors[0].path).toBe('\u0001'.repeat(100));
    expect(text.length).toBeLessThan(4096);
  });
});

describe('a message that is no tool call', () => {
  test('gets the protocol’s own error: an unknown tool, an unknown method', async () => {
    const { post } = shop;
    const unknown = await post(callMessage('paid_everything'));
    expect([unknown.status, JSON.parse(unknown.body).error.code]).toEqual([200, -32602]);
    const method = await post({ jsonrpc: '2.0', id: 1, method: 'resources/list' });
    expect(JSON.parse(method.body).error.code).toBe(-32601);
  });

  test.each([
    ['no JSON', '{', 400],
    ['nothing', '', 400],
    ['no message', '{}', 400],
    ['null', 'null', 400],
    ['a batch', JSON.stringify([ping, ping]), 400],
    ['an empty batch', '[]', 400],
    ['thousands of members', JSON.stringify({ ...ping, params: { _meta: Object.fromEntries(MANY) } }), 400],
    [
      'thousands of levels',
      `${'['.repeat(30_000)}${']'.repeat(30_000)}`.replace(
        /.*/,
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":$&}}',
      ),
      400,
    ],
    ['thousands of items', JSON.stringify({ ...ping, params: { x: MANY } }), 400],
    ['more than 64 KiB', JSON.stringify({ ...ping, params: { x: 'x'.repeat(65_536) } }), 413],
    ['a notification', JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }), 202],
    ['a response', JSON.stringify({ jsonrpc: '2.0', id: 7, result: {} }), 202],
  ])('%s is answered with its status', async (_name, body, status) => {
    const { post } = shop;
    expect((await post(body)).status).toBe(status);
  });

  test.each([
    ['accept', { accept: 'application/json' }, 406],
    ['content type', { 'content-type': 'text/plain' }, 415],
    ['protocol version', { 'mcp-protocol-version': '1999-01-01' }, 400],
    ['origin', { origin: 'null' }, 403],
  ])('a request with a wrong %s is refused', async (_name, headers, status) => {
    const { origin } = shop;
    const options = { method: 'POST', body: JSON.stringify(ping) };
    expect((await call(origin, '/mcp', { ...options, headers: { ...MCP_HEADERS, ...headers } })).status).toBe(status);
    expect((await call(origin, '/mcp', { ...options, headers: MCP_HEADERS })).status).toBe(200);
  });

  test('a rebound name is refused by its own Host, and a page of another site is not', async () => {
    const { origin } = shop;
    const from = (host: string, page: string) =>
      call(origin, '/mcp', {
        method: 'POST',
        headers: { ...MCP_HEADERS, host, origin: page },
        body: JSON.stringify(ping),
      });
    const refused = await from('evil.example', 'http://evil.example');
    expect([refused.status, JSON.parse(refused.body).code]).toEqual([403, 'origin_not_allowed']);
    expect((await from('api.example.com', 'https://chat.example')).status).toBe(200);
  });

  test.each(['GET', 'DELETE', 'PUT', 'HEAD'])('%s is 405: there is no stream and no session', async (method) => {
    const { origin } = shop;
    const answer = await call(origin, '/mcp', { method, headers: { accept: 'text/event-stream' } });
    expect([answer.status, answer.headers.allow]).toEqual([405, 'POST, OPTIONS']);
  });

  test('the version is negotiated: a known one is kept, an unknown one is answered with ours', async () => {
    const { post } = shop;
    const initialize = async (protocolVersion: string) => {
      const clientInfo = { name: 'test', version: '1' };
      const params = { protocolVersion, capabilities: {}, clientInfo };
      const answer = await post({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
      expect(answer.headers['mcp-session-id']).toBeUndefined();
      return resultOf(answer).protocolVersion;
    };
    for (const version of SUPPORTED_PROTOCOL_VERSIONS) expect(await initialize(version)).toBe(version);
    expect(await initialize('1999-01-01')).toBe(LATEST_PROTOCOL_VERSION);
  });

  test('every answer has an id, is readable by pages of any site, and is not cacheable', async () => {
    const { post } = shop;
    for (const message of [ping, callMessage('free_chain_count'), '{', [ping]]) {
      const { headers } = await post(message);
      expect(headers['x-request-id']).toBeDefined();
      expect(headers['access-control-allow-origin']).toBe('*');
      expect(headers['cache-control']).toContain('no-store');
      expect(headers['x-content-type-options']).toBe('nosniff');
    }
  });
});

describe('limits', () => {
  test('of free and of priced tools are separate, and a refused call is a result', async () => {
    const { post } = await open({ perMinute: { free: 2, priced: 1 } });
    const free = () => post(callMessage('free_chain_count'));
    const priced = () => post(callMessage('paid_chain_thing', { id: 'a' }));
    expect([resultOf(await free()).isError, resultOf(await free()).isError]).toEqual([undefined, undefined]);
    expect(demandOf(resultOf(await priced())).x402Version).toBe(2);
    for (const refused of [await free(), await priced()]) {
      expect(refused.status).toBe(200);
      expect(refused.headers['ratelimit-remaining']).toBe('0');
      expect(resultOf(refused)).toMatchObject({
        isError: true,
        structuredContent: { code: 'rate_limited', charged: false, status: 429, retryAfterSeconds: 60 },
      });
    }
  });

  test('say of a rate-limited call with a payment that the payment was not looked at', async () => {
    let asked = 0;
    const { post } = await open({ perMinute: { priced: 1 }, sell: () => Promise.reject(new Error(`${++asked}`)) });
    const paid = callMessage('paid_chain_thing', { id: 'a' }, { 'x402/payment': PAYMENT });
    await post(paid);
    const refused = resultOf(await post(paid)).structuredContent;
    expect(refused).toMatchObject({ code: 'rate_limited', charged: 'unknown', status: 429 });
    expect(asked).toBe(1);
  });

  test('count a list with the schemas of answers as often as it is longer than the list without', async () => {
    const { origin } = await open({ perMinute: { free: 100 } });
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const left = async (path: string, message: object = list) => {
      const { headers, body: text } = await postMessage(origin, message, undefined, path);
      return { left: Number(headers['ratelimit-remaining']), bytes: Buffer.byteLength(text) };
    };
    const [short, full, after] = [await left('/mcp'), await left('/mcp?schemas=full'), await left('/mcp')];
    const times = full.bytes / short.bytes;
    expect(times).toBeGreaterThan(1);
    expect([short.left, full.left, after.left]).toEqual([99, 99 - Math.ceil(times), 98 - Math.ceil(times)]);
    expect((await left('/mcp?schemas=full', ping)).left).toBe(after.left - 1);
  });

  test('hold for every message: one that calls no tool gets 429', async () => {
    const { post } = await open({ perMinute: { free: 2 } });
    const statuses = [];
    for (const message of [ping, '{', ping]) statuses.push((await post(message)).status);
    expect(statuses).toEqual([200, 400, 429]);
  });
});
