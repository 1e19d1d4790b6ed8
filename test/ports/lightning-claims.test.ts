import { describe, expect, test, vi } from 'vitest';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';
import {
  accountedOf,
  DAY,
  grantOf,
  hashOf,
  invoiceOf,
  keyOf,
  NOON,
  nodeOf,
  TODAY,
} from '../support/lightning/lightning-rows.ts';

const body = (text: string): Buffer => Buffer.from(text);

describePorts('the Lightning rail', (adapter) => {
  const ledger = useLedger(adapter);
  const store = ofNow(() => ledger.stores.lightning);

  const counts = (day = TODAY) => store.facilitatorCounts(day, nodeOf('ours'));

  describe('invoices', () => {
    test('a record and its reply are read as they were written, for any amount', async () => {
      const record = invoiceOf('a', { amountMsat: 2n ** 70n + 1n });
      await store.recordInvoice(record, body('sealed'));
      expect(await store.findInvoice(keyOf('a'))).toEqual(record);
      expect(await store.keptReply(keyOf('a'))).toEqual(body('sealed'));
    });

    test('an unknown hash is null, and so is the same hash on another network', async () => {
      await store.recordInvoice(invoiceOf('a'), body('sealed'));
      for (const key of [keyOf('b'), { ...keyOf('a'), network: 'lnbtc:000000000933ea01ad0ee984209779ba' }]) {
        expect([await store.findInvoice(key), await store.keptReply(key)]).toEqual([null, null]);
      }
    });

    test('a second record for one payment hash is refused and changes nothing', async () => {
      await store.recordInvoice(invoiceOf('a'), body('first'));
      await expect(store.recordInvoice(invoiceOf('a', { amountMsat: 1n }), body('second'))).rejects.toThrow(/unique/i);
      expect((await store.findInvoice(keyOf('a')))?.amountMsat).toBe(25_000n);
      expect(await store.keptReply(keyOf('a'))).toEqual(body('first'));
    });
  });

  describe('claims', () => {
    test('of one proof: exactly one caller in a batch gets `claimed`, and no later one does', async () => {
      const outcomes = await Promise.all(Array.from({ length: 20 }, () => store.claim(grantOf('a'))));
      expect(outcomes).toEqual(['claimed', ...Array.from({ length: 19 }, () => 'duplicate')]);
      expect(await store.claim(accountedOf('a'))).toBe('duplicate');
    });

    test('a claim of ours grants its request, and a facilitator’s grants nothing', async () => {
      await Promise.all([
        store.claim(grantOf('ours')),
        store.claim(accountedOf('theirs', {}, { amountMsat: 2n ** 64n })),
      ]);
      const { keepUntil: _, account: __, grant, ...ours } = grantOf('ours');
      const { route: ___, ...granted } = grant!;
      const state = { state: 'claimed', deliveredAt: null, answered: false };
      expect(await store.findClaim(keyOf('ours'))).toEqual({ ...ours, grant: { ...granted, ...state } });
      expect(await store.findClaim(keyOf('theirs'))).toMatchObject({ grant: null, amountMsat: 2n ** 64n });
      expect(await store.findClaim(keyOf('unknown'))).toBeNull();
    });

    test('a claim of ours stores its route, also when it replaces a facilitator’s, and a facilitator’s stores none', async () => {
      const routes = () => ledger.sql('SELECT route FROM lightning_claims');
      await store.claim(accountedOf('a'));
      expect(await routes()).toEqual([{ route: null }]);
      expect(await store.claim(grantOf('a'))).toBe('claimed');
      expect(await routes()).toEqual([{ route: '/v1/lightning/chain/wallet' }]);
      await store.claim(grantOf('b'));
      expect(await routes()).toEqual([
        { route: '/v1/lightning/chain/wallet' },
        { route: '/v1/lightning/chain/wallet' },
      ]);
    });

    test('a facilitator’s claim that grants something is refused', async () => {
      const { grant } = grantOf('a');
      await expect(store.claim({ ...accountedOf('a'), grant })).rejects.toThrow('grants nothing');
      expect(await store.findClaim(keyOf('a'))).toBeNull();
    });

    test('a malformed claim rejects alone, and the same hash on two networks is two proofs', async () => {
      const elsewhere = { ...grantOf('a'), network: 'lnbtc:000000000933ea01ad0ee984209779ba' };
      const broken = { ...grantOf('b'), paymentHash: Buffer.alloc(31) };
      const ends = await Promise.allSettled([grantOf('a'), broken, elsewhere].map((claim) => store.claim(claim)));
      expect(ends.map((end) => (end.status === 'fulfilled' ? end.value : 'rejected'))).toEqual([
        'claimed',
        'rejected',
        'claimed',
      ]);
    });

    test('are visible to another instance when they resolve', async () => {
      const reader = (await ledger.another()).lightning;
      expect(await reader.findClaim(keyOf('a'))).toBeNull();
      await store.claim(grantOf('a'));
      expect(await reader.findClaim(keyOf('a'))).not.toBeNull();
    });

    test('that race through two instances succeed once each, and are counted once', async () => {
      const stores = [store, (await ledger.another()).lightning];
      const names = Array.from({ length: 50 }, (_, at) => `n${at}`);
      const outcomes = await Promise.all(
        names.map(async (name, at) => {
          // Spread over several batches of either connection.
          for (let turn = 0; turn < at % 4; turn += 1) await new Promise(setImmediate);
          return Promise.all(stores.map((one) => one.claim(accountedOf(name))));
        }),
      );
      expect(outcomes.map((pair) => pair.toSorted())).toEqual(names.map(() => ['claimed', 'duplicate']));
      expect(await counts()).toEqual({ total: 50, today: 50, nodes: 1, own: 0 });
    });

    test('a store that is closed rejects everything', async () => {
      await ledger.stores.close();
      const key = keyOf('a');
      const calls = [
        () => store.claim(grantOf('a')),
        () => store.findClaim(key),
        () => store.recordInvoice(invoiceOf('a'), body('x')),
        () => store.findInvoice(key),
        () => store.keptReply(key),
        () => store.takeLease(key, 'p:1', NOON, NOON + 1),
        () => store.releaseLease(key, 'p:1'),
        () => store.releaseLeasesExcept('p'),
        () => store.releaseLeasesOf('p'),
        () => store.storeAnswer(key, 'p:1', body('x')),
        () => store.answer(key),
        () => store.delivered(key, NOON, NOON),
        () => counts(),
        () => store.clientCount(TODAY, hashOf('client')),
        () => store.bodyBytes(),
        () => store.offeredBytes(),
        () => store.prune(NOON),
        () => store.ping(),
      ];
      expect(calls).toHaveLength(Object.keys(store).length);
      for (const call of calls) await expect(call()).rejects.toThrow(/not open|after calling end/);
    });

    test('a store that is open can be pinged', async () => {
      // A ping has its own time-out, which a pause may exceed.
      await vi.waitFor(() => store.ping(), 60_000);
    });
  });

  describe('counters', () => {
    test('count the facilitator’s claims by day, client and node, but not ours, duplicates or refused ones', async () => {
      const ours = { payTo: nodeOf('ours') };
      await Promise.all([
        store.claim(grantOf('one of our own')),
        store.claim(accountedOf('a')),
        store.claim(accountedOf('a')),
        store.claim(accountedOf('b', {}, ours)),
        store.claim(accountedOf('c', { clientHash: hashOf('another') }, ours)),
        store.claim(accountedOf('d', { day: '2026-03-02' })),
        store.claim(accountedOf('e', { clientCap: 2 })),
      ]);
      expect(await counts()).toEqual({ total: 4, today: 3, nodes: 2, own: 2 });
      expect(await counts('2026-03-02')).toMatchObject({ today: 1 });
      expect(await counts('2026-03-01')).toMatchObject({ total: 4, today: 0 });
      expect(await store.facilitatorCounts(TODAY, null)).toMatchObject({ own: 0 });
      const clients = [hashOf('client'), hashOf('another'), hashOf('unknown')];
      expect(await Promise.all(clients.map((client) => store.clientCount(TODAY, client)))).toEqual([2, 1, 0]);
    });

    test('the caps hold exactly within one batch, and in their order', async () => {
      const limited = (name: string, client: string) =>
        store.claim(accountedOf(name, { dailyCap: 3, clientCap: 2, clientHash: hashOf(client) }));
      const first = [limited('1', 'x'), limited('2', 'x'), limited('3', 'x'), limited('4', 'y'), limited('5', 'y')];
      expect(await Promise.all(first)).toEqual(['claimed', 'claimed', 'client_cap', 'claimed', 'daily_cap']);
      // A spent proof first, then the cap for all, which x has reached together with its own.
      expect(await Promise.all([limited('1', 'x'), limited('6', 'x')])).toEqual(['duplicate', 'daily_cap']);
      expect(await store.findClaim(keyOf('3'))).toBeNull();
      // Our own routes and another day know no such cap.
      expect(await store.claim(grantOf('3'))).toBe('claimed');
      expect(await store.claim(accountedOf('5', { day: '2026-03-04', dailyCap: 3, clientCap: 2 }))).toBe('claimed');
    });

    test('the day’s cap holds across two instances', async () => {
      const stores = [store, (await ledger.another()).lightning];
      const claims = Array.from({ length: 30 }, (_, at) =>
        stores[at % 2]!.claim(accountedOf(`${at}`, { dailyCap: 7 })),
      );
      const outcomes = await Promise.all(claims);
      expect(outcomes.filter((outcome) => outcome === 'claimed')).toHaveLength(7);
      expect(outcomes.filter((outcome) => outcome === 'daily_cap')).toHaveLength(23);
    });

    test('are not taken for zero where another program has deleted the totals', async () => {
      await ledger.sql('DELETE FROM lightning_facilitator_totals');
      try {
        await expect(counts()).rejects.toThrow('lightning_facilitator_totals');
      } finally {
        await ledger.sql('INSERT INTO lightning_facilitator_totals (id, claims, nodes) VALUES (1, 0, 0)');
      }
    });

    test('stay when the claims are deleted; a client’s row stays for its day', async () => {
      await Promise.all([store.claim(accountedOf('a')), store.claim(accountedOf('b', {}, { payTo: nodeOf('ours') }))]);
      await store.prune(NOON + 2 * DAY);
      expect(await store.findClaim(keyOf('a'))).toBeNull();
      expect(await store.clientCount(TODAY, hashOf('client'))).toBe(2);
      await store.prune(NOON + 3 * DAY);
      expect(await counts()).toEqual({ total: 2, today: 2, nodes: 2, own: 1 });
      expect(await store.clientCount(TODAY, hashOf('client'))).toBe(0);
    });
  });
});
