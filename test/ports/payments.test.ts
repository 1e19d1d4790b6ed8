import { describe, expect, test, vi } from 'vitest';
import type { LedgerStore } from '../../src/store/ports/payments.ts';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';

const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const ends = async (writes: readonly Promise<unknown>[]): Promise<unknown[]> =>
  (await Promise.allSettled(writes)).map((end) => (end.status === 'fulfilled' ? end.value : 'rejected'));
const body = (text: string): Buffer => Buffer.from(text);
const settledReply = { store: body('reply') };

describePorts('payments', (adapter) => {
  const ledger = useLedger(adapter);
  const store = ofNow(() => ledger.stores.payments);

  const settle = async (id: string) => {
    await store.move(id, ['reserved'], 'settling', {}, settledReply);
    await store.move(id, ['settling'], 'settled', { endedAt: 1, reason: null }, { keepUntil: 1000 });
  };
  const fail = async (id: string, reason: string) => {
    await store.move(id, ['reserved'], 'settling', {}, settledReply);
    await store.move(id, ['settling'], 'failed', { reason, endedAt: 1 }, 'drop');
  };

  describe('a reservation', () => {
    test('is read as it was written, by its key and by its id', async () => {
      const terms = { amount: 2n ** 53n - 1n, price: 2n ** 53n - 2n };
      const given = reservation('a', 'a', { ...terms, identifierHash: hash32('identifier') });
      expect(await store.reserve(given, 0, null)).toBe(true);
      const empty = {
        signature: null,
        checkedBlock: null,
        charged: null,
        payerHasCode: null,
        transaction: null,
        block: null,
        reason: null,
        endedAt: null,
        channel: null,
        calldata: null,
      };
      const bytes = (value: Uint8Array | null) => value && Buffer.from(value);
      const { route: _, ...kept } = given;
      const { nonce, identifierHash, authorizationHash } = given;
      const wanted = { ...kept, ...empty, state: 'reserved', deliveries: 0, deliveredAt: null };
      const hashes = { identifierHash: bytes(identifierHash), authorizationHash: bytes(authorizationHash) };
      const row = { ...wanted, nonce: bytes(nonce), ...hashes };
      expect(await store.find(given)).toEqual(row);
      expect(await store.get('a')).toEqual(row);
      expect([await store.get('b'), await store.find({ ...given, nonce: hash32('b') })]).toEqual([null, null]);
    });

    test('of one authorization that 128 callers request at once goes to the first', async () => {
      const wins = await Promise.all(many(128, (at) => store.reserve(reservation(`p${at}`, 'n'), 0, null)));
      expect(wins.map((won, at) => (won ? at : -1)).filter((at) => at >= 0)).toEqual([0]);
      expect((await store.find(reservation('any', 'n')))?.id).toBe('p0');
    });

    test('of one payer is refused above the cap, within one event loop turn too, until one of the payer’s payments has ended', async () => {
      const wins = await Promise.all(many(20, (at) => store.reserve(reservation(`p${at}`, `n${at}`), 3, null)));
      expect(wins).toEqual(many(20, (at) => at < 3));
      expect(await store.reserve(reservation('other', 'other', { payer: Buffer.alloc(20, 7) }), 3, null)).toBe(true);
      await settle('p0');
      expect(await store.reserve(reservation('p20', 'n20'), 3, null)).toBe(true);
      expect(await store.reserve(reservation('p21', 'n21'), 3, null)).toBe(false);
      expect(await store.reserve(reservation('p22', 'n22'), 0, null)).toBe(true);
    });

    test('reuses a row that failed for the given reason, and no other', async () => {
      for (const [id, reason] of [
        ['a', 'reverted'],
        ['b', 'cancelled'],
      ] as const) {
        await store.reserve(reservation(id, id), 0, null);
        await fail(id, reason);
      }
      await store.reserve(reservation('c', 'c'), 0, null);
      const again = (id: string, reusable: string | null) => store.reserve(reservation(`${id}2`, id), 0, reusable);
      expect(await again('a', null)).toBe(false);
      expect(await Promise.all(['a', 'b', 'c'].map((id) => again(id, 'reverted')))).toEqual([true, false, false]);
      expect([await store.get('a'), (await store.get('a2'))?.state]).toEqual([null, 'reserved']);
      expect(await again('a', 'reverted')).toBe(false);
    });

    test('reuses only a row of exactly the same authorization, with the new request’s target and price', async () => {
      await store.reserve(reservation('a', 'n'), 0, null);
      await fail('a', 'reverted');
      const other = reservation('b', 'n', { authorizationHash: hash32('another signature') });
      expect(await store.reserve(other, 0, 'reverted')).toBe(false);
      expect(await store.get('a')).toMatchObject({ state: 'failed', price: 500n });
      const again = reservation('c', 'n', { price: 700n, amount: 9n, payTo: Buffer.alloc(20, 9) });
      expect(await store.reserve(again, 0, 'reverted')).toBe(true);
      const { requestHash, price } = again;
      expect(await store.get('c')).toMatchObject({ state: 'reserved', price, requestHash, amount: 500n });
      expect((await store.get('c'))?.payTo).toEqual(Buffer.alloc(20, 1));
    });

    test('stores its route, and for a payment that is sold again the route of the new sale', async () => {
      const routes = () => ledger.sql('SELECT id, route FROM usdc_payments ORDER BY id');
      await store.reserve(reservation('a', 'n', { route: '/v1/paid/chain/tx' }), 0, null);
      expect(await routes()).toEqual([{ id: 'a', route: '/v1/paid/chain/tx' }]);
      await fail('a', 'reverted');
      await store.reserve(reservation('b', 'n', { route: '/v1/paid/web/check' }), 0, 'reverted');
      expect(await routes()).toEqual([{ id: 'b', route: '/v1/paid/web/check' }]);
    });

    test('reuses no row without a stored hash of its authorization', async () => {
      await store.reserve(reservation('a', 'n'), 0, null);
      await fail('a', 'reverted');
      await ledger.sql('UPDATE usdc_payments SET authorization_hash = NULL, price = NULL');
      expect(await store.reserve(reservation('b', 'n'), 0, 'reverted')).toBe(false);
      expect(await store.get('a')).toMatchObject({ state: 'failed', authorizationHash: null, price: null });
    });

    test('that violates a constraint is the only one to reject, and the other writes of its turn are done', async () => {
      const writes = [
        store.reserve(reservation('a', 'a'), 0, null),
        store.reserve(reservation('broken', 'broken', { amount: 0n }), 0, null),
        store.reserve(reservation('a', 'another of the same id'), 0, null),
        store.move('a', ['reserved'], 'settling', {}, { store: body('once') }),
        store.reserve(reservation('b', 'b'), 0, null),
      ];
      expect(await ends(writes)).toEqual([true, 'rejected', 'rejected', true, true]);
      expect(await store.countByState()).toMatchObject({ reserved: 1, settling: 1 });
    });
  });

  describe('a move', () => {
    test('is made only from the given states, and once', async () => {
      await store.reserve(reservation('a', 'a'), 0, null);
      expect(await store.move('a', ['settling', 'unknown'], 'settled', {})).toBe(false);
      expect((await store.get('a'))?.state).toBe('reserved');
      const moves = many(16, () => store.move('a', ['reserved'], 'settling', { checkedBlock: 7 }));
      expect((await Promise.all(moves)).filter(Boolean)).toHaveLength(1);
      expect(await store.get('a')).toMatchObject({ state: 'settling', checkedBlock: 7 });
      expect(await store.move('unknown', ['reserved'], 'settling', {})).toBe(false);
    });

    test('sets the given columns, clears those given as null and leaves the others', async () => {
      await store.reserve(reservation('a', 'a'), 0, null);
      const signature = Buffer.alloc(65, 7);
      await store.move('a', ['reserved'], 'settling', { signature, checkedBlock: 12, settlingAt: 5 }, settledReply);
      await store.move('a', ['settling'], 'unknown', { bootId: 'later' });
      expect(await store.get('a')).toMatchObject({ state: 'unknown', bootId: 'later', signature, checkedBlock: 12 });
      const transaction = Buffer.from(hash32('transaction'));
      const end = { transaction, block: 99, signature: null, reason: null, endedAt: 1_800_000_000_123 };
      await store.move('a', ['unknown'], 'settled', end, { keepUntil: 5 });
      expect(await store.get('a')).toMatchObject({ ...end, state: 'settled', checkedBlock: 12 });
    });

    test('stores whether the payer has code, and the amount paid', async () => {
      for (const id of ['a', 'b']) await store.reserve(reservation(id, id), 0, null);
      expect(await store.get('a')).toMatchObject({ payerHasCode: null, charged: null });
      await store.move('a', ['reserved'], 'settling', { payerHasCode: true });
      await store.move('b', ['reserved'], 'settling', { payerHasCode: false });
      expect([(await store.get('a'))?.payerHasCode, (await store.get('b'))?.payerHasCode]).toEqual([true, false]);
      await store.move('a', ['settling'], 'settled', { charged: 2n ** 53n - 1n, endedAt: 1 });
      await store.move('b', ['settling'], 'settled', { charged: 0n, endedAt: 1 });
      expect([(await store.get('a'))?.charged, (await store.get('b'))?.charged]).toEqual([2n ** 53n - 1n, 0n]);
      expect((await store.get('a'))?.payerHasCode).toBe(true);
    });

    test('keeps the amount paid that an earlier one has stored', async () => {
      await store.reserve(reservation('a', 'a'), 0, null);
      await store.move('a', ['reserved'], 'settling', { charged: 7n });
      await store.move('a', ['settling'], 'settled', { endedAt: 1 });
      expect((await store.get('a'))?.charged).toBe(7n);
    });

    test('with a fencing token that no instance holds is made on SQLite only, where one process holds the ledger', async () => {
      await store.reserve(reservation('a', 'a'), 0, null);
      const isAlone = adapter.name === 'sqlite';
      expect(await store.move('a', ['reserved'], 'settling', { checkedBlock: 7 }, settledReply, 1)).toBe(isAlone);
      expect((await store.get('a'))?.state).toBe(isAlone ? 'settling' : 'reserved');
      expect(await store.replyBytes()).toBe(isAlone ? 5 : 0);
    });

    test('that cannot keep its reply leaves the state as it was', async () => {
      await store.reserve(reservation('a', 'a'), 0, null);
      await store.move('a', ['reserved'], 'settling', {}, { store: body('once') });
      const twice = store.move('a', ['settling'], 'unknown', { reason: 'x' }, { store: body('twice') });
      const next = store.reserve(reservation('b', 'b'), 0, null);
      expect(await ends([twice, next])).toEqual(['rejected', true]);
      expect(await store.get('a')).toMatchObject({ state: 'settling', reason: null });
    });
  });

  describe('a broadcast', () => {
    test('is noted for the rows that await one, all in one step, and only their ids are returned', async () => {
      for (const id of ['a', 'b', 'c']) await store.reserve(reservation(id, id), 0, null);
      for (const id of ['a', 'b']) await store.move(id, ['reserved'], 'settling', {});
      const entries = ['a', 'b', 'c', 'gone'].map((id) => ({ id, transaction: hash32(`sent ${id}`) }));
      expect(await store.noteBroadcast(entries, ['settling', 'unknown'])).toEqual(new Set(['a', 'b']));
      const hashes = await Promise.all(['a', 'b', 'c'].map(async (id) => (await store.get(id))?.transaction ?? null));
      expect(hashes).toEqual([Buffer.from(hash32('sent a')), Buffer.from(hash32('sent b')), null]);
      expect(await store.noteBroadcast([], ['settling'])).toEqual(new Set());
    });

    test('is visible to another instance when it resolves, and protects its row from being deleted', async () => {
      const other = (await ledger.another()).payments;
      for (const id of ['01', '02']) {
        await store.reserve(reservation(id, id), 0, null);
        await store.move(id, ['reserved'], 'settling', { signature: Buffer.alloc(65, 1) }, { store: body('{}') });
      }
      await other.noteBroadcast([{ id: '01', transaction: hash32('transaction') }], ['settling']);
      expect((await store.get('01'))?.transaction).toEqual(Buffer.from(hash32('transaction')));
      expect(await store.release('01', ['settling'])).toBe(false);
      expect((await store.get('01'))?.state).toBe('settling');
      expect(await store.release('02', ['settling'])).toBe(true);
      expect([await store.get('02'), await store.replyBytes()]).toEqual([null, 2]);
    });
  });

  describe('a release', () => {
    test('deletes a reservation, and its authorization may buy again', async () => {
      await store.reserve(reservation('a', 'a'), 0, null);
      expect(await Promise.all(many(8, () => store.release('a', ['reserved'])))).toEqual(many(8, (at) => at === 0));
      expect(await store.reserve(reservation('b', 'a'), 0, null)).toBe(true);
      expect(await store.release('unknown', ['reserved'])).toBe(false);
    });

    test('of a payment that had failed before makes it `failed` again, without its reply and its signature', async () => {
      await store.reserve(reservation('a', 'a'), 0, null);
      await fail('a', 'reverted');
      await store.reserve(reservation('a2', 'a'), 0, 'reverted');
      await store.move('a2', ['reserved'], 'settling', { signature: Buffer.alloc(65, 1) }, settledReply);
      expect(await store.release('a2', ['settling'])).toBe(true);
      expect(await store.get('a2')).toMatchObject({ state: 'failed', reason: 'reverted', signature: null });
      expect(await store.replyBytes()).toBe(0);
    });
  });

  describe('a reply', () => {
    test('is returned again up to its limit while it is kept, for a settled payment only', async () => {
      await store.reserve(reservation('a', 'a'), 0, null);
      expect(await store.takeReply('a', 2, 0)).toBeNull();
      await store.move('a', ['reserved'], 'settling', {}, { store: body('bought') });
      expect(await store.takeReply('a', 2, 0)).toBeNull();
      await store.move('a', ['settling'], 'settled', { endedAt: 1 }, { keepUntil: 1000 });
      expect(await store.takeReply('a', 2, 1000)).toBeNull();
      const taken = await Promise.all(many(8, () => store.takeReply('a', 2, 999)));
      expect(taken.filter((one) => one !== null)).toEqual([body('bought'), body('bought')]);
      expect((await store.get('a'))?.deliveries).toBe(2);
      expect(await store.takeReply('unknown', 2, 0)).toBeNull();
    });

    test('is kept from its first delivery on, which is noted once, and for a settled payment only', async () => {
      await store.reserve(reservation('a', 'a'), 0, null);
      await store.move('a', ['reserved'], 'settling', {}, { store: body('bought') });
      expect([await store.delivered('a', 5, 50), await store.delivered('unknown', 5, 50)]).toEqual([false, false]);
      await store.move('a', ['settling'], 'settled', { endedAt: 1 }, { keepUntil: 1000 });
      expect((await store.get('a'))?.deliveredAt).toBeNull();
      const noted = await Promise.all(many(8, (at) => store.delivered('a', 10, 100 + at)));
      expect([noted.filter(Boolean).length, (await store.get('a'))?.deliveredAt]).toEqual([1, 10]);
      const until = 100 + noted.indexOf(true);
      expect(await store.delivered('a', 11, 500)).toBe(false);
      expect([await store.takeReply('a', 1, until), await store.takeReply('a', 1, until - 1)]).toEqual([
        null,
        body('bought'),
      ]);
    });

    test('of those that are kept for long is deleted beyond a number of bytes, the oldest first', async () => {
      const times = [20, 50, 30, 40, 10, 60];
      for (const keepUntil of times) {
        const id = `p${keepUntil}`;
        await store.reserve(reservation(id, id), 0, null);
        await store.move(id, ['reserved'], 'settling', {}, { store: Buffer.alloc(100) });
        await store.move(id, ['settling'], 'settled', {}, { keepUntil });
      }
      expect(await store.trimReplies(10, 50, 400)).toBe(0);
      expect(await store.trimReplies(10, 50, 399)).toBe(1);
      expect(await store.trimReplies(10, 50, 150)).toBe(2);
      const left = await Promise.all(times.map((at) => store.takeReply(`p${at}`, 1, 0)));
      expect(times.filter((_, at) => left[at] !== null)).toEqual([50, 10, 60]);
    });

    test('is deleted when it has expired, in any number, and the others stay', async () => {
      const count = 520;
      await Promise.all(many(count, (at) => store.reserve(reservation(`p${at}`, `n${at}`), 0, null)));
      await Promise.all(many(count, (at) => store.move(`p${at}`, ['reserved'], 'settling', {}, { store: body('ab') })));
      await Promise.all(
        many(count, (at) => store.move(`p${at}`, ['settling'], 'settled', {}, { keepUntil: at < 510 ? 100 : 200 })),
      );
      expect(await store.purgeReplies(99)).toBe(0);
      expect(await store.purgeReplies(100)).toBe(510);
      expect([await store.replyBytes(), await store.takeReply('p515', 1, 100)]).toEqual([20, body('ab')]);
    });

    test('counts towards the kept bytes while it is being written, and not after its write was refused', async () => {
      await store.reserve(reservation('a', 'a'), 0, null);
      const stored = store.move('a', ['reserved'], 'settling', {}, { store: Buffer.alloc(100) });
      const refused = store.move('unknown', ['reserved'], 'settling', {}, { store: Buffer.alloc(7) });
      expect(await store.replyBytes()).toBeGreaterThanOrEqual(100);
      expect(await Promise.all([stored, refused])).toEqual([true, false]);
      expect(await store.replyBytes()).toBe(100);
    });

    test('of any bytes and of a larger size is read as it was written', async () => {
      const bytes = Buffer.from(many(300_000, (at) => (at * 7) % 256));
      await store.reserve(reservation('a', 'a'), 0, null);
      await store.move('a', ['reserved'], 'settling', {}, { store: bytes });
      await store.move('a', ['settling'], 'settled', {}, { keepUntil: 10 });
      expect(Buffer.compare(Buffer.from((await store.takeReply('a', 1, 1)) ?? []), bytes)).toBe(0);
    });
  });

  describe('the sum of a payer’s earlier reservations', () => {
    const promised = (of: LedgerStore, id: string) => of.sumOfOpen(reservation(id, id), id);

    test('is the sum of the earlier reservations when ids are in the order of inserts', async () => {
      const other = (await ledger.another()).payments;
      await store.reserve(reservation('01', '01'), 0, null);
      await other.reserve(reservation('02', '02', { amount: 700n }), 0, null);
      await store.reserve(reservation('03', '03'), 0, null);
      expect(await promised(store, '01')).toBe(0n);
      expect(await promised(other, '02')).toBe(500n);
      expect(await promised(store, '03')).toBe(1200n);
    });

    test('counts at least one of two payments for the other when ids are not in the order of inserts', async () => {
      const other = (await ledger.another()).payments;
      // Its id is older, its insert is younger: as when two processes reserve in the same millisecond.
      await store.reserve(reservation('02', '02'), 0, null);
      expect(await promised(store, '02')).toBe(0n);
      await other.reserve(reservation('01', '01'), 0, null);
      expect(await promised(other, '01')).toBe(500n);
    });

    test('contains only open payments of this payer on this contract', async () => {
      await store.reserve(reservation('01', '01'), 0, null);
      await store.reserve(reservation('02', '02', { payer: Buffer.alloc(20, 8) }), 0, null);
      await store.reserve(reservation('03', '03', { contract: Buffer.alloc(20, 8) }), 0, null);
      await store.reserve(reservation('04', '04'), 0, null);
      expect(await promised(store, '04')).toBe(500n);
      await settle('01');
      expect(await promised(store, '04')).toBe(0n);
    });

    test('contains the payments on several contracts where they share the payer’s money', async () => {
      const [token, channels, gateway] = [3, 4, 5].map((byte) => Buffer.alloc(20, byte)) as [Buffer, Buffer, Buffer];
      const shared = (of: LedgerStore, id: string) => of.sumOfOpen(reservation(id, id), id, [token, channels]);
      await store.reserve(reservation('01', '01', { contract: token, amount: 1n }), 0, null);
      await store.reserve(reservation('02', '02', { contract: channels, amount: 20n }), 0, null);
      await store.reserve(reservation('03', '03', { contract: gateway, amount: 300n }), 0, null);
      await store.reserve(reservation('04', '04', { contract: channels, amount: 4000n }), 0, null);
      expect([await shared(store, '02'), await shared(store, '04')]).toEqual([1n, 21n]);
    });

    test('contains, for a payment that is reused, the reservations made meanwhile', async () => {
      await store.reserve(reservation('01', 'a'), 0, null);
      await fail('01', 'reverted');
      await store.reserve(reservation('02', 'b'), 0, null);
      await store.reserve(reservation('03', 'a'), 0, 'reverted');
      expect(await promised(store, '03')).toBe(500n);
    });
  });

  describe('the list by state', () => {
    test('goes on after an id, oldest first, as many as asked for', async () => {
      const ids = many(7, (at) => `p${at}`);
      for (const id of ids) await store.reserve(reservation(id, id), 0, null);
      await store.move('p2', ['reserved'], 'settling', {});
      await store.move('p4', ['reserved'], 'failed', { reason: 'gone' });
      const listed = async (states: Parameters<LedgerStore['listByState']>[0], limit: number, after?: string) =>
        (await store.listByState(states, limit, after)).map(({ id }) => id);
      expect(await listed(['reserved', 'settling'], 3)).toEqual(['p0', 'p1', 'p2']);
      expect(await listed(['reserved', 'settling'], 3, 'p2')).toEqual(['p3', 'p5', 'p6']);
      expect(await listed(['reserved', 'settling'], 3, 'p6')).toEqual([]);
      expect(await listed(['reserved'], 100, '')).toEqual(['p0', 'p1', 'p3', 'p5', 'p6']);
      // An id that is not there any more, as one that has ended meanwhile.
      expect(await listed(['settling', 'failed'], 100, 'p3')).toEqual(['p4']);
    });
  });

  describe('a payer', () => {
    test('counts as settled once one of its payments on this contract and network has settled, whatever the others did', async () => {
      for (const id of ['a', 'b', 'c']) await store.reserve(reservation(id, id), 0, null);
      await fail('b', 'reverted');
      expect(await store.hasSettled(reservation('x', 'x'))).toBe(false);
      await settle('a');
      expect(await store.hasSettled(reservation('x', 'x'))).toBe(true);
      for (const other of [{ payer: Buffer.alloc(20, 8) }, { contract: Buffer.alloc(20, 8) }, { network: 'eip155:1' }])
        expect(await store.hasSettled(reservation('x', 'x', other))).toBe(false);
    });
  });

  describe('reading', () => {
    test('by hash finds nonces and transactions, oldest first, as many as asked for', async () => {
      const batch = hash32('batch');
      for (const id of ['01', '02', '03']) {
        await store.reserve(reservation(id, id), 0, null);
        await store.move(id, ['reserved'], 'settling', {});
      }
      const entries = ['03', '01'].map((id) => ({ id, transaction: batch }));
      await store.noteBroadcast(entries, ['settling']);
      await store.reserve(reservation('04', 'batch'), 0, null);
      const ids = async (hash: Uint8Array, limit: number) => (await store.findByHash(hash, limit)).map(({ id }) => id);
      expect(await ids(batch, 10)).toEqual(['01', '03', '04']);
      expect(await ids(batch, 2)).toEqual(['01', '03']);
      expect(await ids(hash32('02'), 10)).toEqual(['02']);
      expect(await ids(hash32('nothing'), 10)).toEqual([]);
    });

    test('by state is oldest first and bounded, and counts every state', async () => {
      for (const id of ['03', '01', '02']) await store.reserve(reservation(id, id), 0, null);
      await store.move('02', ['reserved'], 'settling', {});
      await fail('03', 'cancelled');
      const ids = async (states: Parameters<LedgerStore['listByState']>[0], limit: number) =>
        (await store.listByState(states, limit)).map(({ id }) => id);
      expect(await ids(['reserved', 'settling', 'failed'], 10)).toEqual(['01', '02', '03']);
      expect(await ids(['reserved', 'settling', 'failed'], 2)).toEqual(['01', '02']);
      expect(await ids(['unknown'], 10)).toEqual([]);
      expect(await store.countByState()).toEqual({ reserved: 1, settling: 1, unknown: 0, settled: 0, failed: 1 });
    });

    test('the rows left behind are those that no living process holds', async () => {
      for (const bootId of ['a', 'b', 'c']) await store.reserve(reservation(bootId, bootId, { bootId }), 0, null);
      const left = async (living: string[]) => (await store.listLeftBehind(living, 10)).map(({ bootId }) => bootId);
      expect(await left(['a', 'b', 'c'])).toEqual([]);
      expect(await left(['a', 'c'])).toEqual(['b']);
      expect(await left(['a'])).toEqual(['b', 'c']);
      expect(await left([])).toEqual(['a', 'b', 'c']);
      const next = async (after: string, limit: number) =>
        (await store.listLeftBehind(['b'], limit, after)).map(({ id }) => id);
      expect([await next('', 1), await next('a', 1), await next('c', 1)]).toEqual([['a'], ['c'], []]);
      await settle('b');
      expect(await left(['a'])).toEqual(['c']);
    });
  });

  describe('the end', () => {
    test('finishes earlier calls, whose results the next start finds', async () => {
      const wins = many(300, (at) => store.reserve(reservation(`p${at}`, `n${at}`), 0, null));
      await store.close();
      expect(await ends(wins)).toEqual(many(300, () => true));
      const { payments } = await ledger.reopen();
      expect((await payments.countByState()).reserved).toBe(300);
    });

    test('makes the store reject every call, and an open store can be pinged', async () => {
      // A ping has its own time-out, which a pause may exceed.
      await vi.waitFor(() => store.ping(), 60_000);
      await store.close();
      const calls = [
        store.ping(),
        store.get('a'),
        store.reserve(reservation('a', 'a'), 0, null),
        store.move('a', ['reserved'], 'settling', {}),
        store.replyBytes(),
      ];
      expect(await ends(calls)).toEqual(calls.map(() => 'rejected'));
    });
  });
});
