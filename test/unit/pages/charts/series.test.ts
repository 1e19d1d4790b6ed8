import { describe, expect, test } from 'vitest';
import { createFeeSteps } from '../../../../src/collector/store/fees.ts';
import { createProbeReads, createProbeWrites } from '../../../../src/collector/store/probes.ts';
import { feeSeries, LATENCY, latencySeries } from '../../../../src/pages/live.ts';
import { emptyChainDatabase, putBlocks } from '../../../support/chain/chain-rows.ts';

const NOW = 1_800_000_000;
const GWEI = 1_000_000_000;

function open() {
  const db = emptyChainDatabase();
  return { db, source: { ...createFeeSteps(db), ...createProbeReads(db) }, writes: createProbeWrites(db) };
}

describe('the line of base fees', () => {
  test('has the lowest, the mean and the highest of each half minute, oldest first', () => {
    const { db, source } = open();
    putBlocks(db, [
      { number: 1, at: NOW - 31, baseFee: 20 * GWEI },
      { number: 2, at: NOW - 30, baseFee: 21 * GWEI },
      { number: 3, at: NOW - 29, baseFee: 24 * GWEI },
      { number: 4, at: NOW - 1, baseFee: 30 * GWEI },
      { number: 5, at: NOW, baseFee: 20_123_456_789 },
    ]);
    expect(feeSeries(source, NOW)).toEqual({
      labels: ['Lowest', 'Mean', 'Highest'],
      rows: [
        { at: NOW - 60, values: ['20', '20', '20'] },
        { at: NOW - 30, values: ['21', '25', '30'] },
        { at: NOW, values: ['20.1235', '20.1235', '20.1235'] },
      ],
    });
  });

  test('leaves out what is older than half an hour, and spans without a block', () => {
    const { db, source } = open();
    putBlocks(db, [
      { number: 1, at: NOW - 1801 },
      { number: 2, at: NOW - 1800 },
      { number: 3, at: NOW },
    ]);
    expect(feeSeries(source, NOW).rows.map(({ at }) => at)).toEqual([NOW - 1800, NOW]);
  });
});

describe('the lines of latency', () => {
  const probe = (endpoint: string, latencyMs: number | null) => ({
    endpoint,
    ok: latencyMs !== null,
    latencyMs,
    head: 1,
    error: latencyMs === null ? ('timeout' as const) : null,
  });

  test('have each endpoint’s median, and a gap where it gave no answer', () => {
    const { source, writes } = open();
    const rounds: [number, number | null, number | null][] = [
      [-20, 5, 40],
      [-12, 9, null],
      [-8, 1, 60.04],
      [-2, null, null],
    ];
    for (const [offset, a, b] of rounds) writes.record((NOW + offset) * 1000, [probe('a', a), probe('b', b)], 0);
    expect(latencySeries(source, ['a', 'b'], NOW)).toEqual({
      labels: ['a', 'b'],
      rows: [
        { at: NOW - 30, values: ['5', '40'] },
        { at: NOW - 15, values: ['1', '60'] },
      ],
    });
    writes.record((NOW - 1) * 1000, [probe('c', null)], 0);
    expect(latencySeries(source, ['c'], NOW).rows).toEqual([{ at: NOW - LATENCY.step, values: [null] }]);
  });

  test('are none without endpoints', () => {
    expect(latencySeries(open().source, [], NOW)).toEqual({ labels: [], rows: [] });
  });
});
