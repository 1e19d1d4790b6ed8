import { describe, expect, test } from 'vitest';
import { createSettledDays, type SettledSource } from '../../../src/payment/history.ts';
import { openMemoryLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { reservation } from '../../support/ledger/ledger-rows.ts';
import { grantOf } from '../../support/lightning/lightning-rows.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const DAY = 86_400_000;
const HOUR = 3_600_000;
const MINUTE = 60_000;
const MIDNIGHT = Date.UTC(2026, 10, 30);

function open(startMs: number) {
  const stores = storesOf(openMemoryLedger());
  const clock = createManualClock(startMs);
  const spans: (readonly [number, number])[] = [];
  const state: { gate: Promise<void> | null } = { gate: null };
  const source: SettledSource = {
    settledBetween: async (from, to) => {
      spans.push([from, to]);
      await state.gate;
      return stores.settled.settledBetween(from, to);
    },
  };
  let number = 0;
  return {
    clock,
    spans,
    state,
    days: createSettledDays(source, (contract) => (contract ? 'usdc' : 'lightning'), clock),
    async pay(endedAt: number, amount = 500n) {
      number += 1;
      const id = `p${number}`;
      await stores.payments.reserve(reservation(id, id, { amount }), 0, null);
      await stores.payments.move(id, ['reserved'], 'settling', {});
      await stores.payments.move(id, ['settling'], 'settled', { endedAt });
    },
    claim: (claimedAt: number) => stores.lightning.claim(grantOf(`c${claimedAt}`, { claimedAt, amountMsat: 21_000n })),
  };
}
/** Of a day: its sums of what was sold. */
const soldOn = (days: Awaited<ReturnType<ReturnType<typeof open>['days']>>, dayMs: number) => {
  const sums = days.find((day) => day.dayMs === dayMs)?.sums;
  return sums && Object.fromEntries(sums.flatMap(({ rail, ...sum }) => (sum.count > 0 ? [[rail, sum]] : [])));
};

describe('the days before today', () => {
  test('are 29, the oldest first, each from midnight UTC to midnight, by rail', async () => {
    const { days, pay, claim } = open(MIDNIGHT + HOUR);
    for (const at of [MIDNIGHT - DAY - 1, MIDNIGHT - DAY, MIDNIGHT - 1, MIDNIGHT]) await pay(at);
    await claim(MIDNIGHT - 5);
    await pay(MIDNIGHT - 29 * DAY, 900n);
    await pay(MIDNIGHT - 29 * DAY - 1);
    const shown = await days();
    expect(shown.map(({ dayMs }) => dayMs)).toEqual(Array.from({ length: 29 }, (_, at) => MIDNIGHT - (29 - at) * DAY));
    expect(soldOn(shown, MIDNIGHT - DAY)).toEqual({
      usdc: { count: 2, amount: 1000n },
      lightning: { count: 1, amount: 21_000n },
    });
    expect(soldOn(shown, MIDNIGHT - 2 * DAY)).toEqual({ usdc: { count: 1, amount: 500n } });
    expect(soldOn(shown, MIDNIGHT - 29 * DAY)).toEqual({ usdc: { count: 1, amount: 900n } });
    expect(soldOn(shown, MIDNIGHT - 3 * DAY)).toEqual({});
  });

  test('are read once, an hour at a time; the turn of a day reads that day alone', async () => {
    const { days, clock, spans } = open(MIDNIGHT + HOUR);
    await days();
    expect(spans).toHaveLength(29 * 24);
    expect(new Set(spans.map(([from, to]) => to - from))).toEqual(new Set([HOUR]));
    expect(spans[0]).toEqual([MIDNIGHT - DAY, MIDNIGHT - DAY + HOUR]);
    await days();
    expect(spans).toHaveLength(29 * 24);
    await clock.advance(DAY);
    await days();
    expect(spans.slice(29 * 24).map(([from]) => from)).toEqual(
      Array.from({ length: 24 }, (_, at) => MIDNIGHT + at * HOUR),
    );
  });

  test('count a payment that is written a moment after its day: a day is read a minute after its end', async () => {
    const { days, clock, pay } = open(MIDNIGHT + MINUTE - 1);
    expect(soldOn(await days(), MIDNIGHT - DAY)).toBeNull();
    await pay(MIDNIGHT - 1);
    await clock.advance(1);
    expect(soldOn(await days(), MIDNIGHT - DAY)).toEqual({ usdc: { count: 1, amount: 500n } });
  });

  test('are not waited for: who asks meanwhile gets what is read, and nobody reads twice', async () => {
    const { days, clock, spans, state } = open(MIDNIGHT + HOUR);
    const gate = Promise.withResolvers<void>();
    state.gate = gate.promise;
    const [first, second] = [days(), days()];
    await clock.advance(300);
    for (const shown of [await first, await second]) expect(shown.every(({ sums }) => sums === null)).toBe(true);
    expect(spans).toHaveLength(1);
    state.gate = null;
    gate.resolve();
    expect((await days()).every(({ sums }) => sums !== null)).toBe(true);
    expect(spans).toHaveLength(29 * 24);
    expect(clock.pendingSleeps()).toEqual([]);
  });

  test('are read anew after the ledger has not answered', async () => {
    const { days, pay, state } = open(MIDNIGHT + HOUR);
    await pay(MIDNIGHT - 1);
    state.gate = Promise.reject(new Error('closed'));
    expect(soldOn(await days(), MIDNIGHT - DAY)).toBeNull();
    state.gate = null;
    expect(soldOn(await days(), MIDNIGHT - DAY)).toEqual({ usdc: { count: 1, amount: 500n } });
  });
});
