import { expect, test } from 'vitest';
import type { BookEntry } from '../../src/store/ports/books.ts';
import { operation, settleDeposit } from '../support/ledger/channel-rows.ts';
import { describePorts } from '../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';
import { ID, useChannels } from '../support/ledger/use-channels.ts';

const NETWORK = 'eip155:5042';
const AT = 1_795_262_400_000;

const missing = (item: string, more: Partial<BookEntry> = {}): BookEntry => ({
  rail: 'usdc-exact',
  kind: 'missing',
  item,
  amount: 500n,
  detail: 'no transfer',
  notedMs: AT,
  acceptedMs: null,
  ...more,
});
const nothing = { found: [], ended: [] };

describePorts('the books', (adapter) => {
  const { ledger, payments, channels, seen, pay, deposit } = useChannels(adapter);
  const open = (kind: BookEntry['kind'] = 'missing', limit = 10) => ledger.stores.books.entries(NETWORK, kind, limit);

  test('keep how far they are checked, on each network', async () => {
    const { books } = ledger.stores;
    await books.record(NETWORK, { found: [missing('a')], ended: [] });
    expect(await books.checked(NETWORK)).toBeNull();
    await books.record(NETWORK, { ...nothing, checked: { endedMs: AT, block: null } });
    expect(await books.checked(NETWORK)).toEqual({ endedMs: AT, block: null });
    await books.record(NETWORK, { ...nothing, checked: { endedMs: AT + 1, block: 77 } });
    expect(await books.checked(NETWORK)).toEqual({ endedMs: AT + 1, block: 77 });
    expect(await books.checked('eip155:1')).toBeNull();
    const other = await ledger.another();
    expect(await other.books.checked(NETWORK)).toEqual({ endedMs: AT + 1, block: 77 });
  });

  test('keep entries until they end: the oldest first, of one kind and network, with exact amounts', async () => {
    const { books } = ledger.stores;
    const large = missing('b', { amount: 2n ** 62n + 1n, notedMs: AT - 1 });
    const unread = missing('a', { kind: 'unread', amount: 0n });
    await books.record(NETWORK, { found: [missing('a'), large, unread], ended: [] });
    await books.record('eip155:1', { found: [missing('c')], ended: [] });
    expect([await open(), await open('missing', 1), await open('unread')]).toEqual([
      [large, missing('a')],
      [large],
      [unread],
    ]);
    await books.record(NETWORK, { found: [], ended: [missing('b'), unread, missing('unknown')] });
    expect([await open(), await open('unread')]).toEqual([[missing('a')], []]);
  });

  test('keep when an entry was first found, and what was accepted until it grows', async () => {
    const { books } = ledger.stores;
    await books.record(NETWORK, { found: [missing('a'), missing('b', { notedMs: AT - 1 })], ended: [] });
    const accepted = [missing('b', { notedMs: AT - 1, acceptedMs: AT + 5 }), missing('a', { acceptedMs: AT + 5 })];
    expect(await books.accept(AT + 5)).toEqual(accepted);
    expect(await books.accept(AT + 6)).toEqual([]);
    expect(await open()).toEqual(accepted);
    const again = [missing('a', { notedMs: AT + 9, detail: 'still' }), missing('b', { notedMs: AT + 9, amount: 501n })];
    await books.record(NETWORK, { found: again, ended: [] });
    expect(await open()).toEqual([
      missing('b', { notedMs: AT - 1, amount: 501n }),
      missing('a', { detail: 'still', acceptedMs: AT + 5 }),
    ]);
  });

  test('end and accept what was named alone: neither another network’s entry, nor another rail’s, nor what was not read', async () => {
    const { books } = ledger.stores;
    const [unread, other] = [missing('a', { kind: 'unread' }), missing('a', { rail: 'usdc-channel' })];
    await books.record(NETWORK, {
      found: [missing('a'), other, unread],
      ended: [],
      checked: { endedMs: AT, block: 1 },
    });
    await books.record('eip155:1', { found: [missing('a')], ended: [] });
    await books.record(NETWORK, { found: [], ended: [missing('a')] });
    expect([await open(), await open('unread'), await books.entries('eip155:1', 'missing', 10)]).toEqual([
      [other],
      [unread],
      [missing('a')],
    ]);
    expect(await books.checked(NETWORK)).toEqual({ endedMs: AT, block: 1 });
    expect((await books.accept(AT + 5)).map(({ kind }) => kind)).toEqual(['missing', 'missing']);
    expect(await open('unread')).toEqual([unread]);
  });

  test('are accepted in the order in which they are listed: of one time, by their rail and their item', async () => {
    const { books } = ledger.stores;
    const found = [
      missing('b'),
      missing('a'),
      missing('c', { rail: 'lightning' }),
      missing('d', { notedMs: AT - 1 }),
      missing('a', { rail: 'usdc-channel', notedMs: AT - 1 }),
    ];
    await books.record(NETWORK, { found, ended: [] });
    const listed = await open();
    expect(listed.map(({ rail, item }) => [rail, item])).toEqual([
      ['usdc-channel', 'a'],
      ['usdc-exact', 'd'],
      ['lightning', 'c'],
      ['usdc-exact', 'a'],
      ['usdc-exact', 'b'],
    ]);
    expect(await books.accept(AT + 5)).toEqual(listed.map((entry) => ({ ...entry, acceptedMs: AT + 5 })));
  });

  test('change in one step: an entry that the database refuses leaves everything as it was', async () => {
    const { books } = ledger.stores;
    await books.record(NETWORK, { found: [missing('a')], ended: [], checked: { endedMs: AT, block: 1 } });
    const refused = [missing('b'), missing('c', { amount: -1n })];
    const change = { found: refused, ended: [missing('a')], checked: { endedMs: AT + 1, block: 2 } };
    await expect(books.record(NETWORK, change)).rejects.toThrow();
    expect([await open(), await books.checked(NETWORK)]).toEqual([[missing('a')], { endedMs: AT, block: 1 }]);
  });

  test('are compared over the settled rows of a span, page by page, without vouchers and what is open', async () => {
    const settle = async (id: string, endedAt: number, more: object = {}) => {
      await payments.reserve(reservation(id, id, more), 0, null);
      await payments.move(id, ['reserved'], 'settling', {});
      await payments.move(id, ['settling'], 'settled', { endedAt, transaction: hash32(id), block: 7, charged: 500n });
    };
    const times = { early: 9, b: 10, a: 10, 0: 10, c: 11, late: 20 };
    for (const [id, at] of Object.entries(times)) await settle(id, at);
    await settle('foreign', 12, { network: 'eip155:1' });
    await payments.reserve(reservation('open', 'open'), 0, null);
    await payments.reserve(reservation('failed', 'failed'), 0, null);
    await payments.move('failed', ['reserved'], 'failed', { reason: 'reverted', endedAt: 12 });
    await seen();
    await pay('voucher', 100n);
    await ledger.sql("UPDATE usdc_payments SET ended_at = 13 WHERE id = 'voucher'");
    await deposit('deposit', 200n);
    await settleDeposit(ledger.stores, 'deposit', 5, 14);
    const { books } = ledger.stores;
    const page = async (limit: number, after?: { endedAt: number; id: string }) =>
      (await books.settledBetween(NETWORK, { from: 10, to: 20 }, limit, after)).map(({ id }) => id);
    expect(await page(10)).toEqual(['0', 'a', 'b', 'c', 'deposit']);
    expect(await page(3)).toEqual(['0', 'a', 'b']);
    expect(await page(2, { endedAt: 10, id: 'b' })).toEqual(['c', 'deposit']);
    const [first] = await books.settledBetween(NETWORK, { from: 10, to: 20 }, 1);
    expect(first).toEqual(await payments.get('0'));
  });

  test('find channels of which something was claimed, and the claims of a span', async () => {
    await seen('a', { totalClaimed: 0n });
    await pay('s', 100n);
    await seen('b');
    expect(await channels.listClaimed(NETWORK, 10)).toEqual([]);
    await seen('a', { totalClaimed: 100n, block: 101 });
    const claimed = await channels.listClaimed(NETWORK, 10);
    expect(claimed).toEqual([await channels.get(ID)]);
    expect(await channels.listClaimed(NETWORK, 10, ID)).toEqual([]);
    for (const [id, endedAt] of Object.entries({ x: 10, y: 11, z: 20 })) {
      await channels.begin(operation(id));
      await channels.end(id, { state: 'done', amount: 5n, transaction: hash32(id), endedAt });
    }
    await channels.begin(operation('failed'));
    await channels.end('failed', { state: 'failed', reason: 'reverted', endedAt: 12 });
    const found = await channels.listDoneClaims(NETWORK, 10, 20);
    expect(found).toEqual([await channels.operation('x'), await channels.operation('y')]);
  });

  test('know of a Gateway transfer what the last check found', async () => {
    const { transfers } = ledger.stores;
    await payments.reserve(reservation('g', 'g'), 0, null);
    await payments.move('g', ['reserved'], 'settling', {});
    const transaction = Buffer.from(hash32('g').subarray(0, 16));
    await payments.move('g', ['settling'], 'settled', { transaction, endedAt: 1 });
    expect(await transfers.get('g')).toEqual({ status: null, transaction: null, isOpen: true });
    await transfers.note('g', { status: 'failed', transaction: null, nextCheckAt: null });
    expect(await transfers.get('g')).toEqual({ status: 'failed', transaction: null, isOpen: false });
    await transfers.note('g', { status: 'completed', transaction: hash32('batch'), nextCheckAt: 9 });
    expect(await transfers.get('g')).toEqual({
      status: 'completed',
      transaction: Buffer.from(hash32('batch')),
      isOpen: true,
    });
    expect(await transfers.get('unknown')).toBeNull();
  });
});
