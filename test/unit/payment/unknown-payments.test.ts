import { describe, expect, test } from 'vitest';
import { createUnknownPayments } from '../../../src/payment/limits.ts';
import type { Payment } from '../../../src/store/ports/payments.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const CLIENT = '192.0.2.1';

/** `ends`: the rows that are not unknown any more, by id. A row that ended as `gone` is not in the ledger. */
function open(limits = { payer: 2, client: 3 }) {
  const clock = createManualClock(1_800_000_000_000);
  const ends = new Map<string, Payment['state'] | 'gone'>();
  const get = async (id: string) => {
    const state = ends.get(id) ?? 'unknown';
    return state === 'gone' ? null : ({ state } as Payment);
  };
  const unknown = createUnknownPayments({ ledger: { get }, limits, clock });
  const mayBuy = (payer: string, client: string) =>
    unknown.check(payer, client).then(
      () => true,
      () => false,
    );
  return { ...unknown, mayBuy, ends, clock };
}

describe('payments whose outcome is unknown', () => {
  test.each(['settled', 'failed', 'gone'] as const)(
    'free their own place where they are %s, and no other payment’s',
    async (end) => {
      const { note, mayBuy, ends } = open();
      for (const id of ['a', 'b', 'c']) note(id, `payer of ${id}`, CLIENT);
      ends.set('a', end);
      expect(await mayBuy('another', CLIENT)).toBe(true);
      note('d', 'payer of d', CLIENT);
      expect(await mayBuy('another', CLIENT)).toBe(false);
    },
  );

  test('of clients without an IPv6 site count for no site', async () => {
    const { note, mayBuy } = open();
    for (let at = 0; at < 20; at++) note(`${at}`, `payer ${at}`, `192.0.2.${at}`);
    expect(await mayBuy('another', '192.0.2.100')).toBe(true);
  });

  test('are not limited where the limit is zero', async () => {
    const { note, mayBuy } = open({ payer: 0, client: 0 });
    for (const client of [CLIENT, '2001:db8:1:1::/64'])
      for (let at = 0; at < 20; at++) note(`${at} of ${client}`, 'payer', client);
    expect([await mayBuy('payer', CLIENT), await mayBuy('payer', '2001:db8:1:1::/64')]).toEqual([true, true]);
  });

  test('are remembered up to a bound, and the oldest is forgotten first', async () => {
    const { note, mayBuy, clock } = open({ payer: 2, client: 0 });
    for (const id of ['a', 'b', 'a again', 'b again']) note(id, id.slice(0, 1), CLIENT);
    for (let at = 4; at < 10_000; at++) note(`${at}`, `payer ${at}`, CLIENT);
    /** Whether the two payers may buy. */
    const may = async () => {
      await clock.advance(1000);
      return [await mayBuy('a', CLIENT), await mayBuy('b', CLIENT)];
    };
    expect(await may()).toEqual([false, false]);
    note('one too many', 'payer', CLIENT);
    expect(await may()).toEqual([true, false]);
    note('two too many', 'payer', CLIENT);
    expect(await may()).toEqual([true, true]);
  });
});
