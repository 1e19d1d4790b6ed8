import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { type InstancesShare, openInstances } from '../../src/store/postgres/open-instances.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';
import { type Meddled, openMeddled, untilSomebodyWaits } from '../support/postgres/lock-waits.ts';

/** A lease that holds, and one that is over when it has been taken. */
const [LONG_MS, OVER_MS] = [60_000, 0];
const HASH = hash32('transaction');

describePostgres('a broadcast that is noted while the lease moves', () => {
  let stores: Meddled['stores'];
  let share: InstancesShare;
  /** Holds a row, so that whoever comes for it waits for as long as the test says. */
  let stranger: Meddled['stranger'];
  let watcher: Meddled['watcher'];
  let retries: Meddled['retries'];
  let close: Meddled['close'];
  beforeEach(async () => {
    const { url, ...meddled } = await openMeddled();
    ({ stores, stranger, watcher, retries, close } = meddled);
    share = openInstances({ url, connectTimeoutMs: 5000, clock: systemClock, log: { warn: () => {} } });
    for (const id of ['paid', 'other']) {
      await stores.payments.reserve(reservation(id, id), 0, null);
      await stores.payments.move(id, ['reserved'], 'settling', {}, { store: Buffer.from('reply') });
    }
  });
  afterEach(async () => {
    await Promise.all([close(), share.close()]);
  });

  const beat = async (bootId: string, leaseMs = LONG_MS) =>
    (await share.store.heartbeat(bootId, leaseMs, 60_000)).fencingToken;
  const hold = async (id: string): Promise<void> => {
    await stranger.query('BEGIN');
    await stranger.query('SELECT id FROM usdc_payments WHERE id = $1 FOR UPDATE', [id]);
  };
  const letGo = () => stranger.query('ROLLBACK');
  const noted = async () => (await stores.payments.get('paid'))?.transaction;

  /** Resolves when the note has found its lease and cannot go on, for want of the payment's row. */
  async function noteAndWait(fencingToken: number | null) {
    await hold('paid');
    const note = stores.payments.noteBroadcast([{ id: 'paid', transaction: HASH }], ['settling'], fencingToken ?? -1);
    await untilSomebodyWaits(watcher);
    return { note };
  }

  /** Resolves when the transaction of the note has begun, and has not come to it. */
  async function beginAndWait(fencingToken: number | null) {
    await hold('other');
    const before = stores.payments.move('other', ['settling'], 'unknown', {});
    const note = stores.payments.noteBroadcast([{ id: 'paid', transaction: HASH }], ['settling'], fencingToken ?? -1);
    await untilSomebodyWaits(watcher);
    return { before, note };
  }

  test('is on disk before anybody else has the lease, who meanwhile is heard and told that it has not', async () => {
    const first = await beat('first', OVER_MS);
    const { note } = await noteAndWait(first);
    const told = await share.store.heartbeat('second', LONG_MS, 60_000);
    expect([told.fencingToken, told.living.toSorted()]).toEqual([null, ['first', 'second']]);
    await letGo();
    expect([...(await note)]).toEqual(['paid']);
    expect(await noted()).toEqual(HASH);
    expect(await beat('second')).toBe((first ?? 0) + 1);
  });

  test('is not written when another one has taken the lease since its transaction began; the rest of it is', async () => {
    const first = await beat('first', OVER_MS);
    const { before, note } = await beginAndWait(first);
    expect(await beat('second')).toBe((first ?? 0) + 1);
    await letGo();
    expect([[...(await note)], await before]).toEqual([[], true]);
    expect(await noted()).toBeNull();
    expect(retries()).toBe(1);
  });

  test('is not written either when the lease was renewed first and then taken', async () => {
    const first = await beat('first');
    const { before, note } = await beginAndWait(first);
    expect(await beat('first', OVER_MS)).toBe(first);
    expect(await beat('second')).toBe((first ?? 0) + 1);
    await letGo();
    expect([[...(await note)], await before]).toEqual([[], true]);
    expect(await noted()).toBeNull();
  });

  test('keeps nobody waiting who renews the lease, speaks under it or gives it back', async () => {
    const first = await beat('first');
    const { note } = await noteAndWait(first);
    expect(await beat('first')).toBe(first);
    expect(await share.store.report(first ?? 0, 'word')).toBe(true);
    await share.store.leave('first');
    expect(await beat('second')).toBeNull();
    await letGo();
    expect([[...(await note)], retries()]).toEqual([['paid'], 0]);
    expect(await beat('second')).toBe((first ?? 0) + 1);
  });

  test('is written at once when the lease was only renewed since its transaction began', async () => {
    const first = await beat('first');
    const { before, note } = await beginAndWait(first);
    expect(await beat('first')).toBe(first);
    await letGo();
    expect([[...(await note)], await before, retries()]).toEqual([['paid'], true, 0]);
    expect(await noted()).toEqual(HASH);
  });

  test('waits for whoever is taking the lease, and is not written under the number of before', async () => {
    const first = await beat('first', OVER_MS);
    // What a beat does that takes the lease, up to its end.
    await stranger.query('BEGIN');
    await stranger.query('SELECT id FROM instance_lease FOR UPDATE');
    await stranger.query("UPDATE instance_lease SET fence = fence + 1, holder = 'second', until = until + 60000");
    const note = stores.payments.noteBroadcast([{ id: 'paid', transaction: HASH }], ['settling'], first ?? -1);
    await untilSomebodyWaits(watcher);
    await stranger.query('COMMIT');
    expect([[...(await note)], await noted()]).toEqual([[], null]);
  });

  /** As the settling process gives a payment up: a move that asks for the lease. */
  const giveUp = (fencingToken: number | null) =>
    stores.payments.move('paid', ['settling'], 'failed', { reason: 'gone', endedAt: 1 }, 'drop', fencingToken ?? -1);
  const state = async () => (await stores.payments.get('paid'))?.state;

  test('a payment is given up under the lease that holds, and under no other', async () => {
    const first = await beat('first', OVER_MS);
    const second = await beat('second');
    expect([await giveUp(first), await state(), await stores.payments.replyBytes()]).toEqual([false, 'settling', 10]);
    expect([await giveUp(second), await state(), await stores.payments.replyBytes()]).toEqual([true, 'failed', 5]);
  });

  test('a payment is not given up when another one has taken the lease since the transaction began', async () => {
    const first = await beat('first', OVER_MS);
    await hold('other');
    const before = stores.payments.move('other', ['settling'], 'unknown', {});
    const given = giveUp(first);
    await untilSomebodyWaits(watcher);
    expect(await beat('second')).toBe((first ?? 0) + 1);
    await letGo();
    expect([await before, await given, await state()]).toEqual([true, false, 'settling']);
  });
});
