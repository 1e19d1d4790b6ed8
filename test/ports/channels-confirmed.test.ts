import { describe, expect, test } from 'vitest';
import { channelState, channelTerms, NETWORK, SEEN_AT, settleDeposit } from '../support/ledger/channel-rows.ts';
import { describePorts } from '../support/ledger/ledger-adapters.ts';
import { ID, useChannels } from '../support/ledger/use-channels.ts';

// Which states of channels count, and which channels take no voucher.

/** An hour ahead of the chain on Arc, and a number that no chain reaches. */
const AHEAD = [7300, 2 ** 52];
/** How an older release leaves a row. */
const OF_AN_OLDER_RELEASE = 'UPDATE channels SET confirmed_block = NULL';

describePorts('the states of payment channels', (adapter) => {
  const { ledger, channels, payments, seen, pay, deposit, refuses } = useChannels(adapter);
  const idsOf = (list: readonly { id: Uint8Array }[]) => list.map(({ id }) => Buffer.from(id).toString('hex'));

  describe('a state that an older release noted', () => {
    test.each(AHEAD)('is replaced by a confirmed one, also where it claims to be of block %i', async (block) => {
      await seen('a', { balance: 1_000_000n, block });
      await ledger.sql(OF_AN_OLDER_RELEASE);
      expect(await channels.get(ID)).toMatchObject({ isConfirmed: false });
      const healed = await seen('a', { balance: 1_000n, block: 101 });
      expect(healed).toMatchObject({ isConfirmed: true, state: channelState({ balance: 1_000n, block: 101 }) });
    });

    test('sells no voucher until it is confirmed', async () => {
      await seen();
      await ledger.sql(OF_AN_OLDER_RELEASE);
      await refuses(() => pay('s1', 100n));
      await seen();
      expect(await pay('s1', 100n)).toBe(true);
    });

    test('does not count although an older release noted another one after it was confirmed', async () => {
      await seen();
      await ledger.sql('UPDATE channels SET balance = 900000, state_block = 105');
      expect(await channels.get(ID)).toMatchObject({ isConfirmed: false });
      await refuses(() => pay('s1', 100n));
    });

    test('is listed while its channel has money or unclaimed charges, by its id', async () => {
      for (const name of ['a', 'b', 'c', 'd']) await seen(name, { balance: name === 'd' ? 0n : 10_000n });
      expect(await channels.listToRead(NETWORK, 100, 10)).toEqual([]);
      await ledger.sql(OF_AN_OLDER_RELEASE);
      await seen('c');
      const expected = idsOf(['a', 'b'].map((name) => channelTerms(name))).sort();
      const all = await channels.listToRead(NETWORK, 100, 10);
      expect(idsOf(all)).toEqual(expected);
      expect(idsOf(await channels.listToRead(NETWORK, 100, 1))).toEqual(expected.slice(0, 1));
      expect(idsOf(await channels.listToRead(NETWORK, 100, 10, all[0]?.id))).toEqual(expected.slice(1));
      expect(await channels.listToRead('eip155:1', 100, 10)).toEqual([]);
    });
  });

  test.each(AHEAD)('a confirmed state of block %i is replaced: a lone provider may have said it', async (block) => {
    await seen('a', { balance: 1_000_000n, block });
    expect((await seen('a', { balance: 1_000n, block: 101 })).state.balance).toBe(1_000n);
  });

  test('a state within two minutes of the confirmed one stays: a read may end late', async () => {
    await seen('a', { block: 340 });
    expect((await seen('a', { balance: 1n, block: 100 })).state).toMatchObject({ block: 340, balance: 10_000n });
    expect((await seen('a', { balance: 1n, block: 99 })).state).toMatchObject({ block: 99, balance: 1n });
  });

  test('a deposit is listed 20 blocks later, until its channel was read there', async () => {
    await seen();
    await deposit('d1', 100n);
    await settleDeposit({ ...ledger.stores, payments }, 'd1', 200);
    // Its buyer may have it read at any block before.
    await seen('a', { block: 219 });
    const listedAt = async (head: number) => idsOf(await channels.listToRead(NETWORK, head, 10));
    expect([await listedAt(219), await listedAt(220)]).toEqual([[], idsOf([channelTerms('a')])]);
    await seen('a', { block: 220 });
    expect(await listedAt(300)).toEqual([]);
  });

  test('a deposit at a block that is far ahead keeps no later state away', async () => {
    await seen();
    await deposit('d1', 100n);
    expect(await settleDeposit({ ...ledger.stores, payments }, 'd1', 2 ** 52)).toBe(true);
    expect((await seen('a', { balance: 1n, block: 101 })).state.balance).toBe(1n);
    expect((await seen('a', { balance: 2n, block: 102 })).state.balance).toBe(2n);
  });

  describe('a channel whose claim the contract refused', () => {
    test('takes no voucher until a state shows that nothing is left to claim', async () => {
      await seen();
      await pay('s1', 100n);
      expect(await channels.countRefused(NETWORK)).toBe(0);
      await channels.refuseClaim(ID, SEEN_AT + 7);
      await channels.refuseClaim(ID, SEEN_AT + 9);
      expect(await channels.get(ID)).toMatchObject({ claimRefusedAt: SEEN_AT + 7 });
      expect([await channels.countRefused(NETWORK), await channels.countRefused('eip155:1')]).toEqual([1, 0]);
      await refuses(() => pay('s2', 200n));
      expect(await seen('a', { totalClaimed: 99n, block: 101 })).toMatchObject({ claimRefusedAt: SEEN_AT + 7 });
      expect(await seen('a', { totalClaimed: 100n, block: 102 })).toMatchObject({ claimRefusedAt: null });
      expect(await pay('s2', 200n)).toBe(true);
    });

    test('takes vouchers again once the rest is written off', async () => {
      await seen();
      await pay('s1', 100n);
      await channels.refuseClaim(ID, SEEN_AT);
      expect(await channels.writeOff(ID, 99n, 100n)).toBe(true);
      expect(await channels.get(ID)).toMatchObject({ claimRefusedAt: SEEN_AT });
      expect(await channels.writeOff(ID, 1n, 100n)).toBe(true);
      expect(await channels.get(ID)).toMatchObject({ claimRefusedAt: null });
    });

    test('is none without unclaimed charges', async () => {
      await seen();
      await channels.refuseClaim(ID, SEEN_AT);
      expect(await channels.get(ID)).toMatchObject({ claimRefusedAt: null });
    });
  });
});
