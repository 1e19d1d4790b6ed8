import { describe, expect, test } from 'vitest';
import { NONCE_USED, REVERTED } from '../../../../src/payment/settler.ts';
import { reservation, sale, storedIntent } from '../../../support/ledger/ledger-rows.ts';
import { type OpenSettling, openSettling, WAIT_MS } from '../../../support/payment/settling-world.ts';

const served = () => false;
const idOf = ({ id }: { readonly id: string }) => id;

describe('a fresh intent', () => {
  test('is sent at once, and its end is written with what was paid', async () => {
    const { settle, stored, given, lookups } = openSettling();
    const payment = await stored('a');
    const paid = { id: payment.id, state: 'settled', block: 9, charged: 500n, signature: null };
    expect(await settle(payment)).toMatchObject(paid);
    expect([given, lookups]).toMatchObject([[{ id: payment.id, fromBlock: 7, broadcast: false }], []]);
  });

  test('that fails is failed under the lease that this process settles under', async () => {
    const alone = openSettling();
    const leading = openSettling({ leads: 'in turn' });
    await leading.settling.start(() => {});
    await leading.leader().lead(17);
    for (const { script, settle, stored } of [alone, leading]) {
      script.settles = 'fails';
      expect(await settle(await stored('a'))).toMatchObject({ state: 'failed', reason: NONCE_USED });
    }
    expect([alone.fences, leading.fences]).toEqual([[undefined], [17]]);
    await leading.settling.stop();
  });

  test('leaves a line for the operator: which payment, how it ended, and why where it failed', async () => {
    const { script, settle, stored, said } = openSettling();
    const [paid, failed] = [await stored('a'), await stored('b')];
    await settle(paid);
    script.settles = 'fails';
    await settle(failed);
    expect(said).toEqual([
      { payment: paid.id, outcome: 'settled' },
      { payment: failed.id, outcome: 'failed', reason: NONCE_USED },
    ]);
  });

  test('without an end in time is unknown to its buyer, and ends all the same', async () => {
    const { script, settle, stored, settling, stateOf, pass } = openSettling();
    const late = Promise.withResolvers<void>();
    script.held = late.promise;
    const payment = await stored('a');
    const reported = settle(payment);
    await pass(WAIT_MS);
    expect(await reported).toMatchObject({ state: 'unknown' });
    late.resolve();
    await settling.stop();
    expect(await stateOf(payment)).toBe('settled');
  });

  test('of a rail that is off stays as it is', async () => {
    const { settle, stored, given, errors } = openSettling({ rails: ['usdc-gateway'] });
    expect(await settle(await stored('a'))).toMatchObject({ state: 'unknown' });
    expect([given, errors]).toEqual([[], []]);
  });

  test('returns null when its row was deleted, and leaves no timer', async () => {
    const { settle, stored, ledger, clock, errors } = openSettling();
    const payment = await stored('a');
    await ledger.abandon(payment.id);
    expect([await settle(payment), clock.pendingSleeps(), errors]).toEqual([null, [], []]);
  });
});

