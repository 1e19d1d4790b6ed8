import { describe, expect, test } from 'vitest';
import type { LedgerStore, PaymentState } from '../../src/store/ports/payments.ts';
import { channelState, channelTerms, depositSale, SEEN_AT, voucherSignature } from '../support/ledger/channel-rows.ts';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';

// Each statement touches the rows that it names, in the states that it names, and no other.

const OPEN: readonly PaymentState[] = ['reserved', 'settling', 'unknown'];
const body = (text: string): Buffer => Buffer.from(text);

describePorts('the rows of payments', (adapter) => {
  const ledger = useLedger(adapter);
  const store = ofNow(() => ledger.stores.payments);

  const settling = async (id: string, reply = id) => {
    await store.reserve(reservation(id, id), 0, null);
    await store.move(id, ['reserved'], 'settling', {}, { store: body(reply) });
  };
  const settle = async (id: string, keepUntil = 1000) => {
    await settling(id);
    await store.move(id, ['settling'], 'settled', { endedAt: 1 }, { keepUntil });
  };
  const fail = async (id: string, change: Parameters<LedgerStore['move']>[3] = {}) => {
    await store.move(id, ['reserved'], 'settling', {});
    await store.move(id, ['settling'], 'failed', { reason: 'reverted', endedAt: 1, ...change });
  };
  /** One payment in each state, with the state as its id. */
  const oneOfEach = async () => {
    for (const id of [...OPEN, 'settled', 'failed'] as const) {
      await store.reserve(reservation(id, id), 0, null);
      if (id !== 'reserved') await store.move(id, ['reserved'], id, { reason: null });
    }
  };

  test('are found by the whole key alone', async () => {
    await store.reserve(reservation('a', 'n'), 0, null);
    const others = [{ network: 'eip155:1' }, { contract: Buffer.alloc(20, 8) }, { payer: Buffer.alloc(20, 8) }];
    expect((await store.find(reservation('a', 'n')))?.id).toBe('a');
    for (const other of others) expect(await store.find(reservation('a', 'n', other))).toBeNull();
  });

  test('that are open are listed in each open state, and left behind in each', async () => {
    await oneOfEach();
    const ids = async (list: ReturnType<LedgerStore['listByState']>) => (await list).map(({ id }) => id);
    expect(await ids(store.listByState(OPEN, 10))).toEqual(OPEN);
    expect(await ids(store.listByState(OPEN, 2))).toEqual(OPEN.slice(0, 2));
    expect(await ids(store.listByState(OPEN, 10, 'reserved'))).toEqual(OPEN.slice(1));
    expect(await ids(store.listLeftBehind([], 10))).toEqual(OPEN);
    // Both begin with the least id of all.
    await store.reserve(reservation('0', '0'), 0, null);
    expect(await ids(store.listByState(OPEN, 1))).toEqual(['0']);
    expect(await ids(store.listLeftBehind([], 1))).toEqual(['0']);
  });

  test('of a payer on this network count as promised in each open state', async () => {
    await oneOfEach();
    await store.reserve(reservation('elsewhere', 'elsewhere', { network: 'eip155:1' }), 0, null);
    await store.reserve(reservation('x', 'x'), 0, null);
    expect(await store.sumOfOpen(reservation('x', 'x'), 'x')).toBe(1500n);
  });

  test.each(OPEN)('that are %s keep a payer’s next payment away at the cap', async (state) => {
    await store.reserve(reservation('a', 'a'), 0, null);
    if (state !== 'reserved') await store.move('a', ['reserved'], state, {});
    expect(await store.reserve(reservation('b', 'b'), 1, null)).toBe(false);
    expect(await store.reserve(reservation('b', 'b'), 2, null)).toBe(true);
  });

  test.each(OPEN)('of a channel that are %s keep its next sale away', async (state) => {
    await ledger.stores.channels.note(channelTerms('a'), channelState(), SEEN_AT);
    await store.reserve(depositSale('d', 'a', 100n), 0, null);
    if (state !== 'reserved') await store.move('d', ['reserved'], state, {});
    expect(await ledger.stores.channels.findOpen(channelTerms('a').id)).toBe('deposit');
    expect(await store.reserve(depositSale('d2', 'a', 200n), 0, null)).toBe(false);
    expect(await store.get('d2')).toBeNull();
  });

  test('that are reused hold the new request, and nothing of the attempt that failed', async () => {
    const { channels } = ledger.stores;
    for (const name of ['a', 'b']) await channels.note(channelTerms(name), channelState(), SEEN_AT);
    await store.reserve(depositSale('1', 'a', 100n), 0, null);
    await fail('1', { transaction: hash32('t'), block: 99 });
    const { nonce, authorizationHash } = depositSale('1', 'a', 100n);
    const more = { nonce, authorizationHash, bootId: 'later', reservedAt: SEEN_AT + 9, protocol: 'mpp' } as const;
    expect(await store.reserve(depositSale('2', 'b', 300n, more), 0, 'reverted')).toBe(true);
    const { id: channelId } = channelTerms('b');
    const { bootId, reservedAt, protocol } = more;
    expect(await store.get('2')).toMatchObject({
      bootId,
      reservedAt,
      protocol,
      transaction: null,
      block: null,
      endedAt: null,
      channel: { channelId, max: 300n, after: null },
    });
    await store.move('2', ['reserved'], 'settling', {});
    await store.move('2', ['settling'], 'settled', { block: 101, endedAt: SEEN_AT + 10 });
    expect(await channels.get(channelId)).toMatchObject({
      charged: 300n,
      signature: Buffer.from(voucherSignature('b', 300n)),
    });
  });

  describe('that were reused', () => {
    const reuse = async (id: string) => {
      await store.reserve(reservation(`${id} before`, id), 0, null);
      await fail(`${id} before`);
      await store.reserve(reservation(id, id), 0, 'reverted');
    };

    test('are released one by one', async () => {
      for (const id of ['a', 'b']) await reuse(id);
      expect(await store.release('a', ['reserved'])).toBe(true);
      expect([(await store.get('a'))?.state, (await store.get('b'))?.state]).toEqual(['failed', 'reserved']);
    });

    test('stay when a broadcast was noted', async () => {
      await reuse('a');
      await store.noteBroadcast([{ id: 'a', transaction: hash32('t') }], ['reserved']);
      expect(await store.release('a', ['reserved'])).toBe(false);
      expect((await store.get('a'))?.state).toBe('reserved');
    });
  });

  test.each(['settled', 'failed', 'unknown'] as const)(
    'become %s under a fencing token that no instance holds on SQLite only',
    async (state) => {
      await settling('a');
      const isAlone = adapter.name === 'sqlite';
      const end = { transaction: hash32('t'), block: 1, endedAt: 1, reason: null };
      expect(await store.move('a', ['settling'], state, end, { keepUntil: 10 }, 1)).toBe(isAlone);
      const ended = { state, transaction: Buffer.from(end.transaction), endedAt: 1 };
      const asBefore = { state: 'settling', transaction: null, endedAt: null };
      expect(await store.get('a')).toMatchObject(isAlone ? ended : asBefore);
      const sent = await store.noteBroadcast([{ id: 'a', transaction: hash32('u') }], ['settling', state], 1);
      expect(sent).toEqual(new Set(isAlone ? ['a'] : []));
    },
  );

  describe('with replies', () => {
    test('deliver none before they have settled, also where it is kept', async () => {
      await settling('a');
      await store.move('a', ['settling'], 'unknown', {}, { keepUntil: 1000 });
      expect(await store.takeReply('a', 2, 1)).toBeNull();
      expect((await store.get('a'))?.deliveries).toBe(0);
      await store.move('a', ['unknown'], 'settled', { endedAt: 1 });
      expect(await store.takeReply('a', 2, 1)).toEqual(body('a'));
    });

    test('deliver their own while it is kept, whatever else is', async () => {
      await settle('over', 10);
      await settle('kept');
      expect(await store.takeReply('over', 1, 10)).toBeNull();
      expect((await store.get('over'))?.deliveries).toBe(0);
      expect(await store.takeReply('kept', 1, 10)).toEqual(body('kept'));
    });

    test('are noted as delivered one by one', async () => {
      for (const id of ['a', 'b']) await settle(id);
      expect(await store.delivered('a', 5, 50)).toBe(true);
      expect([(await store.get('a'))?.deliveredAt, (await store.get('b'))?.deliveredAt]).toEqual([5, null]);
      expect([await store.takeReply('a', 1, 50), await store.takeReply('b', 1, 50)]).toEqual([null, body('b')]);
    });

    test('lose the oldest first of those that are kept equally long', async () => {
      for (const id of ['1', '3', '2']) await settle(id, 100);
      expect(await store.trimReplies(0, 100, 2)).toBe(1);
      const left = await Promise.all(['1', '2', '3'].map((id) => store.takeReply(id, 1, 0)));
      expect(left).toEqual([null, body('2'), body('3')]);
    });
  });
});
