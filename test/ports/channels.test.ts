import { describe, expect, test } from 'vitest';
import type { VoucherSale } from '../../src/store/ports/channels.ts';
import {
  channelState,
  channelTerms,
  depositSale,
  NETWORK,
  operation,
  refundOf,
  SEEN_AT,
  settleDeposit,
  voucherSale,
  voucherSignature,
} from '../support/ledger/channel-rows.ts';
import { describeLedgers, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';

const REPLY = Buffer.from('the answer');
const KEEP_UNTIL = SEEN_AT + 900_000;
const ids = (of: readonly { id: string }[]): string[] => of.map(({ id }) => id);
/** What the ledger knows of the channel that is named `a` in most tests. */
const { id: ID, ...TERMS } = channelTerms('a');

describeLedgers('payment channels', (adapter) => {
  const ledger = useLedger(adapter);
  const { payments, channels } = {
    payments: ofNow(() => ledger.stores.payments),
    channels: ofNow(() => ledger.stores.channels),
  };

  const seen = (name = 'a', more: Parameters<typeof channelState>[0] = {}, now = SEEN_AT) =>
    channels.note(channelTerms(name), channelState(more), now);
  const charge = (sale: VoucherSale) => channels.charge(sale, REPLY, KEEP_UNTIL);
  const pay = (id: string, max: bigint, more: Parameters<typeof voucherSale>[3] = {}) =>
    charge(voucherSale(id, 'a', max, more));
  const charged = async (name = 'a') => (await channels.get(channelTerms(name).id))?.charged;
  /** Everything of the ledger that a refused write could have changed. */
  const contents = async () => ({
    channels: await ledger.sql('SELECT * FROM channels ORDER BY id'),
    operations: await ledger.sql('SELECT * FROM channel_operations ORDER BY id'),
    payments: await ledger.sql('SELECT * FROM usdc_payments ORDER BY id'),
    replies: await ledger.sql('SELECT * FROM usdc_replies ORDER BY payment_id'),
  });
  /** Expects that a write answers false and that no row differs afterwards. */
  const refuses = async (write: () => Promise<boolean>) => {
    const before = await contents();
    expect(await write()).toBe(false);
    expect(await contents()).toEqual(before);
  };
  const deposit = (id: string, max: bigint, more: Parameters<typeof depositSale>[3] = {}) =>
    payments.reserve(depositSale(id, 'a', max, more), 0, null);

  describe('a state of the chain', () => {
    test('inserts the channel, and is read as it was noted, above 2^53 too', async () => {
      const state = channelState({
        ...{
          balance: 2n ** 63n - 1n,
          totalClaimed: 2n ** 60n + 1n,
          withdrawAmount: 2n ** 61n + 3n,
          withdrawAt: 1_900_000_000,
        },
        refundNonce: 7n,
      });
      const noted = await channels.note(channelTerms('a'), state, SEEN_AT);
      // What was claimed had been charged, by a ledger that is lost.
      const sums = { charged: state.totalClaimed, writtenOff: 0n, signature: null };
      const times = { readAt: SEEN_AT, usedAt: SEEN_AT, unclaimedSince: null };
      expect(noted).toEqual({ id: ID, ...TERMS, ...sums, state, ...times });
      expect(await channels.get(ID)).toEqual(noted);
      expect(await channels.get(hash32('no channel'))).toBeNull();
    });

    test('of a newer block replaces the noted one and leaves charges and use as they were', async () => {
      await seen();
      await pay('s1', 100n, { reservedAt: SEEN_AT + 1 });
      const newer = { balance: 12_000n, withdrawAmount: 500n, withdrawAt: 99, refundNonce: 1n, block: 101 };
      expect(await seen('a', newer, SEEN_AT + 2)).toMatchObject({
        ...{ charged: 100n, usedAt: SEEN_AT + 1, unclaimedSince: SEEN_AT + 1, readAt: SEEN_AT + 2 },
        state: channelState(newer),
      });
    });

    test('of the same block replaces the noted one', async () => {
      await seen();
      expect((await seen('a', { balance: 11_000n })).state.balance).toBe(11_000n);
    });

    test('of an older block changes nothing, and the answer is the channel as it is', async () => {
      const noted = await seen();
      expect(await seen('a', { balance: 1n, totalClaimed: 50n, block: 99 }, SEEN_AT + 9)).toEqual(noted);
      expect(await channels.get(ID)).toEqual(noted);
    });

    test('of a block before the last settled deposit changes nothing, because it lacks the deposit', async () => {
      await seen();
      await deposit('d', 100n);
      await settleDeposit(ledger.stores, 'd', 110);
      expect((await seen('a', { block: 109 })).state).toMatchObject({ balance: 15_000n, block: 100 });
      expect((await seen('a', { balance: 15_001n, block: 110 })).state).toMatchObject({ balance: 15_001n, block: 110 });
    });

    test('ends the wait of unclaimed charges when all are claimed', async () => {
      await seen();
      await pay('s1', 100n);
      expect((await seen('a', { totalClaimed: 99n, block: 101 })).unclaimedSince).toBe(SEEN_AT);
      expect((await seen('a', { totalClaimed: 100n, block: 102 })).unclaimedSince).toBeNull();
    });

    test('after a partial claim lets the wait begin with the oldest charge that is still unclaimed', async () => {
      await seen();
      for (const [at, max] of [100n, 200n, 300n].entries()) await pay(`s${at}`, max, { reservedAt: SEEN_AT + at });
      expect((await seen('a', { totalClaimed: 200n, block: 101 })).unclaimedSince).toBe(SEEN_AT + 2);
    });

    test('that shows more claimed than was charged here raises the charges, without a voucher over them', async () => {
      await seen();
      await pay('s1', 100n);
      const noted = await seen('a', { totalClaimed: 800n, block: 101 });
      expect(noted).toMatchObject({ charged: 800n, writtenOff: 0n, signature: null, unclaimedSince: null });
      expect(await pay('s2', 900n)).toBe(true);
    });

    test('that shows a written-off charge as claimed lowers what is written off', async () => {
      await seen();
      await pay('s1', 100n);
      await pay('s2', 200n);
      await channels.writeOff(ID, 150n, 200n);
      expect(await seen('a', { totalClaimed: 120n, block: 101 })).toMatchObject({
        writtenOff: 80n,
        unclaimedSince: null,
      });
    });
  });

  describe('a voucher', () => {
    test('is charged with its sale, settled from the start, and its reply', async () => {
      await seen('a', { totalClaimed: 0n, withdrawAmount: 5n, withdrawAt: 9, refundNonce: 3n });
      const sale = voucherSale('s1', 'a', 100n, { identifierHash: hash32('identifier'), reservedAt: SEEN_AT + 3 });
      expect(await charge(sale)).toBe(true);
      const { route: _, channel, ...kept } = sale;
      const bytes = { nonce: Buffer.from(sale.nonce), authorizationHash: Buffer.from(sale.authorizationHash) };
      const after = { balance: 10_000n, totalClaimed: 0n, withdrawAmount: 5n, withdrawAt: 9, refundNonce: 3n };
      const row = {
        ...kept,
        ...bytes,
        identifierHash: Buffer.from(hash32('identifier')),
        ...{ state: 'settled', charged: 100n, endedAt: SEEN_AT + 3, deliveries: 0 },
        ...{ signature: null, calldata: null, payerHasCode: null, checkedBlock: null, transaction: null, block: null },
        ...{ reason: null, channel: { channelId: ID, max: 100n, after } },
      };
      expect(await payments.get('s1')).toEqual(row);
      expect(await channels.findSale(ID, 100n)).toEqual(row);
      expect(await channels.get(ID)).toMatchObject({
        ...{ charged: 100n, usedAt: SEEN_AT + 3, unclaimedSince: SEEN_AT + 3 },
        signature: Buffer.from(channel.signature),
      });
      expect(await payments.takeReply('s1', 1, KEEP_UNTIL - 1)).toEqual(REPLY);
      expect(await ledger.sql('SELECT route, voucher_signature FROM usdc_payments')).toEqual([
        { route: '/v1/paid/chain/wallet', voucher_signature: null },
      ]);
    });

    test('keeps its reply until the given time', async () => {
      await seen();
      await pay('s1', 100n);
      expect(await payments.takeReply('s1', 1, KEEP_UNTIL)).toBeNull();
      expect(await payments.purgeReplies(KEEP_UNTIL)).toBe(1);
    });

    test('that two calls present at once is charged to one of them', async () => {
      await seen();
      const other = (await ledger.another()).channels;
      const both = [
        pay('s1', 100n),
        other.charge(voucherSale('s2', 'a', 100n, { nonce: hash32('another nonce') }), REPLY, KEEP_UNTIL),
      ];
      expect((await Promise.all(both)).filter(Boolean)).toHaveLength(1);
      expect(await charged()).toBe(100n);
      expect(await ledger.sql('SELECT id FROM usdc_payments')).toHaveLength(1);
    });

    test('that does not follow the charges is refused: an old one, the same again, one that skips, and one below its price', async () => {
      await seen();
      await pay('s1', 100n);
      await pay('s2', 200n);
      for (const max of [100n, 150n, 200n, 400n]) await refuses(() => pay('x', max, { nonce: hash32('x') }));
      await refuses(() => pay('x', 50n, { price: 100n }));
      expect(await pay('s3', 300n)).toBe(true);
    });

    test('of an unknown channel is refused', async () => {
      await refuses(() => charge(voucherSale('s1', 'unknown', 100n)));
    });

    test('is charged up to the balance less the pending withdrawal, and not one unit more', async () => {
      await seen('a', { balance: 300n, withdrawAmount: 101n });
      await refuses(() => pay('s1', 200n, { price: 200n }));
      expect(await pay('s1', 199n, { price: 199n })).toBe(true);
      await refuses(() => pay('s2', 200n, { price: 1n }));
    });

    test('is refused while a deposit of its channel is open, in each open state, and another channel sells meanwhile', async () => {
      await seen();
      await seen('b');
      await deposit('d', 100n);
      await refuses(() => pay('s1', 100n));
      await payments.move('d', ['reserved'], 'settling', { signature: Buffer.alloc(65) }, { store: REPLY });
      await refuses(() => pay('s1', 100n));
      await payments.move('d', ['settling'], 'unknown', {});
      await refuses(() => pay('s1', 100n));
      expect(await charge(voucherSale('other', 'b', 100n))).toBe(true);
      await payments.move('d', ['unknown'], 'failed', { reason: 'cancelled', signature: null, endedAt: 1 }, 'drop');
      expect(await pay('s1', 100n)).toBe(true);
    });

    test('is refused while a refund of its channel is open', async () => {
      await seen();
      expect(await channels.begin(refundOf('r', 'a'), 0n)).toBe(true);
      await refuses(() => pay('s1', 100n));
      await channels.end('r', { state: 'failed', reason: 'reverted', endedAt: 1 });
      expect(await pay('s1', 100n)).toBe(true);
    });

    test('is charged while a claim and a sweep are open', async () => {
      await seen();
      await channels.begin(operation('claim'));
      await channels.begin(operation('sweep', { kind: 'settle' }));
      expect(await pay('s1', 100n)).toBe(true);
    });

    test('whose payment identifier another payment holds is refused', async () => {
      await seen();
      const identifierHash = hash32('identifier');
      await payments.reserve(reservation('other', 'other', { identifierHash }), 0, null);
      await refuses(() => pay('s1', 100n, { identifierHash }));
      expect(await pay('s1', 100n)).toBe(true);
    });

    test('whose key another payment has is refused', async () => {
      await seen();
      const { nonce } = voucherSale('s1', 'a', 100n);
      await payments.reserve(reservation('other', 'other', { nonce }), 0, null);
      await refuses(() => pay('s1', 100n));
    });

    test('that another sale holds is refused, even if the charges were to allow it', async () => {
      await seen();
      await pay('s1', 100n);
      await ledger.sql('UPDATE channels SET charged = 0, unclaimed_since = NULL');
      await refuses(() => pay('s2', 100n, { nonce: hash32('s2') }));
    });

    test('that violates a constraint is the only one to reject, and the other writes of its turn are done whole', async () => {
      await seen();
      const writes = [
        pay('s1', 100n),
        pay('broken', 200n, { requestHash: Buffer.alloc(3) }),
        channels.charge(voucherSale('half', 'a', 200n), REPLY, 'not a time' as unknown as number),
        pay('s2', 200n),
        pay('refused', 400n),
      ];
      const ends = (await Promise.allSettled(writes)).map((end) =>
        end.status === 'fulfilled' ? end.value : 'rejected',
      );
      expect(ends).toEqual([true, 'rejected', 'rejected', true, false]);
      expect(await charged()).toBe(200n);
      expect(await ledger.sql('SELECT id FROM usdc_payments ORDER BY id')).toEqual([{ id: 's1' }, { id: 's2' }]);
      expect(await ledger.sql('SELECT payment_id AS id FROM usdc_replies ORDER BY 1')).toEqual([
        { id: 's1' },
        { id: 's2' },
      ]);
    });

    test('counts its reply towards the kept bytes while it is written, and not after it was refused', async () => {
      await seen();
      const [stored, refused] = [pay('s1', 100n), pay('x', 500n)];
      expect(await payments.replyBytes()).toBeGreaterThanOrEqual(REPLY.length);
      expect(await Promise.all([stored, refused])).toEqual([true, false]);
      expect(await payments.replyBytes()).toBe(REPLY.length);
    });
  });

  describe('a deposit', () => {
    test('is the open sale of its channel and holds its voucher, from the reservation to its end', async () => {
      await seen();
      expect([await channels.findOpen(ID), await channels.findSale(ID, 100n)]).toEqual([null, null]);
      expect(await deposit('d', 100n)).toBe(true);
      const row = await payments.get('d');
      expect(row).toMatchObject({ state: 'reserved', channel: { channelId: ID, max: 100n, after: null } });
      expect([await channels.findOpen(ID), await channels.findSale(ID, 100n)]).toEqual([row, row]);
      expect(await channels.findSale(ID, 101n)).toBeNull();
      await settleDeposit(ledger.stores, 'd', 101);
      expect([await channels.findOpen(ID), (await channels.findSale(ID, 100n))?.state]).toEqual([null, 'settled']);
    });

    test('charges its voucher once as it becomes settled, keeps the snapshot, and wipes what settling needed', async () => {
      await seen('a', { withdrawAmount: 5n, withdrawAt: 9, refundNonce: 2n });
      await deposit('d', 100n);
      expect(await charged()).toBe(0n);
      expect(await settleDeposit(ledger.stores, 'd', 101, SEEN_AT + 7)).toBe(true);
      const again = () => payments.move('d', ['settling', 'unknown'], 'settled', { block: 101, endedAt: 1 });
      await refuses(again);
      expect(await channels.get(ID)).toMatchObject({
        ...{ charged: 100n, usedAt: SEEN_AT + 7, unclaimedSince: SEEN_AT + 7, readAt: SEEN_AT },
        signature: Buffer.from(voucherSignature('a', 100n)),
        state: { balance: 15_000n, block: 100 },
      });
      const after = { balance: 15_000n, totalClaimed: 0n, withdrawAmount: 5n, withdrawAt: 9, refundNonce: 2n };
      expect(await payments.get('d')).toMatchObject({
        ...{ state: 'settled', amount: 5_000n, charged: 100n, signature: null, calldata: null },
        channel: { channelId: ID, max: 100n, after },
      });
      expect(await ledger.sql('SELECT voucher_signature FROM usdc_payments')).toEqual([{ voucher_signature: null }]);
      expect(await pay('s1', 200n)).toBe(true);
    });

    test('keeps its calldata and its voucher while it is open', async () => {
      await seen();
      await deposit('d', 100n);
      const calldata = Buffer.from('deposit()');
      await payments.move('d', ['reserved'], 'settling', { signature: Buffer.alloc(65), calldata }, { store: REPLY });
      await payments.move('d', ['settling'], 'unknown', {});
      expect((await payments.get('d'))?.calldata).toEqual(calldata);
      const [row] = await ledger.sql('SELECT voucher_signature FROM usdc_payments');
      expect(row?.voucher_signature).toEqual(Buffer.from(voucherSignature('a', 100n)));
    });

    test('raises the noted balance only when no state of its block or a later one is noted', async () => {
      for (const [name, block, balance] of [
        ['before', 109, 15_000n],
        ['at', 110, 10_000n],
        ['after', 111, 10_000n],
      ] as const) {
        await seen(name);
        await payments.reserve(depositSale(name, name, 100n), 0, null);
        await seen(name, { block });
        await settleDeposit(ledger.stores, name, 110);
        expect(await channels.get(channelTerms(name).id)).toMatchObject({ charged: 100n, state: { balance, block } });
        expect((await payments.get(name))?.channel?.after?.balance).toBe(balance);
      }
    });

    test('of one channel is reserved once, by many callers of two instances at once', async () => {
      await seen();
      const other = (await ledger.another()).payments;
      const tries = Array.from({ length: 16 }, (_, at) =>
        (at % 2 ? other : payments).reserve(depositSale(`d${at}`, 'a', 100n + BigInt(at)), 0, null),
      );
      expect((await Promise.all(tries)).filter(Boolean)).toHaveLength(1);
    });

    test('is not reserved when its channel is unknown, has an open sale or an open refund', async () => {
      await refuses(() => deposit('d', 100n));
      await seen();
      expect(await deposit('d', 100n)).toBe(true);
      await refuses(() => deposit('d2', 200n));
      await payments.release('d', ['reserved']);
      await channels.begin(refundOf('r', 'a'), 0n);
      await refuses(() => deposit('d3', 100n));
    });

    test('is not reserved when a sale that has not failed holds its voucher', async () => {
      await seen();
      await pay('s1', 100n);
      await refuses(() => deposit('d', 100n));
      expect(await deposit('d', 200n)).toBe(true);
    });

    test('that fails or is released frees its channel and its voucher, and leaves no signature', async () => {
      await seen();
      await deposit('d', 100n);
      await payments.release('d', ['reserved']);
      expect(await deposit('d2', 100n)).toBe(true);
      const intent = { signature: Buffer.alloc(65, 1), calldata: Buffer.from('x') };
      await payments.move('d2', ['reserved'], 'settling', intent, { store: REPLY });
      // The caller may name the calldata too.
      const end = { reason: 'cancelled', signature: null, calldata: null, endedAt: 1 };
      await payments.move('d2', ['settling'], 'failed', end, 'drop');
      const wiped = { signature: null, calldata: null, voucher_signature: null };
      expect(await ledger.sql('SELECT signature, calldata, voucher_signature FROM usdc_payments')).toEqual([wiped]);
      expect(await channels.findSale(ID, 100n)).toBeNull();
      expect(await charged()).toBe(0n);
      expect(await deposit('d3', 100n)).toBe(true);
    });

    test('that reverted is reserved again with the voucher of the new request, and released without it', async () => {
      await seen();
      await deposit('d', 100n);
      await payments.move('d', ['reserved'], 'settling', { signature: Buffer.alloc(65, 1) }, { store: REPLY });
      await payments.move('d', ['settling'], 'failed', { reason: 'reverted', signature: null, endedAt: 1 }, 'drop');
      await pay('s1', 100n);
      const { nonce, authorizationHash } = depositSale('d', 'a', 100n);
      const again = (id: string, max: bigint) =>
        payments.reserve(depositSale(id, 'a', max, { nonce, authorizationHash }), 0, 'reverted');
      await refuses(() => again('d2', 100n));
      expect(await again('d2', 200n)).toBe(true);
      expect((await channels.findOpen(ID))?.channel).toMatchObject({ max: 200n });
      await payments.move('d2', ['reserved'], 'settling', { calldata: Buffer.from('x') }, { store: REPLY });
      await payments.release('d2', ['settling']);
      const wiped = { signature: null, calldata: null, voucher_signature: null };
      const rows = await ledger.sql("SELECT signature, calldata, voucher_signature FROM usdc_payments WHERE id = 'd2'");
      expect(rows).toEqual([wiped]);
    });

    test('is read exactly when its amount is above 2^53', async () => {
      await seen();
      const amount = 2n ** 63n - 1n;
      await deposit('d', 100n, { amount });
      expect((await payments.get('d'))?.amount).toBe(amount);
    });
  });

  describe('an operation', () => {
    test('is read as it was begun', async () => {
      await seen();
      const claim = operation('1', { amount: 2n ** 62n + 1n });
      const refund = refundOf('2', 'a');
      expect([await channels.begin(claim), await channels.begin(refund, 0n)]).toEqual([true, true]);
      const open = { state: 'open', transaction: null, reason: null, endedAt: null };
      expect(await channels.operation('1')).toEqual({ ...claim, ...open });
      expect(await channels.operation('2')).toEqual({ ...refund, ...open });
      expect(await channels.operation('3')).toBeNull();
    });

    test('that is a refund begins only when its channel has no open deposit, no open refund and the given charges', async () => {
      await refuses(() => channels.begin(refundOf('r', 'a'), 0n));
      await seen();
      await pay('s1', 100n);
      for (const wrong of [0n, 99n, 101n, undefined]) await refuses(() => channels.begin(refundOf('r', 'a'), wrong));
      await deposit('d', 200n);
      await refuses(() => channels.begin(refundOf('r', 'a'), 100n));
      await payments.release('d', ['reserved']);
      const both = [channels.begin(refundOf('r', 'a'), 100n), channels.begin(refundOf('r2', 'a'), 100n)];
      expect(await Promise.all(both)).toEqual([true, false]);
      await refuses(() => channels.begin(refundOf('r3', 'a'), 100n));
      await channels.end('r', { state: 'failed', reason: 'reverted', endedAt: 1 });
      expect(await channels.begin(refundOf('r3', 'a'), 100n)).toBe(true);
    });

    test('ends once: as done with the amount and the transaction of the evidence, and without its calldata', async () => {
      await channels.begin(operation('1'));
      const done = { state: 'done', amount: 650n, transaction: hash32('t'), endedAt: SEEN_AT + 4 } as const;
      expect(await channels.end('1', done)).toBe(true);
      await refuses(() => channels.end('1', { state: 'failed', reason: 'late', endedAt: 9 }));
      await refuses(() => channels.end('unknown', done));
      expect(await channels.operation('1')).toMatchObject({ ...done, calldata: null, reason: null });
    });

    test('that failed keeps its amount and its noted transaction, and says why', async () => {
      await channels.begin(operation('1'));
      await channels.noteBroadcast([{ id: '1', transaction: hash32('t') }]);
      await channels.end('1', { state: 'failed', reason: 'reverted', endedAt: 5 });
      const kept = { amount: 700n, transaction: Buffer.from(hash32('t')), calldata: null };
      expect(await channels.operation('1')).toMatchObject({ ...kept, state: 'failed', reason: 'reverted', endedAt: 5 });
    });

    test('is listed while it is open, oldest first, as many as asked for', async () => {
      for (const [id, createdAt] of [
        ['c', 1],
        ['a', 3],
        ['b', 2],
        ['d', 2],
      ] as const)
        await channels.begin(operation(id, { createdAt }));
      await channels.end('c', { state: 'failed', reason: 'x', endedAt: 5 });
      expect(ids(await channels.openOperations(10))).toEqual(['b', 'd', 'a']);
      expect(ids(await channels.openOperations(2))).toEqual(['b', 'd']);
    });

    test('has its transaction noted while it is open, and only the open ones are returned', async () => {
      for (const id of ['a', 'b', 'c']) await channels.begin(operation(id));
      await channels.end('b', { state: 'failed', reason: 'x', endedAt: 5 });
      const entries = ['a', 'b', 'c', 'unknown'].map((id) => ({ id, transaction: hash32(`sent ${id}`) }));
      expect(await channels.noteBroadcast(entries)).toEqual(new Set(['a', 'c']));
      const hashes = await Promise.all(['a', 'b', 'c'].map(async (id) => (await channels.operation(id))?.transaction));
      expect(hashes).toEqual([Buffer.from(hash32('sent a')), null, Buffer.from(hash32('sent c'))]);
      expect(await channels.noteBroadcast([])).toEqual(new Set());
    });

    test('is noted under a fencing token that no instance holds on SQLite only, where one process holds the ledger', async () => {
      await channels.begin(operation('a'));
      const noted = await channels.noteBroadcast([{ id: 'a', transaction: hash32('t') }], 1);
      expect(noted).toEqual(new Set(adapter.name === 'sqlite' ? ['a'] : []));
      expect((await channels.operation('a'))?.transaction).toEqual(
        adapter.name === 'sqlite' ? Buffer.from(hash32('t')) : null,
      );
    });

    test('that was the last done refund of a channel is found, whatever began or failed later', async () => {
      await seen();
      await seen('b');
      expect(await channels.lastRefund(ID)).toBeNull();
      const done = (endedAt: number) => ({ state: 'done', amount: 1n, transaction: hash32('t'), endedAt }) as const;
      for (const [id, endedAt] of [
        ['r2', 10],
        ['r1', 20],
      ] as const) {
        await channels.begin(refundOf(id, 'a'), 0n);
        await channels.end(id, done(endedAt));
      }
      await channels.begin(refundOf('other', 'b'), 0n);
      await channels.end('other', done(30));
      await channels.begin(refundOf('failed', 'a'), 0n);
      await channels.end('failed', { state: 'failed', reason: 'x', endedAt: 40 });
      await channels.begin(refundOf('open', 'a'), 0n);
      expect((await channels.lastRefund(ID))?.id).toBe('r1');
    });
  });

  describe('the lists', () => {
    const names = async (of: Promise<readonly { id: Uint8Array }[]>) => {
      const known = ['a', 'b', 'c', 'd', 'e'].map((name) => [Buffer.from(channelTerms(name).id).toString('hex'), name]);
      const byId = Object.fromEntries(known) as Record<string, string>;
      return (await of).map(({ id }) => byId[Buffer.from(id).toString('hex')]);
    };

    test('of channels with unclaimed charges begin with those that wait longest, and go on after one', async () => {
      for (const [at, name] of ['c', 'a', 'e', 'b', 'd'].entries()) {
        await seen(name);
        const reservedAt = SEEN_AT + Math.min(at, 3);
        if (name !== 'e') await charge(voucherSale(`s ${name}`, name, 100n, { reservedAt }));
      }
      await channels.note({ ...channelTerms('x'), network: 'eip155:1' }, channelState(), SEEN_AT);
      // `b` and `d` wait since the same time; their ids decide.
      const last = Buffer.compare(channelTerms('b').id, channelTerms('d').id) < 0 ? ['b', 'd'] : ['d', 'b'];
      expect(await names(channels.listUnclaimed(NETWORK, 10))).toEqual(['c', 'a', ...last]);
      const [, second, third] = await channels.listUnclaimed(NETWORK, 3);
      const goingOn = ({ id, unclaimedSince }: NonNullable<typeof second>) => ({
        id,
        unclaimedSince: unclaimedSince ?? 0,
      });
      expect(await names(channels.listUnclaimed(NETWORK, 10, goingOn(second!)))).toEqual(last);
      expect(await names(channels.listUnclaimed(NETWORK, 10, goingOn(third!)))).toEqual(last.slice(1));
      expect(await channels.listUnclaimed('eip155:1', 10)).toEqual([]);
    });

    test('of used channels hold those used or read since a time, those read longest ago first, each once', async () => {
      await seen('a', {}, 10);
      await seen('b', {}, 20);
      await seen('c', {}, 15);
      await seen('d', {}, 5);
      await charge(voucherSale('s', 'd', 100n, { reservedAt: 30 }));
      await charge(voucherSale('t', 'b', 100n, { reservedAt: 40 }));
      expect(await names(channels.listUsedSince(NETWORK, 15, 10))).toEqual(['d', 'c', 'b']);
      expect(await names(channels.listUsedSince(NETWORK, 15, 2))).toEqual(['d', 'c']);
      expect(await names(channels.listUsedSince(NETWORK, 41, 10))).toEqual([]);
      expect(await channels.listUsedSince('eip155:1', 0, 10)).toEqual([]);
    });
  });

  describe('the sums', () => {
    test('are those of all channels of a network, and zero without one', async () => {
      expect(await channels.totals(NETWORK)).toEqual({ charged: 0n, claimed: 0n, writtenOff: 0n });
      await seen('a', { totalClaimed: 2n ** 60n, balance: 2n ** 62n });
      await seen('b');
      await charge(voucherSale('s', 'b', 100n));
      await channels.writeOff(channelTerms('b').id, 30n, 100n);
      await channels.note({ ...channelTerms('x'), network: 'eip155:1' }, channelState({ totalClaimed: 7n }), SEEN_AT);
      expect(await channels.totals(NETWORK)).toEqual({
        charged: 2n ** 60n + 100n,
        claimed: 2n ** 60n,
        writtenOff: 30n,
      });
    });

    test('are written off while the charges are as given, and no more than can still be claimed', async () => {
      await seen();
      await pay('s1', 100n);
      await pay('s2', 200n);
      await refuses(() => channels.writeOff(ID, 50n, 100n));
      await refuses(() => channels.writeOff(ID, 201n, 200n));
      await refuses(() => channels.writeOff(ID, -1n, 200n));
      await refuses(() => channels.writeOff(hash32('unknown'), 1n, 200n));
      expect(await channels.writeOff(ID, 50n, 200n)).toBe(true);
      expect(await channels.get(ID)).toMatchObject({ charged: 200n, writtenOff: 50n, unclaimedSince: SEEN_AT });
      expect(await channels.writeOff(ID, 150n, 200n)).toBe(true);
      expect(await channels.get(ID)).toMatchObject({ writtenOff: 200n, unclaimedSince: null });
    });
  });

  test('are there for the next start', async () => {
    await seen();
    await pay('s1', 100n);
    await channels.begin(operation('1'));
    const before = [await channels.get(ID), await channels.operation('1'), await channels.findSale(ID, 100n)];
    await ledger.reopen();
    expect([await channels.get(ID), await channels.operation('1'), await channels.findSale(ID, 100n)]).toEqual(before);
  });
});