describe('a payment that is presented again', () => {
  test('with a call of its own is sent with that call, to the contract that its payer signed for', async () => {
    const { settling, unknown, ledger, store, given } = openSettling();
    const { id, contract } = await unknown('deposit');
    const calldata = Buffer.from('the deposit');
    await store.move(id, ['unknown'], 'unknown', { calldata });
    await settling.resume((await ledger.get(id))!);
    expect(given[0]?.call).toEqual({ to: contract, data: calldata });
  });

  test('is looked up first, and sent where the evidence leaves it open', async () => {
    const { settling, unknown, lookups, given } = openSettling();
    const payment = await unknown('a', { sent: true, hasCode: true });
    expect(await settling.resume(payment)).toMatchObject({ state: 'settled' });
    const { id, payer: from, payTo: to, amount: value, validAfter, validBefore, nonce, signature } = payment;
    const authorization = { from, to, value, validAfter, validBefore, nonce, signature };
    expect(lookups).toEqual([{ id, rank: 'settle', fromBlock: 7 }]);
    expect(given).toEqual([{ id, call: null, fromBlock: 7, broadcast: true, hasCode: true, authorization }]);
  });

  test.each([
    ['settled', 'paid'],
    ['failed', 'failed'],
    ['unknown', 'unclear'],
  ] as const)('is %s where the evidence says %s, and is not sent', async (state, says) => {
    const { settling, unknown, script, given } = openSettling();
    script.evidence = says;
    expect(await settling.resume(await unknown('a', { sent: true }))).toMatchObject({ state });
    expect(given).toEqual([]);
  });

  test('stays open where the evidence cannot be read, which is said', async () => {
    const { settling, unknown, script, given, errors } = openSettling();
    script.evidence = 'unreadable';
    const payment = await unknown('a', { sent: true });
    expect(await settling.resume(payment)).toMatchObject({ state: 'unknown' });
    expect([errors, given]).toMatchObject([[{ payment: payment.id }], []]);
  });

  test('is looked up once a second, however often its buyer asks; meanwhile it stays as it is', async () => {
    const { settling, unknown, script, lookups, clock } = openSettling();
    script.evidence = 'unclear';
    const payment = await unknown('a', { sent: true });
    await settling.resume(payment);
    await clock.advance(999);
    for (let time = 0; time < 5; time++) expect(await settling.resume(payment)).toMatchObject({ state: 'unknown' });
    expect(lookups).toHaveLength(1);
    await clock.advance(1);
    script.evidence = 'paid';
    expect(await settling.resume(payment)).toMatchObject({ state: 'settled' });
    expect(lookups).toHaveLength(2);
  });

  test('and again is looked up after what is more urgent, from the third lookup on', async () => {
    const { settling, unknown, script, lookups, clock } = openSettling();
    script.settles = 'does not know';
    const payment = await unknown('a', { sent: true });
    for (let time = 0; time < 4; time++) {
      await settling.resume(payment);
      await clock.advance(1000);
    }
    await settling.carry(payment.id);
    expect(lookups.map(({ rank }) => rank)).toEqual(['settle', 'settle', 'collect', 'collect', 'collect']);
  });

  test('by several at once is looked up and sent once for all of them', async () => {
    const { settling, unknown, lookups, given } = openSettling();
    const payment = await unknown('a', { sent: true });
    const ends = await Promise.all([settling.resume(payment), settling.resume(payment)]);
    expect(ends.map((end) => end?.state)).toEqual(['settled', 'settled']);
    expect([lookups.length, given.length]).toEqual([1, 1]);
  });

  test('of a rail that is off, or without its signature, stays as it is', async () => {
    const off = openSettling({ rails: ['usdc-gateway'] });
    const payment = await off.unknown('a', { sent: true });
    const on = openSettling({ beside: off });
    expect(await off.settling.resume(payment)).toMatchObject({ state: 'unknown' });
    expect(await on.settling.resume({ ...payment, signature: null })).toMatchObject({ state: 'unknown' });
    for (const { lookups, given, errors } of [off, on]) expect([lookups, given, errors]).toEqual([[], [], []]);
  });

  test.each([
    ['has ended', ({ ledger }: OpenSettling, id: string) => ledger.failed(id, 'gone')],
    ['is gone', async ({ db }: OpenSettling, id: string) => db.exec(`DELETE FROM usdc_payments WHERE id = '${id}'`)],
  ])('and %s while it was looked up is not sent', async (_, end) => {
    const world = openSettling();
    const payment = await world.unknown('a');
    world.script.meanwhile = () => end(world, payment.id);
    await world.settling.resume(payment);
    expect([world.lookups.length, world.given, world.errors]).toEqual([1, [], []]);
  });

  test('from before it was known whether its payer has code is treated as one that has', async () => {
    const { settling, unknown, ledger, db, given } = openSettling();
    const { id } = await unknown('a', { sent: true });
    db.exec('UPDATE usdc_payments SET payer_has_code = NULL, checked_block = NULL');
    await settling.resume((await ledger.get(id))!);
    expect(given).toMatchObject([{ hasCode: true, fromBlock: 0 }]);
  });
});

/** A reverted authorization that is sold again: this ledger handed it over for its first sale. */
async function soldAgain({ ledger, stored }: OpenSettling): Promise<string> {
  const first = await stored('again', { sent: true });
  await ledger.failed(first.id, REVERTED);
  const id = String(await ledger.reserve(sale('again'), true));
  await ledger.storeIntent(id, storedIntent());
  return id;
}

