import { expect, test } from 'vitest';
import { createHostLimit } from '../../../../src/upstream/client/limiter.ts';

test('one host gets at most the limit of requests a minute from all callers; other hosts are not affected', () => {
  let now = 0;
  const limit = createHostLimit(2, { nowMs: () => now, sleep: async () => undefined });
  limit('a.example');
  limit('a.example');
  now = 45_000;
  expect(() => limit('a.example')).toThrow(
    expect.objectContaining({ status: 429, retryAfterSeconds: 15, charged: false }),
  );
  limit('b.example');
  now = 60_000;
  expect(() => limit('a.example')).not.toThrow();
});

test('0 is off', () => {
  const limit = createHostLimit(0, { nowMs: () => 0, sleep: async () => undefined });
  for (let call = 0; call < 1000; call++) limit('a.example');
  expect(() => limit('a.example')).not.toThrow();
});
