import { expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../../src/config.ts';
import { ENV } from '../http/harness.ts';

const collected = (env: Record<string, string>) => loadConfig({ ...ENV, ...env }).collected;

test('by default the fee floor is measured, and health tolerates at most half a minute', () => {
  expect(collected({})).toEqual({
    health: { stalledSeconds: 30, lagBlocks: 60, lagSeconds: 30 },
    probeIntervalMs: 5000,
    floorWei: null,
  });
});

test.each([
  ['20', 20_000_000_000n],
  ['20.5', 20_500_000_000n],
  ['0.000000001', 1n],
])('a floor of %s gwei is read exactly', (FEE_FLOOR_GWEI, wei) => {
  expect(collected({ FEE_FLOOR_GWEI }).floorWei).toBe(wei);
});

test.each([
  { FEE_FLOOR_GWEI: '-1' },
  { FEE_FLOOR_GWEI: '1e3' },
  { FEE_FLOOR_GWEI: '0.0000000001' },
  { HEALTH_STALLED_SECONDS: '0' },
  { HEALTH_LAG_BLOCKS: 'few' },
  { PROBE_INTERVAL_MS: '99' },
])('%o is refused', (env) => {
  expect(() => collected(env)).toThrow(ConfigError);
  expect(() => collected(env)).toThrow(Object.keys(env)[0]);
});