describe('where other ledgers sell to the same seller out of the same evidence', () => {
  test('a payment that was made before this ledger handed it over is not ours', async () => {
    const { settling, unknown, script } = openSettling({ ownOnly: true });
    script.evidence = 'paid';
    expect(await settling.resume(await unknown('a'))).toMatchObject({
      state: 'failed',
      reason: 'payment_already_used',
    });
  });

  test('what this ledger handed over, for this sale or an earlier one, is its own', async () => {
    const world = openSettling({ ownOnly: true });
    world.script.evidence = 'paid';
    const sent = await world.unknown('a', { sent: true });
    expect(await world.settling.resume(sent)).toMatchObject({ state: 'settled', charged: 500n });
    const id = await soldAgain(world);
    await world.ledger.unknown(id);
    expect(await world.settling.resume((await world.ledger.get(id))!)).toMatchObject({ id, state: 'settled' });
  });

  test('what shows as open is sent, and what shows as failed has failed for its own reason', async () => {
    const { settling, unknown, script, given } = openSettling({ ownOnly: true });
    expect(await settling.resume(await unknown('a'))).toMatchObject({ state: 'settled' });
    script.evidence = 'failed';
    expect(await settling.resume(await unknown('b'))).toMatchObject({ state: 'failed', reason: NONCE_USED });
    expect(given).toHaveLength(1);
  });

  test('and on a rail of its own, whatever shows as paid counts', async () => {
    const { settling, unknown, script, given } = openSettling();
    script.evidence = 'paid';
    expect(await settling.resume(await unknown('a'))).toMatchObject({ state: 'settled' });
    expect(given).toEqual([]);
  });
});

describe('a row of another process', () => {
  test('that was never sent is sent without a lookup, once, however often the process asks', async () => {
    const { settling, stored, stateOf, lookups, given } = openSettling();
    const payment = await stored('a', { by: 'other' });
    await Promise.all([settling.carry(payment.id), settling.carry(payment.id)]);
    // This process settles: it answers each request for a row, also when there was nothing to do.
    expect(await settling.carry(payment.id)).toBe(true);
    expect([await stateOf(payment), lookups, given.length]).toEqual(['settled', [], 1]);
  });

  test('that was sent before, or failed before, is looked up first', async () => {
    const world = openSettling();
    const sent = await world.stored('a', { sent: true });
    const id = await soldAgain(world);
    for (const one of [sent.id, id]) await world.settling.carry(one);
    expect(world.lookups).toMatchObject([sent, { id }].map((one) => ({ id: one.id, rank: 'settle' })));
    expect(world.given).toHaveLength(2);
  });

  test('whose buyer got settlement_unknown is looked up, even when no transaction was noted', async () => {
    const { settling, unknown, script, stateOf, lookups, given } = openSettling();
    const payment = await unknown('a');
    script.evidence = 'paid';
    await settling.carry(payment.id);
    expect([await stateOf(payment), lookups.length, given]).toEqual(['settled', 1, []]);
  });

  test('that may have been sent is not sent while the evidence cannot be read', async () => {
    const { settling, stored, script, stateOf, given } = openSettling();
    script.evidence = 'unreadable';
    const payment = await stored('a', { sent: true });
    expect(await settling.carry(payment.id)).toBe(true);
    expect([await stateOf(payment), given]).toEqual(['settling', []]);
  });

  test('that waits for no settlement is left alone', async () => {
    const { settling, reserved, stateOf, given, lookups } = openSettling();
    const payment = await reserved('a');
    for (const id of [payment.id, 'nobody']) await settling.carry(id);
    expect([await stateOf(payment), given, lookups]).toEqual(['reserved', [], []]);
  });

  test('that cannot be read now costs no more than this try', async () => {
    const away = () => Promise.reject(new Error('the ledger is away'));
    expect(await openSettling({ broken: { get: away } }).settling.carry('a')).toBe(true);
  });
});

