import { expect, test } from 'vitest';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';

const HOUR = 3_600_000;
const counts = (given: Record<string, number>) => new Map(Object.entries(given));

describePorts('refused calls', (adapter) => {
  const ledger = useLedger(adapter);
  const store = ofNow(() => ledger.stores.refusals);

  test('are summed by code from an hour on, the highest count first, and those of recent hours apart', async () => {
    await store.add(HOUR, counts({ expired: 9 }), 0);
    await store.add(2 * HOUR, counts({ expired: 1, invalid_payload: 2, internal: 2 }), 0);
    await store.add(3 * HOUR, counts({ expired: 4 }), 0);
    expect(await store.since(2 * HOUR, 3 * HOUR)).toEqual([
      { code: 'expired', count: 5, recentCount: 4 },
      { code: 'internal', count: 2, recentCount: 0 },
      { code: 'invalid_payload', count: 2, recentCount: 0 },
    ]);
    expect(await store.since(2 * HOUR + 1, 4 * HOUR)).toEqual([{ code: 'expired', count: 4, recentCount: 0 }]);
    expect(await store.since(4 * HOUR, 4 * HOUR)).toEqual([]);
  });

  test('of several instances are added up, however many write one hour at once', async () => {
    const other = (await ledger.another()).refusals;
    await Promise.all(
      Array.from({ length: 20 }, (_, at) => (at % 2 ? store : other).add(HOUR, counts({ expired: 3, internal: 1 }), 0)),
    );
    expect(await store.since(0, 0)).toEqual([
      { code: 'expired', count: 60, recentCount: 60 },
      { code: 'internal', count: 20, recentCount: 20 },
    ]);
  });

  test('of hours before the given time are deleted with each write, and no others', async () => {
    for (const hour of [1, 2, 3]) await store.add(hour * HOUR, counts({ expired: hour }), 0);
    await store.add(4 * HOUR, counts({}), 2 * HOUR);
    expect(await ledger.sql('SELECT count FROM refused_calls ORDER BY hour')).toHaveLength(2);
    expect(await store.since(0, 0)).toEqual([{ code: 'expired', count: 5, recentCount: 5 }]);
  });

  test('are there after a restart', async () => {
    await store.add(HOUR, counts({ expired: 2 }), 0);
    expect(await (await ledger.reopen()).refusals.since(0, 0)).toEqual([{ code: 'expired', count: 2, recentCount: 2 }]);
  });

  test('of which one count is none are refused whole, and nothing is deleted for it', async () => {
    await store.add(HOUR, counts({ expired: 2 }), 0);
    await expect(store.add(2 * HOUR, counts({ expired: 1, internal: 0 }), 2 * HOUR)).rejects.toThrow(
      /CHECK constraint/i,
    );
    expect(await store.since(0, 0)).toEqual([{ code: 'expired', count: 2, recentCount: 2 }]);
  });
});
