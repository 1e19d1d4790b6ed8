import { expect, test } from 'vitest';
import { describePorts, useLedger } from '../support/ledger/ledger-adapters.ts';

const one = { wei: 3n, failedWei: 1n, gas: 100n, transactions: 1, payments: 2 };

describePorts('the relayer’s spending', (adapter) => {
  const ledger = useLedger(adapter);

  test('adds up by day, in more than 64 bits, and every process sees it', async () => {
    const { spending } = ledger.stores;
    const other = (await ledger.another()).spending;
    await spending.add('2026-11-21', { ...one, wei: 2n ** 70n, failedWei: 2n ** 69n });
    await other.add('2026-11-21', one);
    await spending.add('2026-11-22', one);
    expect(await other.spentOn('2026-11-21')).toEqual({
      wei: 2n ** 70n + 3n,
      failedWei: 2n ** 69n + 1n,
      gas: 200n,
      transactions: 2,
      payments: 4,
    });
    expect(await spending.spentOn('2026-11-22')).toEqual(one);
  });

  test('of two instances at once loses nothing', async () => {
    const both = [ledger.stores.spending, (await ledger.another()).spending];
    await Promise.all(Array.from({ length: 40 }, (_, at) => both[at % 2]!.add('2026-11-21', one)));
    expect(await both[0]!.spentOn('2026-11-21')).toEqual({
      wei: 120n,
      failedWei: 40n,
      gas: 4000n,
      transactions: 40,
      payments: 80,
    });
  });

  test('on a day without spending is zero, and an invalid day is refused', async () => {
    const { spending } = ledger.stores;
    expect(await spending.spentOn('2026-11-20')).toEqual({
      wei: 0n,
      failedWei: 0n,
      gas: 0n,
      transactions: 0,
      payments: 0,
    });
    await expect(spending.add('', one)).rejects.toThrow(/CHECK/i);
  });
});
