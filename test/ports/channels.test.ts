import { describe, expect, test } from 'vitest';
import {
  channelState,
  channelTerms,
  NETWORK,
  operation,
  SEEN_AT,
  settleDeposit,
  voucherSale,
} from '../support/ledger/channel-rows.ts';
import { describePorts } from '../support/ledger/ledger-adapters.ts';
import { hash32 } from '../support/ledger/ledger-rows.ts';
import { ID, TERMS, useChannels } from '../support/ledger/use-channels.ts';

describePorts('payment channels', (adapter) => {
  const { ledger, channels, charge, seen, pay, deposit, refuses } = useChannels(adapter);

  describe('a state of the chain', () => {
    test('inserts the channel, and is read as it was noted, above 2^53 too', async () => {
      const state = channelState({
        balance: 2n ** 63n - 1n,
        totalClaimed: 2n ** 60n + 1n,
        withdrawAmount: 2n ** 61n + 3n,
        withdrawAt: 1_900_000_000,
        refundNonce: 7n,
      });
      const noted = await channels.note(channelTerms('a'), state, SEEN_AT);
      // What was claimed had been charged, by a ledger that is lost.
      const sums = { charged: state.totalClaimed, writtenOff: 0n, signature: null };
      const times = { readAt: SEEN_AT, usedAt: SEEN_AT, unclaimedSince: null };
      expect(noted).toEqual({
        id: ID,
        ...TERMS,
        ...sums,
        state,
        isConfirmed: true,
        claimRefusedAt: null,
        ...times,
      });
      expect(await channels.get(ID)).toEqual(noted);
      expect(await channels.get(hash32('no channel'))).toBeNull();
    });

    test('of a newer block replaces the noted one and leaves charges and use as they were', async () => {
      await seen();
      await pay('s1', 100n, { reservedAt: SEEN_AT + 1 });
      const newer = { balance: 12_000n, withdrawAmount: 500n, withdrawAt: 99, refundNonce: 1n, block: 101 };
      expect(await seen('a', newer, SEEN_AT + 2)).toMatchObject({
        charged: 100n,
        usedAt: SEEN_AT + 1,
        unclaimedSince: SEEN_AT + 1,
        readAt: SEEN_AT + 2,
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
  });

  describe('the sums', () => {
    test('are those of all channels of a network, and zero without one', async () => {
      expect(await channels.totals(NETWORK)).toEqual({ charged: 0n, claimed: 0n, writtenOff: 0n });
      expect(await channels.hasAny(NETWORK)).toBe(false);
      await seen('a', { totalClaimed: 2n ** 60n, balance: 2n ** 62n });
      await seen('b');
      await charge(voucherSale('s', 'b', 100n));
      await channels.writeOff(channelTerms('b').id, 30n, 100n);
      await channels.note({ ...channelTerms('x'), network: 'eip155:1' }, channelState({ totalClaimed: 7n }), SEEN_AT);
      expect([await channels.hasAny(NETWORK), await channels.hasAny('eip155:7')]).toEqual([true, false]);
      expect(await channels.totals(NETWORK)).toEqual({
        charged: 2n ** 60n + 100n,
        claimed: 2n ** 60n,
        writtenOff: 30n,
      });
    });

    test('of overdue charges are those of channels that have waited since before a time', async () => {
      for (const [name, reservedAt] of [
        ['a', 10],
        ['b', 20],
        ['c', 30],
      ] as const) {
        await seen(name);
        await charge(voucherSale(`s ${name}`, name, 100n, { reservedAt }));
      }
      await channels.writeOff(channelTerms('a').id, 30n, 100n);
      expect(await channels.totalsOverdue(NETWORK, 10)).toBe(0n);
      expect(await channels.totalsOverdue(NETWORK, 30)).toBe(170n);
      expect(await channels.totalsOverdue('eip155:1', 99)).toBe(0n);
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
