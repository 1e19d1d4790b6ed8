import { expect, test } from 'vitest';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';

/** A transfer's id, 16 bytes. */
const transferOf = (name: string): Buffer => Buffer.from(hash32(name).subarray(0, 16));

describePorts('the Gateway’s transfers', (adapter) => {
  const ledger = useLedger(adapter);
  const stores = ofNow(() => ledger.stores);

  async function settle(id: string, transaction: Uint8Array): Promise<boolean> {
    await stores.payments.reserve(reservation(id, id), 0, null);
    await stores.payments.move(id, ['reserved'], 'settling', {});
    return stores.payments.move(id, ['settling'], 'settled', { transaction, endedAt: 1 });
  }
  const due = async (now: number, limit = 10) =>
    (await stores.transfers.due(now, limit)).map(({ paymentId }) => paymentId);

  test('are inserted by the move that settles a payment with a transfer, and by no other', async () => {
    await settle('gateway', transferOf('gateway'));
    await settle('chain', hash32('chain'));
    await stores.payments.reserve(reservation('open', 'open'), 0, null);
    await stores.payments.move('open', ['reserved'], 'settling', { transaction: transferOf('open') });
    expect(await stores.transfers.due(0, 10)).toEqual([
      { paymentId: 'gateway', transferId: transferOf('gateway'), checks: 0 },
    ]);
  });

  test('are inserted by a settlement whose transfer was stored before, and by none that has no transaction', async () => {
    for (const id of ['before', 'none']) await stores.payments.reserve(reservation(id, id), 0, null);
    await stores.payments.move('before', ['reserved'], 'settling', { transaction: transferOf('before') });
    await stores.payments.move('none', ['reserved'], 'settling', {});
    await stores.payments.move('before', ['settling'], 'settled', { endedAt: 1 });
    await stores.payments.move('none', ['settling'], 'settled', { transaction: null, endedAt: 1 });
    expect(await due(0)).toEqual(['before']);
  });

  test('are inserted once: of many concurrent moves one settles, and one transfer is there', async () => {
    await stores.payments.reserve(reservation('a', 'a'), 0, null);
    await stores.payments.move('a', ['reserved'], 'settling', {});
    const move = () => stores.payments.move('a', ['settling'], 'settled', { transaction: transferOf('a'), endedAt: 1 });
    expect((await Promise.all(Array.from({ length: 8 }, move))).filter(Boolean)).toHaveLength(1);
    expect(await due(0)).toEqual(['a']);
  });

  test('are checked when they are due, the longest due first, until no more checks are needed', async () => {
    for (const id of ['a', 'b', 'c']) await settle(id, transferOf(id));
    await stores.transfers.note('a', { status: 'received', transaction: null, nextCheckAt: 300 });
    await stores.transfers.note('b', { status: 'received', transaction: null, nextCheckAt: 200 });
    await stores.transfers.note('c', { status: 'completed', transaction: hash32('batch'), nextCheckAt: null });
    expect([await due(199), await due(200), await due(300), await due(300, 1)]).toEqual([[], ['b'], ['b', 'a'], ['b']]);
    await stores.transfers.note('a', { status: 'received', transaction: null, nextCheckAt: 100 });
    expect((await stores.transfers.due(100, 10))[0]?.checks).toBe(2);
  });

  test('of one batch are found by its transaction, and the batch by any of them', async () => {
    for (const id of ['c', 'a', 'b']) await settle(id, transferOf(id));
    const note = (id: string, transaction: Uint8Array | null) =>
      stores.transfers.note(id, { status: 'completed', transaction, nextCheckAt: null });
    await Promise.all([note('c', hash32('batch')), note('a', hash32('batch')), note('b', hash32('another'))]);
    expect(await stores.transfers.paymentsIn(hash32('batch'), 10)).toEqual(['a', 'c']);
    expect(await stores.transfers.paymentsIn(hash32('batch'), 1)).toEqual(['a']);
    expect(await stores.transfers.batchOf('a')).toEqual(Buffer.from(hash32('batch')));
    expect(await stores.transfers.batchOf('unknown')).toBeNull();
  });

  test('are deleted with their payment’s row', async () => {
    await settle('a', transferOf('a'));
    await ledger.sql("DELETE FROM usdc_payments WHERE id = 'a'");
    expect(await due(0)).toEqual([]);
  });
});
