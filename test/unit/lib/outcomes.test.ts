import { expect, test } from 'vitest';
import { createOutcomes } from '../../../src/lib/outcomes.ts';
import { createManualClock } from '../../support/manual-clock.ts';

test('the newest success and the newest failure of each name are kept, and a name of which nothing is known has neither', async () => {
  const clock = createManualClock(1000);
  const outcomes = createOutcomes(clock);
  outcomes.expect('a');
  expect(outcomes.all()).toEqual([{ name: 'a', okAtMs: null, failedAtMs: null, reason: null }]);
  outcomes.failed('a', 'first');
  await clock.advance(10);
  outcomes.failed('a', 'second');
  await clock.advance(10);
  outcomes.succeeded('a');
  outcomes.expect('a');
  expect(outcomes.of('a')).toEqual({ name: 'a', okAtMs: 1020, failedAtMs: 1010, reason: 'second' });
  expect(outcomes.of('b')).toBeNull();
});
