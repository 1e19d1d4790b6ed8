import { expect, test } from 'vitest';
import { rpc } from '../../../src/endpoints/rpc.ts';
import { rpcHealth } from '../../../src/endpoints/rpc-health.ts';
import { createProbeWrites, type Probe } from '../../../src/store/chain/probe-store.ts';
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
  expect(await run(rpcHealth, given().sources)).toEqual({
    windowSeconds: 900,
    endpoints: [
      {
        ...{ name: 'a.example', url: 'https://a.example', probes: 4 },
        // 10, 20.5, 30, 40; lags 0, 1, 0, 3.
        latencyMs: { p50: 20.5, p95: 40 },
        headLagBlocks: { avg: 1, max: 3 },
        errorShare: 0,
        errorRate: 0,
        errors: none,
      },
      {
        ...{ name: 'b.example', url: 'https://b.example', probes: 4 },
        latencyMs: { p50: 70, p95: 90 },
        headLagBlocks: { avg: 0, max: 0 },
        errorShare: 0.5,
        errorRate: 0.5,
        errors: { ...none, timeout: 1, rateLimited: 1 },
      },
    ],
    ...PROVENANCE,
  });
});