describe('a round of reconciliation', () => {
  /** Rows straight into the store, all unknown. */
  async function putUnknown({ store }: OpenSettling, ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      await store.reserve(reservation(id, id), 0, null);
      await store.move(id, ['reserved'], 'settling', { signature: Buffer.alloc(65, 1) });
      await store.move(id, ['settling'], 'unknown', {});
    }
  }
  const names = (of: string, count: number) =>
    Array.from({ length: count }, (_, at) => `${of} ${String(at).padStart(4, '0')}`);
  /** Which rows a round looks up. */
  const roundOf =
    ({ settling, lookups }: OpenSettling) =>
    async (isInUse: (row: { readonly id: string }) => boolean = served): Promise<string[]> => {
      const before = lookups.length;
      await settling.reconcile(isInUse);
      return lookups.slice(before).map(idOf);
    };

  test('gives back a reservation that no call works on, brings the rest to its end, and leaves what is served', async () => {
    const { settling, reserved, stored, unknown, stateOf, lookups } = openSettling();
    const rows = [
      ...[await reserved('reserved'), await stored('left', { sent: true })],
      ...[await unknown('open'), await stored('mine')],
    ];
    await settling.reconcile(({ id }) => id === rows.at(-1)?.id);
    await settling.stop();
    expect(await Promise.all(rows.map(stateOf))).toEqual([null, 'settled', 'settled', 'settling']);
    expect(lookups.map(({ rank }) => rank)).toEqual(['collect', 'collect']);
  });

  test('leaves alone what a call works on, until it is unknown or a transaction is noted for it', async () => {
    const { settling, stored, unknown, stateOf, script } = openSettling();
    script.evidence = 'unclear';
    const rows = [await stored('in use'), await stored('noted', { sent: true }), await unknown('unknown')];
    const asked: string[] = [];
    await settling.reconcile(({ id }) => asked.push(id) > 0);
    expect(asked).toEqual([rows[0]?.id]);
    expect(await Promise.all(rows.map(stateOf))).toEqual(['settling', 'unknown', 'unknown']);
  });

  test('marks the row of a disconnected buyer unknown until the evidence shows its end', async () => {
    const { settling, stored, stateOf, script } = openSettling();
    script.evidence = 'unclear';
    const payment = await stored('a', { sent: true });
    await settling.reconcile(served);
    expect(await stateOf(payment)).toBe('unknown');
  });

  test('looks at a row again after pauses that double up to a minute, so that old rows cost little', async () => {
    const world = openSettling();
    world.script.evidence = 'unclear';
    await world.unknown('a', { sent: true });
    const at: number[] = [];
    for (let second = 0; second <= 200; second++) {
      if ((await roundOf(world)()).length > 0) at.push(second);
      await world.clock.advance(1000);
    }
    expect(at).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183]);
  });

  test('looks up a hundred rows at most, and the next round goes on from there', async () => {
    const world = openSettling();
    world.script.evidence = 'unclear';
    const ids = names('row', 250);
    await putUnknown(world, ids);
    const round = roundOf(world);
    const rounds = [await round(), await round(), await round()];
    expect(rounds).toEqual([ids.slice(0, 100), ids.slice(100, 200), ids.slice(200)]);
    // All were just looked at.
    expect(await round()).toEqual([]);
    await world.clock.advance(1000);
    expect(await round()).toEqual(ids.slice(0, 100));
    expect((await round())[0]).toBe(ids[100]);
  });

  test('goes on where the last one ended also where the rows before are due again: no row is starved', async () => {
    const world = openSettling();
    world.script.evidence = 'unclear';
    const ids = names('row', 150);
    await putUnknown(world, ids);
    await roundOf(world)();
    await world.clock.advance(60_000);
    expect(await roundOf(world)()).toEqual(ids.slice(100));
  });

  test('is not held up by rows that are served, or reserved, or whose turn has not come', async () => {
    const world = openSettling();
    world.script.evidence = 'unclear';
    const [mine, reserved, early] = [names('a mine', 110), names('b reserved', 110), names('c early', 90)];
    const due = names('d due', 90);
    await putUnknown(world, [...mine, ...early]);
    for (const id of mine) world.db.exec(`UPDATE usdc_payments SET state = 'settling' WHERE id = '${id}'`);
    for (const id of reserved) await world.store.reserve(reservation(id, id), 0, null);
    const isInUse = ({ id }: { readonly id: string }) => mine.includes(id);
    expect(await roundOf(world)(isInUse)).toEqual(early);
    expect((await world.ledger.countByState()).reserved).toBe(0);
    await putUnknown(world, due);
    expect(await roundOf(world)(isInUse)).toEqual(due);
  });

  test('waits for a look a tenth of what a buyer waits, and then goes on to the next row', async () => {
    const { settling, unknown, script, given, ledger, pass } = openSettling();
    const late = Promise.withResolvers<void>();
    script.held = late.promise;
    for (const name of ['a', 'b']) await unknown(name, { sent: true });
    let isOver = false;
    const round = settling.reconcile(served).then(() => {
      isOver = true;
    });
    await pass(WAIT_MS / 10 - 1);
    expect(given).toHaveLength(1);
    await pass(1);
    expect([given.length, isOver]).toEqual([2, false]);
    await pass(WAIT_MS / 10);
    await round;
    // What is under way is not begun again.
    await settling.reconcile(served);
    expect(given).toHaveLength(2);
    late.resolve();
    await settling.stop();
    expect((await ledger.countByState()).settled).toBe(2);
  });

  test('deletes expired replies', async () => {
    const { settling, settle, stored, store, ledger, clock } = openSettling();
    const payment = await stored('a');
    await settle(payment);
    expect([await store.replyBytes(), await ledger.delivered(payment.id)]).toEqual([5, true]);
    await clock.advance(900_001);
    await settling.reconcile(served);
    expect(await store.replyBytes()).toBe(0);
  });
});
