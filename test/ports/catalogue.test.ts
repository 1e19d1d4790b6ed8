import { expect, test } from 'vitest';
import { describePorts, useLedger } from '../support/ledger/ledger-adapters.ts';

describePorts('the catalogue’s copy', (adapter) => {
  const ledger = useLedger(adapter);

  test('is null at first', async () => {
    const { catalogue } = ledger.stores;
    expect([await catalogue.load(), await catalogue.readAt()]).toEqual([null, null]);
  });

  test('is the newest one, also for another instance and after a restart', async () => {
    await ledger.stores.catalogue.save({ readAt: 1, entries: '["a"]' });
    await (await ledger.another()).catalogue.save({ readAt: 2, entries: '["b","é\\u0000"]' });
    const { catalogue } = await ledger.reopen();
    expect(await catalogue.load()).toEqual({ readAt: 2, entries: '["b","é\\u0000"]' });
    expect([await catalogue.readAt(), await ledger.sql('SELECT id FROM catalogue_copy')]).toEqual([
      2,
      [expect.anything()],
    ]);
  });

  test('of an unchanged text has the time of its last reading', async () => {
    const { catalogue } = ledger.stores;
    await catalogue.save({ readAt: 1, entries: '["a"]' });
    await catalogue.save({ readAt: 2, entries: '["a"]' });
    expect(await catalogue.load()).toEqual({ readAt: 2, entries: '["a"]' });
  });

  test('is an earlier text again when that is read again', async () => {
    const { catalogue } = ledger.stores;
    for (const [at, entries] of ['["a"]', '["b"]', '["a"]'].entries()) await catalogue.save({ readAt: at, entries });
    expect(await catalogue.load()).toEqual({ readAt: 2, entries: '["a"]' });
  });

  test('stays when a new one cannot be stored', async () => {
    const { catalogue } = ledger.stores;
    await catalogue.save({ readAt: 1, entries: '["a"]' });
    await expect(catalogue.save({ readAt: null as unknown as number, entries: '["b"]' })).rejects.toThrow(/NULL/i);
    expect(await catalogue.load()).toEqual({ readAt: 1, entries: '["a"]' });
  });
});
