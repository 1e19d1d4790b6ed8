import { expect, test } from 'vitest';
import { channelTerms, depositSale, refundOf, settleDeposit } from '../support/ledger/channel-rows.ts';
import { describePorts } from '../support/ledger/ledger-adapters.ts';
import { useChannels } from '../support/ledger/use-channels.ts';

const OLD = 1000;

describePorts('the row of a payment channel', (adapter) => {
  const { ledger, payments, channels, seen, pay, deposit } = useChannels(adapter);
  const isKept = async (name = 'a') => (await channels.get(channelTerms(name).id)) !== null;

  test('that has bought nothing is deleted once it was not read for long enough, as many at a time as are asked for', async () => {
    for (const [name, readAt] of Object.entries({ a: OLD - 2, b: OLD - 1, c: OLD })) await seen(name, {}, readAt);
    expect(await channels.prune(OLD, 1)).toBe(1);
    expect([await isKept('a'), await isKept('b')]).toEqual([false, true]);
    expect([await channels.prune(OLD, 5), await channels.prune(OLD, 5)]).toEqual([1, 0]);
    expect([await isKept('b'), await isKept('c')]).toEqual([false, true]);
    await seen('a', {}, OLD);
    expect(await isKept('a')).toBe(true);
  });

  test('that has bought a call stays, by voucher, by deposit, and by a ledger that is lost', async () => {
    await seen('a', {}, 1);
    await pay('s1', 100n);
    await seen('b', {}, 1);
    await payments.reserve(depositSale('d', 'b', 100n), 0, null);
    await settleDeposit(ledger.stores, 'd', 101);
    await seen('c', { totalClaimed: 1n }, 1);
    expect(await channels.prune(OLD, 5)).toBe(0);
  });

  test('whose deposit is open or has failed stays: a third party may have made it since', async () => {
    await seen('a', {}, 1);
    await deposit('d', 100n);
    expect(await channels.prune(OLD, 5)).toBe(0);
    await payments.move('d', ['reserved'], 'failed', { reason: 'reverted', signature: null, endedAt: 1 });
    expect(await channels.prune(OLD, 5)).toBe(0);
  });

  test('whose deposit was released is deleted', async () => {
    await seen('a', {}, 1);
    await deposit('d', 100n);
    await payments.release('d', ['reserved']);
    expect(await channels.prune(OLD, 5)).toBe(1);
  });

  test('that is being refunded stays until the refund has ended', async () => {
    await seen('a', {}, 1);
    await channels.begin(refundOf('r', 'a'), { charged: 0n });
    expect(await channels.prune(OLD, 5)).toBe(0);
    await channels.end('r', { state: 'failed', reason: 'x', endedAt: 2 });
    expect(await channels.prune(OLD, 5)).toBe(1);
  });
});
