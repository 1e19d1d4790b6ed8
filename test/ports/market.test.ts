import { describe, expect, test } from 'vitest';
import type { ListingRow } from '../../src/store/ports/market.ts';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';
import { listingRow } from '../support/ledger/market-rows.ts';

const BOUNDS = { total: 5, perDomain: 3 };

const failed = (more: Partial<ListingRow>) => listingRow({ reason: 'timeout', failures: 1, ...more });

describePorts('the market’s store', (adapter) => {
  const ledger = useLedger(adapter);
  const store = ofNow(() => ledger.stores.market);

  describe('listing', () => {
    test('happens once for a place; a second time changes the listing and keeps its first time', async () => {
      expect(await store.put(listingRow(), 12.6, BOUNDS)).toBe('listed');
      expect(await store.put(listingRow({ listing: '{"n":2}', checkedAt: 2000, pricedAt: 2000 }), 20, BOUNDS)).toBe(
        'updated',
      );
      expect(await store.find('a.example/x')).toEqual({
        ...listingRow({ listing: '{"n":2}', checkedAt: 2000, pricedAt: 2000 }),
        listedAt: 1000,
        calls: 2,
        answered: 2,
        medianLatencyMs: 13,
      });
      expect(await store.find('a.example/y')).toBeNull();
    });

    test('a second time takes each member of the new row but the place and the first time', async () => {
      await store.put(listingRow(), 1, BOUNDS);
      const other = listingRow({
        domain: 'other.example',
        listing: '{"n":3}',
        method: 'POST',
        pricedAt: 1500,
        checkedAt: 2000,
        reason: 'timeout',
        failures: 4,
        offlineAt: 1800,
        dueAt: 9000,
      });
      await store.record(other, null, 0);
      expect(await store.find('a.example/x')).toMatchObject({ ...other, listedAt: 1000 });
      await store.record(listingRow({ checkedAt: 3000 }), 1, 0);
      expect(await store.find('a.example/x')).toMatchObject({ offlineAt: null, method: 'GET', domain: 'a.example' });
    });

    test('is limited by domain and in total, for new listings only', async () => {
      const put = (place: string, domain: string) => store.put(listingRow({ place, domain }), 1, BOUNDS);
      for (const n of [1, 2, 3]) expect(await put(`a.example/${n}`, 'a.example')).toBe('listed');
      expect(await put('a.example/4', 'a.example')).toBe('domain_full');
      for (const n of [1, 2]) expect(await put(`b.example/${n}`, 'b.example')).toBe('listed');
      expect(await put('c.example/1', 'c.example')).toBe('market_full');
      expect(await put('a.example/3', 'a.example')).toBe('updated');
      expect([await store.find('a.example/4'), await store.find('c.example/1')]).toEqual([null, null]);
      await store.drop('a.example/1');
      expect(await put('c.example/1', 'c.example')).toBe('listed');
    });

    test('of a root counts for its domain, and stops nobody else', async () => {
      const put = (place: string, domain: string) =>
        store.put(listingRow({ place, domain }), 1, { total: 99, perDomain: 2 });
      expect(await put('many.example', 'many.example')).toBe('listed');
      expect(await put('one.many.example', 'many.example')).toBe('listed');
      expect(await put('two.many.example', 'many.example')).toBe('domain_full');
      expect(await put('other.example/x', 'other.example')).toBe('listed');
    });

    test('counts hosts of a domain by their names, whatever domain is stored with them', async () => {
      const put = (place: string, domain: string) =>
        store.put(listingRow({ place, domain }), 1, { total: 99, perDomain: 3 });
      for (const [place, domain] of [
        ['one.shared.example/x', 'one.shared.example'],
        ['two.shared.example./x', 'two.shared.example'],
        ['shared.example/x', 'shared.example'],
        // Neither of these is of that domain.
        ['unshared.example/x', 'unshared.example'],
        ['shared.example.net/shared.example', 'example.net'],
      ] as const) {
        expect([place, await put(place, domain)]).toEqual([place, 'listed']);
      }
      expect(await put('three.shared.example/x', 'shared.example')).toBe('domain_full');
      expect(await put('four.unshared.example/x', 'unshared.example')).toBe('listed');
      await store.drop('two.shared.example./x');
      expect(await put('three.shared.example/x', 'shared.example')).toBe('listed');
    });
  });

  describe('calls', () => {
    test('count towards a listing’s figures while they are kept', async () => {
      await store.put(listingRow(), 100, BOUNDS);
      await store.record(failed({ checkedAt: 2000 }), null, 0);
      for (const [at, latency] of [
        [3000, 10],
        [4000, 30],
        [5000, 20],
      ] as const) {
        await store.record(listingRow({ checkedAt: at }), latency, 0);
      }
      expect(await store.find('a.example/x')).toMatchObject({ calls: 5, answered: 4, medianLatencyMs: 20 });
      await store.record(listingRow({ checkedAt: 6000 }), 40, 3000);
      expect(await store.find('a.example/x')).toMatchObject({
        calls: 4,
        answered: 4,
        medianLatencyMs: 20,
        checkedAt: 6000,
      });
      await store.record(failed({ checkedAt: 7000 }), null, 7000);
      expect(await store.find('a.example/x')).toMatchObject({
        calls: 1,
        answered: 0,
        medianLatencyMs: null,
        reason: 'timeout',
      });
    });

    test('count for their own listing alone, and are forgotten for it alone', async () => {
      const [one, other] = ['a.example/one', 'a.example/other'];
      await store.put(listingRow({ place: one, checkedAt: 1000 }), 10, BOUNDS);
      await store.put(listingRow({ place: other, checkedAt: 1000 }), 90, BOUNDS);
      await store.record(listingRow({ place: other, checkedAt: 2000 }), 80, 0);
      await store.record(listingRow({ place: other, checkedAt: 3000 }), 70, 0);
      await store.record(listingRow({ place: one, checkedAt: 4000 }), 20, 4000);
      expect(await store.find(one)).toMatchObject({ calls: 1, answered: 1, medianLatencyMs: 20 });
      await store.record(listingRow({ place: other, checkedAt: 5000 }), 60, 0);
      expect(await store.find(other)).toMatchObject({ calls: 4, answered: 4, medianLatencyMs: 70 });
    });

    test.each([
      [[10], 10],
      [[20, 10], 10],
      [[30, 10, 20], 20],
      [[40, 10, 30, 20], 20],
      [[50, 10, 40, 20, 30], 30],
      [[60, 50, 10, 40, 20, 30], 30],
    ])('of %j have the nearest-rank median %i', async (latencies, median) => {
      await store.put(listingRow({ checkedAt: 1 }), latencies[0]!, BOUNDS);
      for (const [at, latency] of latencies.entries())
        if (at > 0) await store.record(listingRow({ checkedAt: 1 + at }), latency, 0);
      expect(await store.find('a.example/x')).toMatchObject({ calls: latencies.length, medianLatencyMs: median });
    });

    test('of one moment are one call: the last', async () => {
      await store.put(listingRow(), 10, BOUNDS);
      await store.record(listingRow(), 30, 0);
      expect(await store.find('a.example/x')).toMatchObject({ calls: 1, answered: 1, medianLatencyMs: 30 });
      await store.record(failed({}), null, 0);
      expect(await store.find('a.example/x')).toMatchObject({ calls: 1, answered: 0, medianLatencyMs: null });
    });

    test('of a deleted listing are not kept', async () => {
      await store.put(listingRow(), 1, BOUNDS);
      await store.drop('a.example/x');
      await store.record(listingRow({ checkedAt: 2000 }), 5, 0);
      expect(await store.find('a.example/x')).toBeNull();
      expect(await ledger.sql('SELECT place FROM market_calls')).toEqual([]);
    });

    test('that are due are taken once, the longest waiting first, and are due again when no result was recorded', async () => {
      for (const [place, dueAt] of [
        ['a.example/1', 300],
        ['a.example/2', 100],
        ['b.example/3', 200],
        ['b.example/4', 900],
      ] as const) {
        await store.put(listingRow({ place, dueAt }), 1, { total: 9, perDomain: 9 });
      }
      const taken = async (now: number, limit: number) =>
        (await store.takeDue(now, now + 1000, limit)).map(({ place }) => place);
      expect(await taken(500, 2)).toEqual(['a.example/2', 'b.example/3']);
      expect(await taken(500, 2)).toEqual(['a.example/1']);
      expect(await taken(500, 2)).toEqual([]);
      await store.record(listingRow({ place: 'a.example/2', dueAt: 9000 }), 1, 0);
      expect(await taken(1500, 9)).toEqual(['b.example/4', 'a.example/1', 'b.example/3']);
    });
  });

  describe('a reader', () => {
    test('gets the changes since its last revision, and null when there are none', async () => {
      expect(await store.changesSince(0)).toBeNull();
      await store.put(listingRow({ place: 'a.example/1' }), 1, BOUNDS);
      await store.put(listingRow({ place: 'a.example/2' }), 1, BOUNDS);
      const first = await store.changesSince(0);
      expect(first?.changed.map(({ place }) => place).sort()).toEqual(['a.example/1', 'a.example/2']);
      expect(await store.changesSince(first!.revision)).toBeNull();
      await store.record(failed({ place: 'a.example/2', checkedAt: 3000 }), null, 0);
      await store.drop('a.example/1');
      const second = await store.changesSince(first!.revision);
      expect([second?.places, second?.changed.map(({ place }) => place)]).toEqual([['a.example/2'], ['a.example/2']]);
      await store.drop('a.example/1');
      expect(await store.changesSince(second!.revision)).toBeNull();
    });

    test('gets places in their order, and of the listings only what came after its revision', async () => {
      for (const place of ['a.example/2', 'a.example/1', 'a.example/3'])
        await store.put(listingRow({ place }), 1, { total: 9, perDomain: 9 });
      const all = (await store.changesSince(0))!;
      expect(all.places).toEqual(['a.example/1', 'a.example/2', 'a.example/3']);
      expect(all.changed.map(({ place }) => place)).toEqual(all.places);
      await store.record(listingRow({ place: 'a.example/3', checkedAt: 2000 }), 1, 0);
      await store.record(listingRow({ place: 'a.example/1', checkedAt: 2000 }), 1, 0);
      const newest = (await store.changesSince(all.revision + 1))!;
      expect(newest.changed.map(({ place }) => place)).toEqual(['a.example/1']);
    });

    test('finds everything again after a restart', async () => {
      await store.put(listingRow(), 1, BOUNDS);
      const { market } = await ledger.reopen();
      expect((await market.changesSince(0))?.places).toEqual(['a.example/x']);
    });
  });

  describe('two instances', () => {
    const at = (count: number) => Array.from({ length: count }, (_, n) => n);

    test('never list more than the bounds allow', async () => {
      const both = [store, (await ledger.another()).market];
      const puts = at(12).map((n) => both[n % 2]!.put(listingRow({ place: `a.example/${n}` }), 1, BOUNDS));
      const outcomes = await Promise.all(puts);
      expect(outcomes.filter((one) => one === 'listed')).toHaveLength(BOUNDS.perDomain);
      expect(outcomes.filter((one) => one === 'domain_full')).toHaveLength(12 - BOUNDS.perDomain);
      expect((await store.changesSince(0))?.places).toHaveLength(BOUNDS.perDomain);
    });

    test('take each due listing once', async () => {
      const both = [store, (await ledger.another()).market];
      for (const n of at(20))
        await store.put(listingRow({ place: `a.example/${n}`, dueAt: n }), 1, { total: 20, perDomain: 20 });
      const taken = await Promise.all(at(8).map((n) => both[n % 2]!.takeDue(100, 1000, 3)));
      const places = taken.flat().map(({ place }) => place);
      expect([places.length, new Set(places).size]).toEqual([20, 20]);
    });

    test('that write at once skip no revision', async () => {
      const both = [store, (await ledger.another()).market];
      for (const n of at(4)) await store.put(listingRow({ place: `a.example/${n}` }), 1, { total: 9, perDomain: 9 });
      const before = (await store.changesSince(0))!.revision;
      const records = at(16).map((n) =>
        both[n % 2]!.record(listingRow({ place: `a.example/${n % 4}`, checkedAt: 2000 + n }), 5, 0),
      );
      await Promise.all(records);
      const changes = await store.changesSince(before);
      expect([changes?.revision, changes?.changed.length]).toEqual([before + 16, 4]);
      expect(changes?.changed.map(({ calls }) => calls)).toEqual([5, 5, 5, 5]);
    });
  });
});
