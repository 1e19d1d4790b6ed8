import { expect, test } from 'vitest';
import {
  channelState,
  channelTerms,
  depositSale,
  NETWORK,
  operation,
  refundOf,
  SEEN_AT,
  voucherSale,
  voucherSignature,
} from '../support/ledger/channel-rows.ts';
import { describePorts } from '../support/ledger/ledger-adapters.ts';
import { hash32 } from '../support/ledger/ledger-rows.ts';
import { ID, useChannels } from '../support/ledger/use-channels.ts';

// Each statement touches the channels and operations that it names, and counts them to the edge.

const { id: OTHER } = channelTerms('b');
const ELSEWHERE = 'eip155:1';

describePorts('the rows of channels', (adapter) => {
  const { ledger, payments, channels, charge, seen, pay, deposit } = useChannels(adapter);
  const hex = (of: readonly { id: Uint8Array }[]) => of.map(({ id }) => Buffer.from(id).toString('hex'));
  const idsOf = (...names: string[]) => hex(names.map((name) => channelTerms(name)).sort(byId));
  const byId = (one: { id: Uint8Array }, other: { id: Uint8Array }) => Buffer.compare(one.id, other.id);
  const depositBlock = async () => Number((await ledger.sql('SELECT deposit_block FROM channels'))[0]?.deposit_block);
  const done = (endedAt: number, transaction = hash32('t')) =>
    ({ state: 'done', amount: 1n, transaction, endedAt }) as const;

  test('with unclaimed charges are as many as are asked for', async () => {
    for (const name of ['a', 'b', 'c']) {
      await seen(name);
      await charge(voucherSale(name, name, 100n));
    }
    expect(await channels.listUnclaimed(NETWORK, 2)).toHaveLength(2);
    await seen('d');
    await charge(voucherSale('d', 'd', 100n, { reservedAt: 0 }));
    expect(hex(await channels.listUnclaimed(NETWORK, 1))).toEqual(idsOf('d'));
  });

  test('of which something was claimed are those of their network, by their ids, as many as are asked for', async () => {
    for (const name of ['a', 'b', 'c']) await seen(name, { totalClaimed: 1n });
    await seen('d');
    await channels.note({ ...channelTerms('x'), network: ELSEWHERE }, channelState({ totalClaimed: 7n }), SEEN_AT);
    const [first = '', ...rest] = idsOf('a', 'b', 'c');
    expect(hex(await channels.listClaimed(NETWORK, 10))).toEqual([first, ...rest]);
    expect(hex(await channels.listClaimed(NETWORK, 1))).toEqual([first]);
    expect(hex(await channels.listClaimed(NETWORK, 10, Buffer.from(first, 'hex')))).toEqual(rest);
  });

  test('are read while they have any money, or unclaimed charges without any', async () => {
    await seen('a', { balance: 1n });
    await seen('b');
    await charge(voucherSale('s', 'b', 100n));
    await seen('b', { balance: 0n, block: 101 });
    await seen('c', { balance: 0n });
    await ledger.sql('UPDATE channels SET confirmed_block = NULL');
    expect(hex(await channels.listToRead(NETWORK, 200, 10))).toEqual(idsOf('a', 'b'));
  });

  test('are overdue with what is neither claimed nor written off', async () => {
    await seen();
    await pay('s1', 100n);
    await pay('s2', 200n);
    await seen('a', { totalClaimed: 60n, block: 101 });
    await channels.writeOff(ID, 30n, 200n);
    expect(await channels.totalsOverdue(NETWORK, SEEN_AT + 1)).toBe(110n);
  });

  test.each([0n, 99n, 100n])('keep the signature of their last voucher while %i of it are claimed', async (claimed) => {
    await seen();
    await pay('s1', 100n);
    const noted = await seen('a', { totalClaimed: claimed, block: 101 });
    expect(noted).toMatchObject({ charged: 100n, signature: Buffer.from(voucherSignature('a', 100n)) });
  });

  test.each([
    [340, 340],
    [341, 0],
  ])('with a deposit at block %i have it at block %i when they are confirmed at block 100', async (block, kept) => {
    await seen();
    await ledger.sql(`UPDATE channels SET deposit_block = ${block}, confirmed_block = NULL`);
    await seen('a', { balance: 7n });
    expect([await depositBlock(), (await channels.get(ID))?.state.balance]).toEqual([kept, 7n]);
  });

  test('without a sale over what is unclaimed wait since that was first seen', async () => {
    await seen('a', { totalClaimed: 800n });
    expect(await seen('a', { totalClaimed: 100n, block: 101 }, SEEN_AT + 9)).toMatchObject({
      unclaimedSince: SEEN_AT + 9,
    });
    expect(await seen('a', { totalClaimed: 100n, block: 102 }, SEEN_AT + 20)).toMatchObject({
      unclaimedSince: SEEN_AT + 9,
    });
  });

  test('wait since their oldest sale that is over, whatever is open', async () => {
    await seen();
    await pay('s1', 100n, { reservedAt: SEEN_AT + 1 });
    await pay('s2', 200n, { reservedAt: SEEN_AT + 2 });
    expect(await deposit('d', 150n)).toBe(true);
    expect(await seen('a', { totalClaimed: 120n, block: 101 })).toMatchObject({ unclaimedSince: SEEN_AT + 2 });
  });

  test('are pruned one by one, whatever others have sold, failed to sell or give back', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await seen(name, {}, 1);
    await charge(voucherSale('s', 'b', 100n));
    await payments.reserve(depositSale('f', 'c', 100n), 0, null);
    await payments.move('f', ['reserved'], 'failed', { reason: 'reverted', endedAt: 1 });
    await channels.begin(refundOf('r', 'd'), { charged: 0n });
    expect(await channels.prune(1000, 10)).toBe(1);
    expect(await channels.get(ID)).toBeNull();
  });

  test('have sales of their own', async () => {
    for (const name of ['a', 'b']) await seen(name);
    await pay('s', 100n);
    expect([(await channels.findSale(ID, 100n))?.id, await channels.findSale(OTHER, 100n)]).toEqual(['s', null]);
  });

  test('keep the time of their last use when a voucher is of before', async () => {
    await seen('a', {}, 50);
    await pay('s1', 100n, { reservedAt: 49 });
    expect(await channels.get(ID)).toMatchObject({ charged: 100n, usedAt: 50 });
    await pay('s2', 200n, { reservedAt: 51 });
    expect(await channels.get(ID)).toMatchObject({ charged: 200n, usedAt: 51 });
  });

  test('take a write-off of nothing, which changes nothing', async () => {
    await seen();
    await pay('s1', 100n);
    const before = await channels.get(ID);
    expect(await channels.writeOff(ID, 0n, 100n)).toBe(true);
    expect(await channels.get(ID)).toEqual(before);
  });

  test('are refused one by one', async () => {
    for (const name of ['a', 'b']) {
      await seen(name);
      await charge(voucherSale(name, name, 100n));
    }
    await channels.refuseClaim(ID, 5);
    expect([(await channels.get(ID))?.claimRefusedAt, (await channels.get(OTHER))?.claimRefusedAt]).toEqual([5, null]);
  });

  test('have their claims listed by network, and by when they were done, without other operations', async () => {
    for (const [id, endedAt, more] of [
      ['early', 9, {}],
      ['z', 10, {}],
      ['y', 11, {}],
      ['x', 11, {}],
      ['late', 20, {}],
      ['elsewhere', 12, { network: ELSEWHERE }],
    ] as const) {
      await channels.begin(operation(id, more));
      await channels.end(id, done(endedAt, hash32(id)));
    }
    await seen();
    expect(await channels.begin(refundOf('refund', 'a'), { charged: 0n })).toBe(true);
    await channels.end('refund', done(12));
    expect((await channels.listDoneClaims(NETWORK, 10, 20)).map(({ id }) => id)).toEqual(['z', 'x', 'y']);
  });

  test('have the later of two refunds of one moment as the last', async () => {
    await seen();
    for (const id of ['r1', 'r3', 'r2']) {
      await channels.begin(refundOf(id, 'a'), { charged: 0n });
      await channels.end(id, done(10));
    }
    expect((await channels.lastRefund(ID))?.id).toBe('r3');
  });

  test('have operations that are found by their own transaction, the oldest first', async () => {
    const shared = hash32('shared');
    for (const [id, createdAt, transaction] of [
      ['other', 1, hash32('other')],
      ['c', 3, shared],
      ['b', 2, shared],
      ['a', 2, shared],
    ] as const) {
      await channels.begin(operation(id, { createdAt }));
      await channels.end(id, done(10, transaction));
    }
    expect([(await channels.findDone(shared))?.id, await channels.findDone(hash32('none'))]).toEqual(['a', null]);
  });
});
