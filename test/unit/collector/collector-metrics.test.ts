import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { publishCollector } from '../../../src/collector/metrics.ts';
import { type CollectorStatus, NO_COLLECTOR } from '../../../src/collector/store/facts.ts';
import { createProbeWrites } from '../../../src/collector/store/probes.ts';
import { createChainReads } from '../../../src/collector/store/reads.ts';
import { emptyChainDatabase, hash, toHex } from '../../support/chain/chain-rows.ts';

const NOW = 1_800_000_000_000;

function published(status: CollectorStatus) {
  const db = emptyChainDatabase();
  const registry = new Registry();
  const clock = { nowMs: () => NOW, sleep: async () => undefined };
  const endpoints = [{ name: 'a.example' }, { name: 'b.example' }, { name: 'c.example' }];
  publishCollector(registry, clock, { status: () => status }, createChainReads(db), endpoints);
  const lines = async () =>
    (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return { db, lines };
}

test('reports the collector’s progress, its refused answers, and which endpoints answer', async () => {
  const { db, lines } = published({
    ...NO_COLLECTOR.status(),
    head: { number: 120, hash: toHex(hash(1)), at: 60 },
    collected: { number: 117, at: 58 },
    headAdvancedMs: NOW - 500,
    backfill: { share: 0.25, blocksPerSecond: 1, secondsLeft: null, feesShare: 1, logsShare: 0 },
    counters: { requests: 7, refused: { parent: 2, shape: 1 }, reorgs: 1, replacedBlocks: 3, failures: 4 },
  });
  const probe = { latencyMs: 1, head: 1, error: null } as const;
  const writes = createProbeWrites(db);
  writes.record(NOW - 61_000, [{ ...probe, endpoint: 'c.example', ok: true }], 0);
  writes.record(NOW - 2000, [{ ...probe, endpoint: 'b.example', ok: true }], 0);
  writes.record(
    NOW - 1000,
    [
      { ...probe, endpoint: 'a.example', ok: true },
      { ...probe, endpoint: 'b.example', ok: false },
    ],
    0,
  );
  const expected = [
    'chain_head_block 120',
    'collector_block 117',
    'collector_lag_blocks 3',
    `collector_head_moved_timestamp_seconds ${(NOW - 500) / 1000}`,
    'collector_backfill_share 0.25',
    'collector_requests_total 7',
    'collector_failures_total 4',
    'collector_reorgs_total 1',
    'collector_replaced_blocks_total 3',
    'collector_refused_answers_total{reason="parent"} 2',
    'collector_refused_answers_total{reason="shape"} 1',
    'rpc_probe_up{endpoint="a.example"} 1',
    'rpc_probe_up{endpoint="b.example"} 0',
  ];
  expect(await lines()).toEqual(expected);
  expect(await lines(), 'counters are not added up again with each reading').toEqual(expected);
});

test('an unknown value gives no sample', async () => {
  const text = (await published(NO_COLLECTOR.status()).lines()).join('\n');
  expect(text).not.toMatch(/chain_head_block|collector_block|lag_blocks|timestamp|probe_up/);
  expect(text).toContain('collector_requests_total 0');
});
