import { expect, test } from 'vitest';
import {
  createProbeTallies,
  createProbeWrites,
  type Probe,
  type ProbeTally,
} from '../../../../src/collector/store/probes.ts';
import { emptyChainDatabase } from '../../../support/chain/chain-rows.ts';
import { seed, seededRandom } from '../../../support/random.ts';

const HOUR_MS = 3_600_000;
/** A whole hour. */
const START = 1_795_176_000_000 - (1_795_176_000_000 % HOUR_MS);

const probe = (endpoint: string, error: Probe['error']): Probe => ({
  endpoint,
  ok: error === null,
  latencyMs: error === null ? 1 : null,
  head: null,
  error,
});

test('counts as a plain count does, over any span, also from hours that it has kept', () => {
  const random = seededRandom('probe tally');
  const below = (end: number) => Math.floor(random() * end);
  const db = emptyChainDatabase();
  const writes = createProbeWrites(db);
  const stored: { atMs: number; error: Probe['error'] }[] = [];
  for (let atMs = START; atMs < START + 30 * HOUR_MS; atMs += 60_000 + below(240_000)) {
    const error = below(20) === 0 ? 'timeout' : null;
    stored.push({ atMs, error });
    writes.record(atMs, [probe('a', error), probe('b', 'transport')], 0);
  }
  const { probeTally } = createProbeTallies(db);
  const counted = (since: number, until: number): ProbeTally => {
    const within = stored.filter(({ atMs }) => atMs >= since && atMs <= until);
    const last = within.findLast(({ error }) => error !== null);
    return {
      probes: within.length,
      answered: within.filter(({ error }) => error === null).length,
      lastFailure: last ? { atMs: last.atMs, error: 'timeout' } : null,
    };
  };
  for (let round = 0; round < 300; round++) {
    const until = START + below(31 * HOUR_MS);
    const since = until - below(25 * HOUR_MS);
    expect(probeTally('a', since, until), `SEED=${seed}, round ${round}`).toEqual(counted(since, until));
  }
});

test('an hour that is not over for a minute is counted again', () => {
  const db = emptyChainDatabase();
  const writes = createProbeWrites(db);
  const { probeTally } = createProbeTallies(db);
  writes.record(START + 1000, [probe('a', null)], 0);
  const until = START + HOUR_MS + 30_000;
  expect(probeTally('a', START, until).probes).toBe(1);
  writes.record(START + 2000, [probe('a', null)], 0);
  expect(probeTally('a', START, until).probes).toBe(2);
});

test('a round deletes old rows of the endpoints that it probed, and of no other', () => {
  const db = emptyChainDatabase();
  const writes = createProbeWrites(db);
  writes.record(START, [probe('a', null), probe('gone', null)], 0);
  writes.record(START + 1000, [probe('a', null)], START + 1);
  const { probeTally } = createProbeTallies(db);
  expect(probeTally('a', START - HOUR_MS, START + 1000).probes).toBe(1);
  expect(probeTally('gone', START, START + 1000).probes).toBe(1);
});
