import { expect, test } from 'vitest';
import {
  channelTerms,
  depositSale,
  refundOf,
  SEEN_AT,
  settleDeposit,
  voucherSignature,
} from '../support/ledger/channel-rows.ts';
import { describePorts } from '../support/ledger/ledger-adapters.ts';
import { ID, REPLY, useChannels } from '../support/ledger/use-channels.ts';

describePorts('a deposit into a channel', (adapter) => {
  const { ledger, payments, channels, seen, pay, deposit, charged, refuses } = useChannels(adapter);

  test('keeps its channel busy and holds its voucher, from the reservation to its end', async () => {
    await seen();
    expect([await channels.findOpen(ID), await channels.findSale(ID, 100n)]).toEqual([null, null]);
    expect(await deposit('d', 100n)).toBe(true);
    const row = await payments.get('d');
    expect(row).toMatchObject({ state: 'reserved', channel: { channelId: ID, max: 100n, after: null } });
    expect([await channels.findOpen(ID), await channels.findSale(ID, 100n)]).toEqual(['deposit', row]);
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
      charged: 100n,
      usedAt: SEEN_AT + 7,
      unclaimedSince: SEEN_AT + 7,
      readAt: SEEN_AT,
      signature: Buffer.from(voucherSignature('a', 100n)),
      state: { balance: 15_000n, block: 100 },
    });
    const after = { balance: 15_000n, totalClaimed: 0n, withdrawAmount: 5n, withdrawAt: 9, refundNonce: 2n };
    expect(await payments.get('d')).toMatchObject({
      state: 'settled',
      amount: 5_000n,
      charged: 100n,
      signature: null,
      calldata: null,
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
    await channels.begin(refundOf('r', 'a'), { charged: 0n });
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
    expect([await channels.findOpen(ID), (await payments.get('d2'))?.channel?.max]).toEqual(['deposit', 200n]);
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

  const settling = async (id: string, more: Parameters<typeof deposit>[2] = {}, max = 100n) => {
    await deposit(id, max, more);
    await payments.move(id, ['reserved'], 'settling', {});
  };
  const settled = (id: string, change: Parameters<typeof payments.move>[3]) =>
    payments.move(id, ['settling'], 'settled', change);
  const signatures = async () =>
    (await ledger.sql('SELECT id, voucher_signature AS signature FROM usdc_payments ORDER BY id')).map(
      ({ id, signature }) => [id, signature !== null],
    );

  test('keeps its voucher when it cannot settle, and while another one settles', async () => {
    await seen();
    await seen('b');
    await deposit('d', 100n);
    await payments.reserve(depositSale('other', 'b', 100n), 0, null);
    await refuses(() => payments.move('d', ['settling'], 'settled', { block: 101, endedAt: 1 }));
    await settleDeposit(ledger.stores, 'other', 101);
    expect(await signatures()).toEqual([
      ['d', true],
      ['other', false],
    ]);
  });

  test.each([
    ['before', 109, 15_000n],
    ['at', 110, 10_000n],
    ['after', 111, 10_000n],
  ] as const)('whose block was noted %s it settles raises the balance by the same rule', async (_, block, balance) => {
    await seen();
    await settling('d');
    await seen('a', { block });
    await payments.move('d', ['settling'], 'unknown', { block: 110, charged: 5_000n });
    expect(await payments.move('d', ['unknown'], 'settled', { endedAt: SEEN_AT })).toBe(true);
    expect((await channels.get(ID))?.state).toMatchObject({ balance, block });
    expect(await payments.get('d')).toMatchObject({ charged: 100n, channel: { after: { balance } } });
  });

  test('that settles late leaves the block of a later one', async () => {
    const blocks = async () =>
      (await ledger.sql('SELECT deposit_block FROM channels')).map((row) => Object.values(row));
    await seen();
    await settling('first');
    await settled('first', { endedAt: SEEN_AT });
    // Without a block: none is noted.
    expect((await blocks()).flat().map(Number)).toEqual([0]);
    await settling('second', {}, 200n);
    await settled('second', { block: 1, endedAt: SEEN_AT });
    await settling('third', {}, 300n);
    await settled('third', { endedAt: SEEN_AT });
    expect((await blocks()).flat().map(Number)).toEqual([1]);
    for (const [id, max, block] of [
      ['fourth', 400n, 120],
      ['fifth', 500n, 119],
    ] as const) {
      await settling(id, {}, max);
      await settled(id, { block, endedAt: SEEN_AT });
    }
    expect((await blocks()).flat().map(Number)).toEqual([120]);
  });

  test.each([100n, 800n])('whose voucher is within the %i that were claimed meanwhile charges nothing', async (sum) => {
    await seen();
    await deposit('d', 100n);
    await seen('a', { totalClaimed: sum });
    await settleDeposit(ledger.stores, 'd', 101);
    expect(await channels.get(ID)).toMatchObject({ charged: sum, signature: null, unclaimedSince: null });
  });

  test('counts as use when it ends, or when it was reserved, and never before an earlier use', async () => {
    const used = async () => (await channels.get(ID))?.usedAt;
    await seen('a', {}, 50);
    await settling('1', { reservedAt: 40 });
    await settled('1', { block: 101, endedAt: 60 });
    expect(await used()).toBe(60);
    await settling('2', { reservedAt: 55 }, 200n);
    await settled('2', { block: 102, endedAt: 59 });
    expect(await used()).toBe(60);
    await settling('3', { reservedAt: 59 }, 300n);
    await settled('3', { block: 103 });
    expect(await used()).toBe(60);
    await settling('4', { reservedAt: 70 }, 400n);
    await settled('4', { block: 104 });
    expect(await used()).toBe(70);
  });
});
