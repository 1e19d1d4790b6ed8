import { expect, test } from 'vitest';
import { chargedSale } from '../../src/payment/channels/voucher-sale.ts';
import { operation, refundOf, SEEN_AT, voucherSale } from '../support/ledger/channel-rows.ts';
import { describePorts } from '../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';
import { ID, KEEP_UNTIL, REPLY, useChannels } from '../support/ledger/use-channels.ts';

describePorts('a voucher of a channel', (adapter) => {
  const { ledger, payments, channels, charge, seen, pay, deposit, charged, refuses } = useChannels(adapter);

  test('is charged with its sale, settled from the start, and its reply', async () => {
    await seen('a', { totalClaimed: 0n, withdrawAmount: 5n, withdrawAt: 9, refundNonce: 3n });
    const sale = voucherSale('s1', 'a', 100n, { identifierHash: hash32('identifier'), reservedAt: SEEN_AT + 3 });
    const shown = await channels.charge(sale, REPLY, KEEP_UNTIL);
    const { route: _, channel, ...kept } = sale;
    const bytes = { nonce: Buffer.from(sale.nonce), authorizationHash: Buffer.from(sale.authorizationHash) };
    const after = { balance: 10_000n, totalClaimed: 0n, withdrawAmount: 5n, withdrawAt: 9, refundNonce: 3n };
    const row = {
      ...kept,
      ...bytes,
      identifierHash: Buffer.from(hash32('identifier')),
      state: 'settled',
      charged: 100n,
      endedAt: SEEN_AT + 3,
      deliveries: 0,
      deliveredAt: null,
      signature: null,
      calldata: null,
      payerHasCode: null,
      checkedBlock: null,
      transaction: null,
      block: null,
      reason: null,
      channel: { channelId: ID, max: 100n, after },
    };
    expect(await payments.get('s1')).toEqual(row);
    // The service hands the answer out without a read of the row.
    expect(shown).toEqual(after);
    expect({ ...chargedSale(sale, after), ...bytes, identifierHash: row.identifierHash }).toEqual(row);
    expect(await channels.findSale(ID, 100n)).toEqual(row);
    expect(await channels.get(ID)).toMatchObject({
      charged: 100n,
      usedAt: SEEN_AT + 3,
      unclaimedSince: SEEN_AT + 3,
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
    expect(await channels.begin(refundOf('r', 'a'), { charged: 0n })).toBe(true);
    await refuses(() => pay('s1', 100n));
    await channels.end('r', { state: 'failed', reason: 'reverted', endedAt: 1 });
    expect(await pay('s1', 100n)).toBe(true);
  });

  test('is charged while claims are open', async () => {
    await seen();
    await channels.begin(operation('claim'));
    await channels.begin(operation('another claim'));
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
    const ends = (await Promise.allSettled(writes)).map((end) => (end.status === 'fulfilled' ? end.value : 'rejected'));
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
