import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { ChainClient } from '../../../src/chain/rpc/client.ts';
import { createClockWatch } from '../../../src/wiring/clock-watch.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const START_MS = 1_800_000_000_000;
const BLOCK_MS = 500;

interface World {
  /** How far this machine's clock is ahead of the true time, in milliseconds. */
  aheadMs?: number;
  /** How far the database's clock is; null without one. */
  databaseAheadMs?: number | null;
  blockMs?: number;
  isStanding?: boolean;
}

/** A machine whose clock may be off, a chain that makes blocks at true times, and a database. */
function open(world: World = {}) {
  const { blockMs = BLOCK_MS } = world;
  const now = { aheadMs: 0, databaseAheadMs: null as number | null, isStanding: false, ...world, isAway: false };
  const clock = createManualClock(START_MS);
  const trueMs = () => clock.nowMs() - now.aheadMs;
  const newest = () => Math.floor((now.isStanding ? START_MS - 60_000 : trueMs()) / blockMs);
  const chain = {
    batch: async ([call]: { params: unknown[] }[]) => {
      if (now.isAway) throw new Error('away');
      const asked = call?.params[0];
      const number = asked === 'latest' ? newest() : Number(asked);
      const hex = (value: number) => `0x${value.toString(16)}`;
      const timestamp = hex(Math.floor((number * blockMs) / 1000));
      const rest = { hash: hex(7).padEnd(66, '0'), gasUsed: '0x0', gasLimit: '0x1', extraData: '0x', transactions: [] };
      return [{ result: { number: hex(number), timestamp, ...rest } }];
    },
  } as unknown as ChainClient;
  const lines: [string, string][] = [];
  const note = (level: string) => (_detail: object, message: string) => void lines.push([level, message]);
  const { databaseAheadMs } = now;
  const log = { info: note('info'), warn: note('warn'), error: note('error') };
  const ledgerNowMs = databaseAheadMs === null ? null : async () => trueMs() + databaseAheadMs;
  const watch = createClockWatch({ clock, log }, chain, ledgerNowMs);
  /** Lets a comparison end, and the next one begin. */
  const pass = async (minutes = 1) => {
    for (let step = 0; step < minutes * 60; step += 1) {
      await setImmediate();
      await clock.advance(1000);
    }
  };
  const start = async () => {
    watch.start();
    await pass();
  };
  return { now, watch, lines, start, pass };
}

test.each([0, 4000, -4000])('a clock that is right, or %i ms off, is no finding', async (aheadMs) => {
  const { watch, lines, start } = open({ aheadMs, databaseAheadMs: 0 });
  await start();
  expect([watch.status(), lines]).toEqual([{ ok: true }, []]);
  await watch.stop();
});

test.each([
  [30_000, '30 s ahead of'],
  [-30_000, '30 s behind'],
])('a clock that is %i ms off the chain’s newest block is said, once', async (aheadMs, words) => {
  const { watch, lines, start, pass } = open({ aheadMs });
  await start();
  await pass(3);
  const { ok, detail } = watch.status();
  const seconds = Number(/(\d+) s/.exec(String(detail))?.[1]);
  // Blocks have whole seconds, and up to two may be on their way.
  expect([28, 29, 30]).toContain(seconds);
  const said = `this machine's clock is ${words.replace('30', String(seconds))} the chain's newest block: set it by NTP`;
  expect([ok, detail]).toEqual([false, said]);
  expect(lines).toEqual([['warn', expect.stringContaining(String(detail))]]);
  await watch.stop();
});

test.each([
  [12_000, '12 s behind'],
  [-12_000, '12 s ahead of'],
])('a clock that the database is %i ms ahead of is said, where the chain agrees with it', async (ahead, words) => {
  const { watch, start } = open({ databaseAheadMs: ahead });
  await start();
  expect(watch.status()).toEqual({
    ok: false,
    detail: `this machine's clock is ${words} the ledger's database: set it by NTP`,
  });
  await watch.stop();
});

test('a chain that stands still, or makes a block in 12 seconds, shows nothing about the clock', async () => {
  for (const world of [{ isStanding: true }, { blockMs: 12_000 }]) {
    const { watch, lines, start, pass } = open(world);
    await start();
    await pass(5);
    expect([watch.status(), lines]).toEqual([{ ok: true }, []]);
    await watch.stop();
  }
});

test('a clock that is set right is said to be right, and what cannot be asked changes nothing', async () => {
  const { now, watch, lines, start, pass } = open({ aheadMs: 30_000 });
  await start();
  now.isAway = true;
  now.aheadMs = 0;
  await pass(3);
  expect(watch.status().ok).toBe(false);
  now.isAway = false;
  await pass(3);
  expect(watch.status()).toEqual({ ok: true });
  expect(lines.map(([level]) => level)).toEqual(['warn', 'info']);
  await watch.stop();
});
