import { beforeEach, describe, expect, test } from 'vitest';
import { createReadiness } from '../../src/wiring/routes.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';

type Parts = Parameters<typeof createReadiness>[0];

let clock: ManualClock;
/** Each requested reading of the chain. The test completes them. */
let asked: PromiseWithResolvers<Awaited<ReturnType<Parts['payments']['readiness']>>>[];
let node: { ok: boolean; detail?: string };
let read: ReturnType<typeof createReadiness>;
beforeEach(() => {
  clock = createManualClock(1_800_000_000_000);
  asked = [];
  node = { ok: true };
  read = createReadiness({
    payments: {
      readiness: () => {
        asked.push(Promise.withResolvers());
        return asked.at(-1)!.promise;
      },
    },
    others: { lightning: () => node },
    collector: { status: () => ({ collected: null, backfill: null }) } as unknown as Parts['collector'],
    ledger: { instance: null, leads: () => true },
    clock,
    clockWatch: { status: () => ({ ok: false, detail: 'this machine’s clock is 60 s ahead' }) },
  });
});

const checks = (ok: boolean) => ({ needed: { ledger: { ok }, usdc: { ok }, settlement: { ok } }, others: {} });
const answer = (ok = true) => asked.at(-1)?.resolve(checks(ok));

describe('a rail that refuses everything', () => {
  test('fails its own check, and does not make the process unready while the first rail sells', async () => {
    node = { ok: false, detail: 'the exchanges disagree' };
    const gateway = { ok: false, detail: 'no successful probe' };
    const first = read();
    asked[0]?.resolve({ needed: { ledger: { ok: true }, settlement: { ok: true } }, others: { gateway } });
    expect(await first).toMatchObject({ ready: true, failing: [], checks: { gateway, lightning: node } });
    expect(read.outcomeOf('gateway')).toMatchObject({ okAtMs: null, reason: 'no successful probe' });
    await clock.advance(1000);
    const second = read();
    asked[1]?.resolve({ needed: { ledger: { ok: true }, settlement: { ok: false } }, others: { gateway } });
    expect(await second).toMatchObject({
      ready: false,
      failing: ['settlement'],
      checks: { settlement: { ok: false } },
    });
  });
});

describe('readiness’s reading of the chain', () => {
  test('is made once for all callers in the same second', async () => {
    const first = Promise.all(Array.from({ length: 100 }, () => read()));
    answer();
    expect((await first).every(({ ready }) => ready)).toBe(true);
    for (let call = 0; call < 100; call++) expect((await read()).ready).toBe(true);
    await clock.advance(999);
    expect((await read()).ready).toBe(true);
    expect(asked).toHaveLength(1);
  });

  test('is made again a second later, and then the new answer holds, good or bad', async () => {
    const first = read();
    answer(true);
    await first;
    await clock.advance(1000);
    const second = read();
    answer(false);
    expect([(await second).ready, (await read()).ready, asked.length]).toEqual([false, false, 2]);
    await clock.advance(1000);
    const third = read();
    answer(true);
    expect([(await third).ready, asked.length]).toEqual([true, 3]);
  });

  test('is not started again while the last one has no answer, however long that takes', async () => {
    const waiting = [read()];
    for (let second = 0; second < 5; second++) {
      await clock.advance(1000);
      waiting.push(read());
    }
    expect(asked).toHaveLength(1);
    answer();
    expect((await Promise.all(waiting)).map(({ ready }) => ready)).toEqual(Array(6).fill(true));
    // It began five seconds ago.
    void read();
    expect(asked).toHaveLength(2);
  });

  test('is made again after a failure, at most once a second', async () => {
    const first = read();
    asked[0]?.reject(new Error('a bug'));
    await expect(first).rejects.toThrow('a bug');
    await expect(read()).rejects.toThrow('a bug');
    await clock.advance(1000);
    const second = read();
    answer();
    expect([(await second).ready, asked.length]).toEqual([true, 2]);
  });

  test('is not kept for longer when the clock is set back', async () => {
    const first = read();
    answer();
    await first;
    await clock.advance(-5000);
    void read();
    expect(asked).toHaveLength(2);
  });
});
