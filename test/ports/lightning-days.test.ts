import { expect, test } from 'vitest';
import type { ClaimAccount } from '../../src/store/ports/lightning.ts';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';
import { accountedOf, grantOf, hashOf, keyOf, nodeOf, TODAY } from '../support/lightning/lightning-rows.ts';

// What a facilitator's claim counts, to the edge: its day, client and payee, and who is known on that day.

const EARLIER = ['2026-02-28', '2026-03-01', '2026-03-02'];
const REFUSED = { dailyCap: 0 };

describePorts('the counters of the facilitator’s days', (adapter) => {
  const ledger = useLedger(adapter);
  const store = ofNow(() => ledger.stores.lightning);

  const claimFor = (name: string, payee: string, more: Partial<ClaimAccount> = {}, client = payee) => {
    const hashes = { clientHash: hashOf(client), payeeClientHash: hashOf(`${client} of ${payee}`) };
    return store.claim(accountedOf(name, { ...hashes, ...more }, { payTo: nodeOf(payee) }));
  };
  /** One claim a day for a payee, by two clients in turn. */
  const claimOn = async (payee: string, days: readonly string[], clients = ['x', 'y']) => {
    for (const [at, day] of days.entries())
      await claimFor(`${payee} ${day}`, payee, { day }, clients[at % clients.length]);
  };
  const dayRow = async (day = TODAY) => {
    const [row] = await ledger.sql(`SELECT claims, known_payees FROM lightning_facilitator_days WHERE day = '${day}'`);
    return Object.values(row ?? {}).map((value) => (value === null ? null : Number(value)));
  };
  /** As the version before the column leaves the day. */
  const forgetKnown = () => ledger.sql('UPDATE lightning_facilitator_days SET known_payees = NULL');

  test('count as known who had three of the thirty days before, and two clients: when the day begins', async () => {
    await claimOn('known', EARLIER);
    await claimOn('since the first of them', ['2026-02-01', ...EARLIER.slice(1)]);
    await claimOn('two clients on one day', EARLIER, ['x']);
    await claimFor('by another', 'two clients on one day', { day: EARLIER[0] ?? '' }, 'y');
    await claimOn('one client', EARLIER, ['x']);
    await claimOn('long ago', ['2026-01-29', '2026-01-30', '2026-01-31']);
    await claimOn('later', ['2026-03-04', '2026-03-05', '2026-03-06']);
    await claimOn('today too', [...EARLIER.slice(1), TODAY]);
    expect(await dayRow()).toEqual([1, 3]);
    await forgetKnown();
    expect(await claimFor('another', 'another')).toBe('claimed');
    expect(await dayRow()).toEqual([2, 3]);
  });

  test('count the known payees of a day without their number at a claim that is refused too', async () => {
    await claimOn('known', EARLIER);
    await claimFor('first', 'first');
    await forgetKnown();
    expect(await dayRow()).toEqual([1, null]);
    expect(await claimFor('second', 'second', REFUSED)).toBe('daily_cap');
    expect(await dayRow()).toEqual([1, 1]);
  });

  test('give each known payee its part of the day, and no claim more', async () => {
    for (const payee of ['a', 'b', 'c']) await claimOn(payee, EARLIER);
    const caps = { dailyCap: 3, openCap: 0 };
    expect([await claimFor('a 1', 'a', caps), await claimFor('a 2', 'a', caps)]).toEqual(['claimed', 'known_cap']);
    expect([await claimFor('b 1', 'b', caps), await claimFor('c 1', 'c', caps)]).toEqual(['claimed', 'claimed']);
  });

  test('give the parts for those who were known when the day began', async () => {
    const caps = { dailyCap: 4, openCap: 0 };
    await claimOn('a', EARLIER);
    expect(await claimFor('a 1', 'a', caps)).toBe('claimed');
    await claimOn('b', EARLIER);
    for (const name of ['a 2', 'a 3', 'a 4']) expect(await claimFor(name, 'a', caps)).toBe('claimed');
  });

  test.each([
    [{ dailyCap: 3, openCap: 1 }, 'claimed'],
    [{ dailyCap: 4, openCap: 2 }, 'known_cap'],
  ] as const)(
    'give who became known since a day without known payees began all of their part: %o',
    async (caps, end) => {
      for (let at = 0; at < caps.openCap; at++) expect(await claimFor(`open ${at}`, 'late', caps)).toBe('claimed');
      expect(await dayRow()).toEqual([caps.openCap, 0]);
      await claimOn('late', EARLIER);
      expect(await claimFor('now', 'late', caps)).toBe(end);
    },
  );

  test('take one client for one, however often it claims on a day', async () => {
    for (const day of EARLIER) {
      for (const name of ['1', '2', '3']) await claimFor(`${name} ${day}`, 'payee', { day }, 'the same');
    }
    expect(await claimFor('now', 'payee', { openCap: 0 })).toBe('open_cap');
    expect(await claimFor('in the open part', 'payee', {}, 'another')).toBe('claimed');
  });

  test('have no row of a claim that was refused', async () => {
    expect(await claimFor('a', 'a', REFUSED)).toBe('daily_cap');
    for (const table of ['clients', 'payees', 'nodes'])
      expect(await ledger.sql(`SELECT claims FROM lightning_facilitator_${table}`)).toEqual([]);
    expect(await store.facilitatorCounts(TODAY, nodeOf('a'))).toEqual({ total: 0, today: 0, nodes: 0, own: 0 });
  });

  test('have caps of zero, which nobody passes', async () => {
    expect(await claimFor('a', 'a', { clientCap: 0 })).toBe('client_cap');
    expect(await claimFor('a', 'a', { payeeCap: 0 })).toBe('payee_cap');
    expect(await claimFor('a', 'a', { clientCap: 1, payeeCap: 1 })).toBe('claimed');
  });

  test('count the same hash on another network as a proof of its own', async () => {
    const elsewhere = { network: 'lnbtc:000000000933ea01ad0ee984209779ba' };
    expect(await store.claim(accountedOf('a'))).toBe('claimed');
    expect(await store.findClaim({ ...keyOf('a'), ...elsewhere })).toBeNull();
    expect(await store.claim(accountedOf('a', {}, elsewhere))).toBe('claimed');
    expect(await store.facilitatorCounts(TODAY, null)).toMatchObject({ total: 2 });
  });

  test('a grant that replaces a facilitator’s claim takes its amount too, and no claim without a grant does', async () => {
    await store.claim(accountedOf('a', {}, { amountMsat: 1n }));
    expect(await store.claim(grantOf('a', { grant: null, amountMsat: 2n }))).toBe('duplicate');
    expect(await store.findClaim(keyOf('a'))).toMatchObject({ amountMsat: 1n, grant: null });
    expect(await store.claim(grantOf('a', { amountMsat: 3n }))).toBe('claimed');
    expect(await store.findClaim(keyOf('a'))).toMatchObject({ amountMsat: 3n });
  });
});
