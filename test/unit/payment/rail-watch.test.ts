import { expect, test } from 'vitest';
import { createRailWatch } from '../../../src/payment/settling.ts';
import { createManualClock } from '../../support/manual-clock.ts';

test('remote services are probed once a minute, and a new fault is logged once', async () => {
  const clock = createManualClock(0);
  const warned: object[] = [];
  let asked = 0;
  let isWell = true;
  const probe = async () => {
    asked++;
    return { gateway: isWell ? { ok: true } : { ok: false, detail: 'away' } };
  };
  const watch = createRailWatch(probe, clock, { warn: (detail) => void warned.push(detail) });
  expect(watch.latest()).toEqual({});
  for (let round = 0; round < 3; round++) await watch.refresh();
  expect([asked, watch.latest()]).toEqual([1, { gateway: { ok: true } }]);
  isWell = false;
  for (let minute = 0; minute < 3; minute++) {
    clock.advance(60_000);
    await watch.refresh();
  }
  expect([asked, watch.latest()]).toEqual([4, { gateway: { ok: false, detail: 'away' } }]);
  expect(warned).toEqual([{ rail: 'gateway', detail: 'away' }]);
});

test('a rail that did not answer is asked again after five seconds, so that one lost answer does not keep the service unready for a minute', async () => {
  const clock = createManualClock(0);
  let isWell = false;
  const watch = createRailWatch(async () => ({ facilitator: { ok: isWell } }), clock, { warn: () => {} });
  await watch.refresh();
  isWell = true;
  clock.advance(4999);
  await watch.refresh();
  expect(watch.latest()).toEqual({ facilitator: { ok: false } });
  clock.advance(1);
  await watch.refresh();
  expect(watch.latest()).toEqual({ facilitator: { ok: true } });
});
