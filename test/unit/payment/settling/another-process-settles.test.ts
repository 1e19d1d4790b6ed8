import { describe, expect, test, vi } from 'vitest';
import { NONCE_USED } from '../../../../src/payment/settler.ts';
import { storedIntent } from '../../../support/ledger/ledger-rows.ts';
import { openSettling, WAIT_MS } from '../../../support/payment/settling-world.ts';

/** A process that settles, and one that sells over the same ledger and asks it. */
function openBoth(serving: Parameters<typeof openSettling>[0] = {}) {
  const leader = openSettling({ bootId: 'leader' });
  const seller = openSettling({ leads: 'in turn', bootId: 'seller', beside: leader, leader, ...serving });
  return { leader, seller };
}

describe('an intent that is handed over', () => {
  test('ends as the other process wrote it, as soon as that is notified', async () => {
    const { leader, seller } = openBoth();
    const payment = await seller.stored('a');
    expect(await seller.settle(payment)).toMatchObject({ id: payment.id, state: 'settled', block: 9 });
    expect([seller.link.asked, seller.left]).toEqual([[payment.id], [[payment.id, 'settled']]]);
    expect([leader.given.length, seller.given.length]).toEqual([1, 0]);
  });

  test('ends as the other process wrote it, also when no notice comes', async () => {
    const { seller } = openBoth();
    seller.link.losesNotices = true;
    const settled = seller.settle(await seller.stored('a'));
    await seller.pass(250);
    expect(await settled).toMatchObject({ state: 'settled' });
  });

  test('that failed is returned as failed', async () => {
    const { leader, seller } = openBoth();
    leader.script.settles = 'fails';
    expect(await seller.settle(await seller.stored('a'))).toMatchObject({ state: 'failed', reason: NONCE_USED });
  });

  test('is unknown when the other process does not end it in time, and may still end later', async () => {
    const { seller } = openBoth();
    seller.link.losesRequests = true;
    const payment = await seller.stored('a');
    const settled = seller.settle(payment);
    await seller.pass(WAIT_MS);
    expect(await settled).toMatchObject({ id: payment.id, state: 'unknown' });
    expect([seller.left, await seller.pay(payment)]).toEqual([[[payment.id, 'unknown']], true]);
  });

  test('is unknown at once when the other process says that it cannot end it now', async () => {
    const { leader, seller } = openBoth();
    leader.script.settles = 'does not know';
    expect(await seller.settle(await seller.stored('a'))).toMatchObject({ state: 'unknown' });
  });

  test('that was released meanwhile returns null, and nothing is written', async () => {
    const { seller } = openBoth();
    seller.link.losesRequests = true;
    const payment = await seller.stored('a');
    const settled = seller.settle(payment);
    await seller.ledger.abandon(payment.id);
    seller.link.tell(payment.id);
    expect([await settled, seller.left]).toEqual([null, [[payment.id, null]]]);
  });
});

describe('a row that another process settles', () => {
  const deaf = (waitMs = WAIT_MS) => {
    const { seller } = openBoth({ waitMs });
    seller.link.losesRequests = true;
    return seller;
  };

  test('is read four times a second until SETTLE_WAIT_MS is over, and then its outcome is unknown', async () => {
    const { settling, stored, reads, clock, pass } = deaf(600);
    const got = settling.resume(await stored('a'));
    for (let at = 0; at < 12; at++) await pass(50);
    expect(await got).toMatchObject({ state: 'unknown' });
    // The last one is the report after it was written down as unknown.
    expect([reads, clock.pendingSleeps()]).toEqual([[250, 500, 600, 600], []]);
  });

  test.each(['stored', 'unknown'] as const)(
    'and was %s when it was presented is waited for until it has ended, although no notice came',
    async (state) => {
      const { settling, reads, pay, pass, ...world } = deaf();
      const row = await world[state]('a');
      const got = settling.resume(row);
      await pass(300);
      await pay(row);
      await pass(200);
      expect([reads, await got]).toMatchObject([[250, 500], { state: 'settled' }]);
    },
  );

  test('wakes each waiting call when its end is reported, also after another call has stopped waiting', async () => {
    const { settling, unknown, link, pay, pass } = deaf(600);
    const row = await unknown('a');
    const first = settling.resume(row);
    await pass(300);
    const later = [settling.resume(row), settling.resume(row)];
    await pass(300);
    expect(await first).toMatchObject({ state: 'unknown' });
    await pay(row);
    link.tell(row.id);
    // No time passes.
    for (const one of await Promise.all(later)) expect(one).toMatchObject({ state: 'settled' });
  });

  test('keeps nothing of a call that has its answer', async () => {
    const { settling, stored, link, pay, pass } = deaf();
    const row = await stored('a');
    await pay(row);
    const got = settling.resume(row);
    await pass(250);
    await got;
    const abort = vi.spyOn(AbortController.prototype, 'abort');
    for (const id of [row.id, 'a row that no call ever waited for']) link.tell(id);
    expect(abort).not.toHaveBeenCalled();
    abort.mockRestore();
  });
});

describe('a process that does not settle', () => {
  test('counts the kept replies before it sells, because they use the same reply store', async () => {
    const { seller: before } = openBoth();
    await before.settle(await before.stored('a'));
    const { settling, ledger } = openSettling({ leads: 'in turn', beside: before, storeBytes: 5 });
    expect(ledger.hasRoom()).toBe(true);
    await settling.start(() => {});
    expect(ledger.hasRoom()).toBe(false);
  });

  test('counts them once it has joined the others, because what is left is divided among all', async () => {
    const { seller: before } = openBoth();
    await before.settle(await before.stored('a'));
    const { settling, reserved, ledger } = openSettling({
      leads: 'in turn',
      beside: before,
      storeBytes: 15,
      instances: 2,
    });
    await settling.start(() => {});
    // Five bytes are kept. Of the other ten this instance may fill five.
    const [fits, tooMuch] = [await reserved('b'), await reserved('c')];
    expect(await ledger.storeIntent(fits.id, storedIntent('12345'))).toBe(true);
    expect(await ledger.storeIntent(tooMuch.id, storedIntent('1'))).toBe(false);
  });

  test('starts also while they cannot be counted, and says so', async () => {
    const err = new Error('the disk is away');
    const { settling, warned } = openSettling({ leads: 'in turn', broken: { purge: () => Promise.reject(err) } });
    await settling.start(() => {});
    expect(warned).toEqual([{ err }]);
  });

  test('releases reservations that no call serves, and leaves intents and other processes’ rows alone', async () => {
    const { seller } = openBoth();
    const rows = [await seller.stored('served'), await seller.stored('stored'), await seller.reserved('reserved')];
    await seller.settling.reconcile(({ id }) => id === rows[0]?.id);
    expect(await Promise.all(rows.map(seller.stateOf))).toEqual(['settling', 'unknown', null]);
    expect([seller.lookups, seller.given]).toEqual([[], []]);
  });

  test('deletes expired replies in its rounds', async () => {
    const { seller } = openBoth();
    await seller.settle(await seller.stored('a'));
    // The longest that an answer which was not delivered is kept.
    await seller.clock.advance(7 * 24 * 3_600_000);
    await seller.settling.reconcile(() => false);
    expect(await seller.store.replyBytes()).toBe(0);
  });

  test('neither settles for others, nor reports to them', async () => {
    const { settling, stored, stateOf, link } = openBoth().seller;
    const payment = await stored('a');
    expect([await settling.carry(payment.id), settling.report(), settling.detail()]).toEqual([false, null, null]);
    expect([await stateOf(payment), link.asked]).toEqual(['settling', []]);
  });
});
