import { expect, test, vi } from 'vitest';
import { Unavailable } from '../../../src/errors.ts';
import { createRefusalCounts } from '../../../src/payment/history.ts';
import { PaymentRefused, refusalName } from '../../../src/payment/refusal.ts';
import { storesOver } from '../../../src/store/open.ts';
import type { RefusalStore } from '../../../src/store/ports/stores.ts';
import { openMemoryLedger } from '../../support/ledger/fresh-ledger.ts';
import { openMemory } from '../../support/ledger/memory-ledger.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOON = Date.UTC(2026, 10, 30, 12);

function open(startMs = NOON + 1000, given = storesOver(openMemory(openMemoryLedger())).refusals) {
  const clock = createManualClock(startMs);
  const writes: (readonly [hour: number, counts: object])[] = [];
  const lines: string[] = [];
  const state: { isDown: boolean; gate: Promise<void> | null } = { isDown: false, gate: null };
  const store: RefusalStore = {
    since: given.since,
    add: async (hour, counts, keepFrom) => {
      writes.push([hour, Object.fromEntries(counts)]);
      await state.gate;
      if (state.isDown) throw new Error('closed');
      await given.add(hour, counts, keepFrom);
    },
  };
  const note = (_: unknown, line: string) => void lines.push(line);
  const log = { info: note, warn: note, error: note } as never;
  const counts = createRefusalCounts(store, clock, log);
  counts.start();
  const refuse = (reason: string, times = 1) => {
    for (let time = 0; time < times; time++) counts.count(reason);
  };
  return { clock, writes, lines, state, store: given, counts, refuse };
}

test('refusals are shown at once, and are written at the turn of the hour and not before', async () => {
  const { clock, writes, counts, refuse } = open();
  refuse('used');
  refuse('expired', 2);
  refuse('reply_store_full');
  refuse('internal');
  const shown = [
    { code: 'expired', count: 2, recentCount: 2 },
    { code: 'internal', count: 1, recentCount: 1 },
    { code: 'reply_store_full', count: 1, recentCount: 1 },
    { code: 'used', count: 1, recentCount: 1 },
  ];
  expect(await counts.read()).toEqual(shown);
  await clock.advance(HOUR - 1001);
  expect(writes).toEqual([]);
  await clock.advance(1);
  expect(writes).toEqual([[NOON, { used: 1, expired: 2, reply_store_full: 1, internal: 1 }]]);
  expect(await counts.read()).toEqual(shown);
  await counts.stop();
});

test('an hour is written under its own start, and is added to what other instances have counted in it', async () => {
  const one = open();
  const other = open(NOON + 5000, one.store);
  one.refuse('expired', 3);
  other.refuse('expired', 4);
  await one.clock.advance(HOUR);
  await other.clock.advance(HOUR);
  one.refuse('used');
  await one.clock.advance(HOUR);
  expect(one.writes.at(-1)).toEqual([NOON + HOUR, { used: 1 }]);
  expect(await one.counts.read()).toEqual([
    { code: 'expired', count: 7, recentCount: 7 },
    { code: 'used', count: 1, recentCount: 1 },
  ]);
  await one.counts.stop();
  await other.counts.stop();
});

test('a failure is named by our reason, else its code; a third party’s words are other, and a bug is internal', () => {
  const name = (error: unknown) => refusalName(error, (reason) => reason === 'expired');
  const failures = [
    new PaymentRefused('expired'),
    new PaymentRefused('payer 0x1234 is poor'),
    new Unavailable('reply_store_full', 'x'),
    new Error('a bug'),
  ];
  expect(failures.map(name)).toEqual(['expired', 'other', 'reply_store_full', 'internal']);
});

test('a write that fails is made again at the next turn, and loses and doubles nothing', async () => {
  const { clock, writes, lines, state, counts, refuse } = open();
  state.isDown = true;
  refuse('expired', 2);
  await clock.advance(HOUR);
  refuse('expired');
  expect(await counts.read()).toEqual([{ code: 'expired', count: 3, recentCount: 3 }]);
  await clock.advance(HOUR);
  expect(lines).toEqual(['maintenance failed; the next line about it says that it works again']);
  state.isDown = false;
  await clock.advance(HOUR);
  expect(lines.at(-1)).toBe('maintenance works again');
  expect(writes.slice(-2)).toEqual(
    expect.arrayContaining([
      [NOON, { expired: 2 }],
      [NOON + HOUR, { expired: 1 }],
    ]),
  );
  expect(await counts.read()).toEqual([{ code: 'expired', count: 3, recentCount: 3 }]);
  await counts.stop();
});

