import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { type InstancesShare, openInstances } from '../../src/store/instances.ts';
import type { InstancesStore } from '../../src/store/ports/instances.ts';
import { operation } from '../support/ledger/channel-rows.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';
import { type Meddled, openMeddled, untilSomebodyWaits } from '../support/postgres/lock-waits.ts';
import { quiet } from '../support/quiet.ts';
import { patient } from './unless-late.ts';

/** The duration of a lease that lasts, and of one that ends at once. */
const [LONG_MS, OVER_MS] = [60_000, 0];
const HASH = hash32('transaction');

describePostgres('a broadcast that is noted while the lease moves', () => {
  let stores: Meddled['stores'];
  let share: InstancesShare;
  let instances: InstancesStore;
  /** Locks a row, so that other transactions wait until the test releases it. */
  let blocker: Meddled['blocker'];
  let watcher: Meddled['watcher'];
  let retries: Meddled['retries'];
  let close: Meddled['close'];
  beforeEach(async () => {
    const { url, ...meddled } = await openMeddled();
    ({ stores, blocker, watcher, retries, close } = meddled);
    share = openInstances({ clock: systemClock, log: quiet }, url, 5000);
    instances = patient(share.store);
    for (const id of ['paid', 'other']) {
      await stores.payments.reserve(reservation(id, id), 0, null);
      await stores.payments.move(id, ['reserved'], 'settling', {}, { store: Buffer.from('reply') });
    }
  });
  afterEach(async () => {
    await Promise.all([close(), share.close()]);
  });

  const heartbeat = async (bootId: string, leaseMs = LONG_MS) =>
    (await instances.heartbeat(bootId, leaseMs, 60_000)).fencingToken;
  const hold = async (id: string): Promise<void> => {
    await blocker.query('BEGIN');
    await blocker.query('SELECT id FROM usdc_payments WHERE id = $1 FOR UPDATE', [id]);
  };
  const letGo = () => blocker.query('ROLLBACK');
  const noted = async () => (await stores.payments.get('paid'))?.transaction;

  /** Resolves when the note has found its lease and waits for the payment's row. */
  async function noteAndWait(fencingToken: number | null) {
    await hold('paid');
    const note = stores.payments.noteBroadcast([{ id: 'paid', transaction: HASH }], ['settling'], fencingToken ?? -1);
    await untilSomebodyWaits(watcher);
    return { note };
  }

  /** Resolves when the transaction of the note has begun, before the note itself. */
  async function beginAndWait(fencingToken: number | null) {
    await hold('other');
    const before = stores.payments.move('other', ['settling'], 'unknown', {});
    const note = stores.payments.noteBroadcast([{ id: 'paid', transaction: HASH }], ['settling'], fencingToken ?? -1);
    await untilSomebodyWaits(watcher);
    return { before, note };
  }

  test('is on disk before another instance gets the lease, whose heartbeat succeeds meanwhile without the lease', async () => {
    const first = await heartbeat('first', OVER_MS);
    const { note } = await noteAndWait(first);
    const standing = await instances.heartbeat('second', LONG_MS, 60_000);
    expect([standing.fencingToken, standing.living.toSorted()]).toEqual([null, ['first', 'second']]);
    await letGo();
    expect([...(await note)]).toEqual(['paid']);
    expect(await noted()).toEqual(HASH);
    expect(await heartbeat('second')).toBe((first ?? 0) + 1);
  });

  test('is not written when another instance has taken the lease since the transaction began; the rest of the batch is', async () => {
    const first = await heartbeat('first', OVER_MS);
    const { before, note } = await beginAndWait(first);
    expect(await heartbeat('second')).toBe((first ?? 0) + 1);
    await letGo();
    expect([[...(await note)], await before]).toEqual([[], true]);
    expect(await noted()).toBeNull();
    // The note sees the lease of now, whenever its transaction began: nothing is aborted.
    expect(retries()).toBe(0);
  });

  test('is not written either when the lease was renewed first and then taken', async () => {
    const first = await heartbeat('first');
    const { before, note } = await beginAndWait(first);
    expect(await heartbeat('first', OVER_MS)).toBe(first);
    expect(await heartbeat('second')).toBe((first ?? 0) + 1);
    await letGo();
    expect([[...(await note)], await before]).toEqual([[], true]);
    expect(await noted()).toBeNull();
  });

  test('does not delay an instance that renews the lease, reports under it or gives it up', async () => {
    const first = await heartbeat('first');
    const { note } = await noteAndWait(first);
    expect(await heartbeat('first')).toBe(first);
    expect(await instances.report(first ?? 0, 'word')).toBe(true);
    await instances.leave('first');
    expect(await heartbeat('second')).toBeNull();
    await letGo();
    expect([[...(await note)], retries()]).toEqual([['paid'], 0]);
    expect(await heartbeat('second')).toBe((first ?? 0) + 1);
  });

  test('is written at once when the lease was only renewed since its transaction began', async () => {
    const first = await heartbeat('first');
    const { before, note } = await beginAndWait(first);
    expect(await heartbeat('first')).toBe(first);
    await letGo();
    expect([[...(await note)], await before, retries()]).toEqual([['paid'], true, 0]);
    expect(await noted()).toEqual(HASH);
  });

  test('waits while another instance takes the lease, and is not written under the old fencing token', async () => {
    const first = await heartbeat('first', OVER_MS);
    // The steps of a heartbeat that takes the lease, without its COMMIT.
    await blocker.query('BEGIN');
    await blocker.query('SELECT id FROM instance_lease FOR UPDATE');
    await blocker.query("UPDATE instance_lease SET fence = fence + 1, holder = 'second', until = until + 60000");
    const note = stores.payments.noteBroadcast([{ id: 'paid', transaction: HASH }], ['settling'], first ?? -1);
    await untilSomebodyWaits(watcher);
    await blocker.query('COMMIT');
    expect([[...(await note)], await noted()]).toEqual([[], null]);
  });

  /** A move that requires the lease, as the settling process fails a payment. */
  const giveUp = (fencingToken: number | null) =>
    stores.payments.move('paid', ['settling'], 'failed', { reason: 'gone', endedAt: 1 }, 'drop', fencingToken ?? -1);
  const state = async () => (await stores.payments.get('paid'))?.state;

  test('a payment is failed under the current fencing token only', async () => {
    const first = await heartbeat('first', OVER_MS);
    const second = await heartbeat('second');
    expect([await giveUp(first), await state(), await stores.payments.replyBytes()]).toEqual([false, 'settling', 10]);
    expect([await giveUp(second), await state(), await stores.payments.replyBytes()]).toEqual([true, 'failed', 5]);
  });

  test('a payment is not failed when another instance has taken the lease since the transaction began', async () => {
    const first = await heartbeat('first', OVER_MS);
    await hold('other');
    const before = stores.payments.move('other', ['settling'], 'unknown', {});
    const given = giveUp(first);
    await untilSomebodyWaits(watcher);
    expect(await heartbeat('second')).toBe((first ?? 0) + 1);
    await letGo();
    expect([await before, await given, await state()]).toEqual([true, false, 'settling']);
  });

  test('of a claim or a refund is written under the current fencing token only', async () => {
    const { channels } = stores;
    await channels.begin(operation('claim'));
    const first = await heartbeat('first', OVER_MS);
    const second = await heartbeat('second');
    const noteClaim = async (fencingToken: number | null) => [
      ...(await channels.noteBroadcast([{ id: 'claim', transaction: HASH }], fencingToken ?? -1)),
    ];
    expect([await noteClaim(first), (await channels.operation('claim'))?.transaction]).toEqual([[], null]);
    expect([await noteClaim(second), (await channels.operation('claim'))?.transaction]).toEqual([['claim'], HASH]);
  });
});
