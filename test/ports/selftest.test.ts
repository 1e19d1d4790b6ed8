import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { SelfTestRun } from '../../src/store/ports/stores.ts';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';

const good = (at: number): SelfTestRun => ({
  at,
  ok: true,
  latencyMs: 700,
  transaction: randomBytes(32),
  notCharged: true,
  reason: null,
});
const bad = (at: number, changes: Partial<SelfTestRun> = {}): SelfTestRun => ({
  at,
  ok: false,
  latencyMs: null,
  transaction: null,
  notCharged: null,
  reason: 'purchase_unreachable',
  ...changes,
});

describePorts('the self-test’s store', (adapter) => {
  const ledger = useLedger(adapter);
  const store = ofNow(() => ledger.stores.selfTests);
  const record = (...runs: SelfTestRun[]) => Promise.all(runs.map((run) => store.record(run, 0)));

  test('returns the recorded runs, newest first, up to the limit', async () => {
    const runs = [good(10), bad(20), bad(30, { notCharged: false, reason: 'balance_differs' }), good(40)];
    await record(...runs);
    expect(await store.recent(10)).toEqual([...runs].reverse());
    expect(await store.recent(2)).toEqual([runs[3], runs[2]]);
  });

  test('of two runs at the same time the one recorded later is the newer', async () => {
    await record(good(10), bad(10));
    expect((await store.recent(1))[0]).toEqual(bad(10));
    const charged = bad(10, { notCharged: false, reason: 'failing_call_used_its_payment' });
    await record(charged);
    expect(await store.lastChecked()).toEqual(charged);
  });

  test('the last checked run is the newest whose failing call was checked for a charge', async () => {
    expect(await store.lastChecked()).toBeNull();
    await record(bad(5));
    expect(await store.lastChecked()).toBeNull();
    const charged = bad(20, { notCharged: false, reason: 'failing_call_used_its_payment' });
    await record(good(10), charged, bad(30));
    expect(await store.lastChecked()).toEqual(charged);
  });

  test('counts from a moment on, that moment included', async () => {
    expect(await store.countSince(0)).toEqual({ runs: 0, ok: 0 });
    await record(good(10), good(20), bad(30));
    expect(await store.countSince(20)).toEqual({ runs: 2, ok: 1 });
    expect(await store.countSince(21)).toEqual({ runs: 1, ok: 0 });
  });

  test('deletes with each run those before the given time, and no others', async () => {
    await record(good(10), good(20));
    await store.record(good(30), 20);
    expect((await store.recent(10)).map(({ at }) => at)).toEqual([30, 20]);
  });

  test('a recorded run is there after a restart', async () => {
    const run = good(10);
    await record(run);
    expect(await (await ledger.reopen()).selfTests.recent(1)).toEqual([run]);
  });

  test.each([
    ['no transaction', { transaction: null }],
    ['a transaction of other than 32 bytes', { transaction: randomBytes(31) }],
    ['no latency', { latencyMs: null }],
    ['a charge for the failing call', { notCharged: false }],
    ['the failing call not seen', { notCharged: null }],
    ['a reason', { reason: 'x' }],
  ])('refuses a run that claims to be ok with %s, and forgets nothing for it', async (_what, changes) => {
    await record(good(10));
    await expect(store.record({ ...good(20), ...changes }, 15)).rejects.toThrow(/CHECK constraint/i);
    expect(await store.recent(10)).toHaveLength(1);
  });

  test('refuses a run that is not ok for no reason', async () => {
    await expect(record(bad(10, { reason: null }))).rejects.toThrow(/CHECK constraint/i);
  });
});