test('what is refused while a write is under way waits for the next one, and is shown meanwhile', async () => {
  const { clock, writes, state, counts, refuse } = open();
  const gate = Promise.withResolvers<void>();
  state.gate = gate.promise;
  refuse('expired', 2);
  refuse('used');
  await clock.advance(HOUR - 1000);
  refuse('ours new');
  refuse('used', 4);
  expect(await counts.read()).toHaveLength(3);
  state.gate = null;
  gate.resolve();
  await vi.waitFor(() => expect(clock.pendingSleeps()).toEqual([HOUR]));
  await clock.advance(HOUR);
  expect(writes).toEqual([
    [NOON, { expired: 2, used: 1 }],
    [NOON + HOUR, { 'ours new': 1, used: 4 }],
  ]);
  expect((await counts.read()).map(({ code, count }) => [code, count])).toEqual([
    ['used', 5],
    ['expired', 2],
    ['ours new', 1],
  ]);
  await counts.stop();
});

test('what is refused during a write of its own hour is written next, and is shown meanwhile', async () => {
  const { writes, state, counts, refuse, store } = open();
  const gate = Promise.withResolvers<void>();
  state.gate = gate.promise;
  refuse('expired', 2);
  refuse('used');
  const stopped = counts.stop();
  await vi.waitFor(() => expect(writes).toHaveLength(1));
  refuse('expired', 3);
  refuse('late');
  state.gate = null;
  gate.resolve();
  await stopped;
  const shown = (await counts.read()).map(({ code, count }) => [code, count]);
  expect(shown).toEqual([
    ['expired', 5],
    ['late', 1],
    ['used', 1],
  ]);
  await counts.stop();
  expect(writes).toEqual([
    [NOON, { expired: 2, used: 1 }],
    [NOON, { expired: 3, late: 1 }],
  ]);
  expect((await store.since(0, 0)).map(({ code, count }) => [code, count])).toEqual(shown);
});

test('a stop writes what is counted, and nothing where nothing is', async () => {
  const { writes, counts, refuse, store } = open();
  refuse('expired');
  await counts.stop();
  expect(await store.since(0, 0)).toEqual([{ code: 'expired', count: 1, recentCount: 1 }]);
  await counts.stop();
  expect(writes).toHaveLength(1);
  const idle = open();
  await idle.counts.stop();
  expect(idle.writes).toEqual([]);
});

test('a stop ends although the ledger is closed', async () => {
  const { state, counts, refuse } = open();
  state.isDown = true;
  refuse('expired');
  await expect(counts.stop()).resolves.toBeUndefined();
});

test('after 24 hours they are no more recent; after 30 days they are gone, from the ledger too', async () => {
  const { clock, counts, refuse, store } = open();
  refuse('expired');
  await clock.advance(DAY - 1001);
  expect(await counts.read()).toEqual([{ code: 'expired', count: 1, recentCount: 1 }]);
  await clock.advance(HOUR);
  expect(await counts.read()).toEqual([{ code: 'expired', count: 1, recentCount: 0 }]);
  await clock.advance(29 * DAY - HOUR);
  expect(await counts.read()).toEqual([{ code: 'expired', count: 1, recentCount: 0 }]);
  await clock.advance(HOUR + 1);
  expect(await counts.read()).toEqual([]);
  expect(await store.since(0, 0)).toEqual([]);
  await counts.stop();
});

test('while the ledger takes no write, what is older than 24 hours is no more recent', async () => {
  const { clock, state, counts, refuse } = open();
  state.isDown = true;
  refuse('expired');
  await clock.advance(DAY - 1000);
  expect(await counts.read()).toEqual([{ code: 'expired', count: 1, recentCount: 1 }]);
  await clock.advance(1);
  expect(await counts.read()).toEqual([{ code: 'expired', count: 1, recentCount: 0 }]);
  await counts.stop();
});

test('what other instances have written is read again after a minute', async () => {
  const { clock, counts, store } = open();
  expect(await counts.read()).toEqual([]);
  await store.add(NOON, new Map([['used', 1]]), 0);
  await clock.advance(59_999);
  expect(await counts.read()).toEqual([]);
  await clock.advance(1);
  expect(await counts.read()).toEqual([{ code: 'used', count: 1, recentCount: 1 }]);
  await counts.stop();
});
