import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createAllowance } from '../../../src/chain/rpc/providers.ts';
import { createProbe, nameEndpoints } from '../../../src/collector/probe.ts';
import { createProbeReads, createProbeWrites, type ProbeError } from '../../../src/collector/store/probes.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import { emptyChainDatabase } from '../../support/chain/chain-rows.ts';
import { type Fault, RpcFault, type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';

const clock: Clock & { now: number } = {
  now: 1_800_000_000_000,
  nowMs: () => clock.now,
  sleep: async (ms: number) => {
    clock.now += ms;
  },
};
const servers: RpcServer[] = [];
let db: Sqlite;
const warnings: string[] = [];
const stops: (() => Promise<void>)[] = [];

beforeEach(() => {
  db = emptyChainDatabase();
});
afterEach(async () => {
  vi.useRealTimers();
  for (const stop of stops.splice(0)) await stop();
  for (const server of servers.splice(0)) await server.stop();
});

async function endpoint(head: number): Promise<RpcServer> {
  const server = await startRpcServer({ eth_blockNumber: () => `0x${head.toString(16)}` });
  servers.push(server);
  return server;
}

/** In ms: no endpoint that answers takes as long, even on a busy machine. */
const PATIENCE_MS = 60_000;

function probeOf(
  urls: readonly string[],
  timeoutMs = PATIENCE_MS,
  allowances = urls.map(() => createAllowance(clock)),
) {
  const warn = (_fields: object, message: string) => void warnings.push(message);
  const log = { info: () => expect.unreachable(), warn, error: () => expect.unreachable() };
  const writes = createProbeWrites(db);
  const probe = createProbe(
    { clock, log },
    { rpcUrls: urls, allowances, chainId: 5042, intervalMs: 5000, timeoutMs, writes },
  );
  stops.push(probe.stop);
  return probe;
}

const turn = () => new Promise((next) => setImmediate(next));
const rowsOf = (url: string) => createProbeReads(db).probes(new URL(url).host, 0);

/** Resolves when an answer of this origin has been read from its connection. */
function answerOf(url: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const onRead = (message: unknown) => {
    if ((message as { request: { origin: string } }).request.origin !== new URL(url).origin) return;
    unsubscribe('undici:request:trailers', onRead);
    resolve();
  };
  subscribe('undici:request:trailers', onRead);
  return promise;
}

describe('a round', () => {
  test('stores latency and head of each endpoint, and the best head of the round', async () => {
    const [fast, slow] = [await endpoint(1000), await endpoint(997)];
    await probeOf([`${fast.url}/secret-key`, slow.url]).round();
    expect(rowsOf(fast.url)).toMatchObject([{ atMs: clock.now, ok: true, head: 1000, bestHead: 1000, error: null }]);
    expect(rowsOf(slow.url)).toMatchObject([{ ok: true, head: 997, bestHead: 1000 }]);
    expect(rowsOf(fast.url)[0]?.latencyMs).toBeGreaterThan(0);
    expect(JSON.stringify(db.prepare('SELECT * FROM probes').all())).not.toContain('secret');
  });

  test.each([
    ['timeout', 'hang'],
    ['timeout', 'stalled-body'],
    ['rateLimited', '429'],
    ['transport', 'reset'],
    ['transport', '500'],
    ['rpcError', 'garbage'],
    ['rpcError', 'no-json-rpc'],
    ['rpcError', 'wrong-ids'],
  ] as const)('records %s when the endpoint answers with %s', async (error, fault: Fault) => {
    const [sick, well] = [await endpoint(1000), await endpoint(999)];
    sick.fault = fault;
    if (error === 'timeout') vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const answered = answerOf(well.url);
    const round = probeOf([sick.url, well.url]).round();
    if (error === 'timeout') {
      await answered;
      while (sick.requests.length === 0) await turn();
      // These turns take the answer of the well endpoint to its reader.
      for (let turns = 0; turns < 20; turns++) await turn();
      vi.advanceTimersByTime(PATIENCE_MS);
    }
    await round;
    expect(rowsOf(sick.url)).toMatchObject([{ ok: false, latencyMs: null, head: null, bestHead: 999, error }]);
    expect(rowsOf(well.url)).toMatchObject([{ ok: true, error: null }]);
  });

  test.each([
    [
      'rateLimited',
      () => {
        throw new RpcFault(-32011, 'request limit reached');
      },
    ],
    [
      'rpcError',
      () => {
        throw new RpcFault(-32000, 'out of order');
      },
    ],
    ['rpcError', () => 'soon'],
    ['rpcError', () => null],
    ['rpcError', () => `0x${'f'.repeat(14)}`],
  ] satisfies [ProbeError, () => unknown][])('records %s when the node answers like this', async (error, answer) => {
    const sick = await endpoint(1);
    sick.methods.eth_blockNumber = answer;
    await probeOf([sick.url]).round();
    expect(rowsOf(sick.url)).toMatchObject([{ ok: false, head: null, bestHead: null, error }]);
  });

  test('records `transport` for a server that is gone, and ignores the head of one of another chain', async () => {
    const [gone, foreign, ours] = [await endpoint(1), await endpoint(5_000_000), await endpoint(1000)];
    await gone.stop();
    foreign.methods.eth_chainId = () => '0x1';
    await probeOf([gone.url, foreign.url, ours.url]).round();
    expect(rowsOf(gone.url)).toMatchObject([{ error: 'transport' }]);
    expect(rowsOf(foreign.url)).toMatchObject([{ ok: false, error: 'rpcError', head: null }]);
    expect(rowsOf(ours.url)).toMatchObject([{ ok: true, bestHead: 1000 }]);
  });

  test('costs one request, which also asks for the chain id at first and after a failure', async () => {
    const server = await endpoint(1000);
    const probe = probeOf([server.url]);
    const round = async () => {
      const [requests, ids] = [server.requests.length, server.count('eth_chainId')];
      clock.now += 5000;
      await probe.round();
      return [server.requests.length - requests, server.count('eth_chainId') - ids];
    };
    expect([await round(), await round(), await round()]).toEqual([
      [1, 1],
      [1, 0],
      [1, 0],
    ]);
    server.fault = '500';
    expect((await round())[0]).toBe(1);
    server.fault = null;
    expect([await round(), await round()]).toEqual([
      [1, 1],
      [1, 0],
    ]);
    // A rate limit does not change which chain the endpoint serves.
    server.fault = '429';
    await round();
    server.fault = null;
    expect(await round()).toEqual([1, 0]);
  });

  test('uses the endpoint’s shared allowance, and so does a refusal', async () => {
    const [first, second] = [await endpoint(1000), await endpoint(1000)];
    const allowances = [createAllowance(clock), createAllowance(clock)];
    const probe = probeOf([first.url, second.url], PATIENCE_MS, allowances);
    for (let spent = 0; spent < 3; spent++) allowances[1]?.spend();
    second.fault = '429';
    await probe.round();
    expect(allowances.map((allowance) => allowance.rate())).toEqual([Number.POSITIVE_INFINITY, 3]);
  });

  test('deletes what is older than a day', async () => {
    const server = await endpoint(1000);
    const probe = probeOf([server.url]);
    await probe.round();
    const first = clock.now;
    clock.now += 24 * 3_600_000;
    await probe.round();
    expect(rowsOf(server.url).map(({ atMs }) => atMs)).toEqual([first, clock.now]);
    clock.now += 1;
    await probe.round();
    expect(rowsOf(server.url)).toHaveLength(2);
  });

  test('that cannot be stored is logged and does not end the rounds', async () => {
    const server = await endpoint(1000);
    db.exec('DROP TABLE probes; CREATE TABLE probes (at_ms INTEGER)');
    expect(() => probeOf([server.url])).toThrow();
    db = emptyChainDatabase();
    const probe = probeOf([server.url]);
    db.exec('DROP TABLE probes');
    await probe.round();
    expect(warnings).toContain('a round of RPC probes could not be stored');
  });
});

test('rounds run every interval until the probe is stopped', async () => {
  const server = await endpoint(1000);
  const probe = probeOf([server.url]);
  const began = clock.now;
  probe.start();
  while (rowsOf(server.url).length < 4) await new Promise((resolve) => setTimeout(resolve, 5));
  await probe.stop();
  const times = rowsOf(server.url).map(({ atMs }) => atMs);
  expect(times.slice(0, 4)).toEqual([0, 5000, 10_000, 15_000].map((ms) => began + ms));
  const after = rowsOf(server.url).length;
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(rowsOf(server.url)).toHaveLength(after);
});

test('endpoints are named by host, without keys and credentials, and two on one host get different names', () => {
  expect(
    nameEndpoints(['https://a.example/v2/KEY', 'https://u:p@b.example:8545/?k=KEY', 'https://a.example/v2/OTHER']),
  ).toEqual([
    { name: 'a.example', url: 'https://a.example' },
    { name: 'b.example:8545', url: 'https://b.example:8545' },
    { name: 'a.example #2', url: 'https://a.example' },
  ]);
});
