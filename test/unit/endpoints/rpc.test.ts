import { expect, test } from 'vitest';
import { createProbeWrites, type Probe } from '../../../src/collector/store/probes.ts';
import { rpc, rpcHealth } from '../../../src/endpoints/rpc.ts';
import { PROVENANCE, useCollected } from './collected-fixture.ts';
import { run } from './fixture.ts';

const given = useCollected({
  endpoints: [
    { name: 'a.example', url: 'https://a.example' },
    { name: 'b.example', url: 'https://b.example' },
  ],
});

const answered = (endpoint: string, latencyMs: number, head: number): Probe => ({
  endpoint,
  ok: true,
  latencyMs,
  head,
  error: null,
});
const failed = (endpoint: string, error: Probe['error']): Probe => ({
  endpoint,
  ok: false,
  latencyMs: null,
  head: null,
  error,
});

/** Four rounds within the window, five seconds apart and the last one second ago, and one that is too old. */
function fill() {
  const { db, nowMs } = given();
  const rounds: Probe[][] = [
    [answered('a.example', 40, 100), failed('b.example', 'timeout')],
    [answered('a.example', 10, 109), answered('b.example', 90, 110)],
    [answered('a.example', 20.5, 120), failed('b.example', 'rateLimited')],
    [answered('a.example', 30, 127), answered('b.example', 70, 130)],
  ];
  const writes = createProbeWrites(db);
  writes.record(nowMs - 900_001, [answered('a.example', 5000, 1), answered('b.example', 5000, 1)], 0);
  for (const [at, probes] of rounds.entries()) writes.record(nowMs - 16_000 + 5000 * at, probes, 0);
}

test('rpc: the last probe of each endpoint', async () => {
  fill();
  const checkedAt = Math.floor((given().nowMs - 1000) / 1000);
  expect(await run(rpc, given().sources)).toEqual({
    endpoints: [
      { name: 'a.example', url: 'https://a.example', latencyMs: 30, headLagBlocks: 3, ok: true, checkedAt },
      { name: 'b.example', url: 'https://b.example', latencyMs: 70, headLagBlocks: 0, ok: true, checkedAt },
    ],
    detail: expect.any(Object),
    ...PROVENANCE,
  });
});

test('rpc: a failed probe has no latency, and an old one does not count', async () => {
  const { db, nowMs, sources } = given();
  createProbeWrites(db).record(nowMs - 100, [failed('a.example', 'transport')], 0);
  createProbeWrites(db).record(nowMs - 900_001, [answered('b.example', 1, 1)], 0);
  expect(await run(rpc, sources)).toMatchObject({
    endpoints: [
      { ok: false, latencyMs: null, headLagBlocks: null },
      { ok: null, latencyMs: null, headLagBlocks: null, checkedAt: null },
    ],
  });
});

test('rpc/health: percentiles, lag and errors of fifteen minutes', async () => {
  fill();
  const none = { timeout: 0, rateLimited: 0, rpcError: 0, transport: 0 };
  const checkedAt = Math.floor((given().nowMs - 1000) / 1000);
  expect(await run(rpcHealth, given().sources)).toEqual({
    windowSeconds: 900,
    laggingAfterBlocks: 60,
    endpoints: [
      {
        name: 'a.example',
        url: 'https://a.example',
        probes: 4,
        // 10, 20.5, 30, 40; lags 0, 1, 0, 3.
        latencyMs: { p50: 20.5, p95: 40 },
        headLagBlocks: { avg: 1, max: 3 },
        errorShare: 0,
        errorRate: 0,
        errors: none,
        state: 'up',
        checkedAt,
        lastError: null,
        lastHour: { availablePercent: '100', probes: 5 },
        last24Hours: { availablePercent: '100', probes: 5 },
      },
      {
        name: 'b.example',
        url: 'https://b.example',
        probes: 4,
        latencyMs: { p50: 70, p95: 90 },
        headLagBlocks: { avg: 0, max: 0 },
        errorShare: 0.5,
        errorRate: 0.5,
        errors: { ...none, timeout: 1, rateLimited: 1 },
        state: 'up',
        checkedAt,
        lastError: { error: 'rateLimited', at: checkedAt - 5 },
        lastHour: { availablePercent: '60', probes: 5 },
        last24Hours: { availablePercent: '60', probes: 5 },
      },
    ],
    ...PROVENANCE,
  });
});

test('rpc/health: an hour and a day are counted apart, and the last error of the day is named', async () => {
  const { db, nowMs, sources } = given();
  const writes = createProbeWrites(db);
  const at = (agoMs: number, probe: Probe) => writes.record(nowMs - agoMs, [probe], 0);
  const HOUR_MS = 3_600_000;
  at(24 * HOUR_MS + 1, failed('a.example', 'transport'));
  at(24 * HOUR_MS, answered('a.example', 1, 1));
  at(5 * HOUR_MS, failed('a.example', 'timeout'));
  at(HOUR_MS + 1, failed('a.example', 'rpcError'));
  at(HOUR_MS, answered('a.example', 1, 1));
  at(1000, answered('a.example', 1, 1));
  const { endpoints } = (await run(rpcHealth, sources)) as { endpoints: object[] };
  expect(endpoints).toMatchObject([
    {
      probes: 1,
      lastError: { error: 'rpcError', at: Math.floor((nowMs - HOUR_MS - 1) / 1000) },
      lastHour: { availablePercent: '100', probes: 2 },
      last24Hours: { availablePercent: '60', probes: 5 },
    },
    { probes: 0, state: 'unknown', checkedAt: null, lastError: null, lastHour: { availablePercent: null, probes: 0 } },
  ]);
});

test.each([
  ['down', [failed('a.example', 'timeout')]],
  ['lagging', [answered('a.example', 1, 100), answered('b.example', 1, 161)]],
  ['up', [answered('a.example', 1, 100), answered('b.example', 1, 160)]],
] satisfies [string, Probe[]][])('rpc/health: an endpoint is %s by its last probe', async (state, probes) => {
  const { db, nowMs, sources } = given();
  createProbeWrites(db).record(nowMs - 6000, [answered('a.example', 1, 1)], 0);
  createProbeWrites(db).record(nowMs - 1000, probes, 0);
  expect(await run(rpcHealth, sources)).toMatchObject({ endpoints: [{ state }, {}] });
});
