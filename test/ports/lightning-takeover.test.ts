import { expect, test } from 'vitest';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';
import { accountedOf, DAY, grantOf, keyOf, NOON, nodeOf, TODAY } from '../support/lightning/lightning-rows.ts';

describePorts('a claim that replaces another', (adapter) => {
  const ledger = useLedger(adapter);
  const store = ofNow(() => ledger.stores.lightning);

  // A routing node that carried the buyer's payment knows its preimage. It can create its own invoice over the same hash and have it claimed.
  const grantedNow = async (name: string) => (await store.findClaim(keyOf(name)))?.grant ?? null;

  test('a grant of ours replaces a facilitator’s claim for another node, once and finally', async () => {
    const keepUntil = NOON + 30 * DAY;
    expect(await store.claim(accountedOf('a', {}, { keepUntil }))).toBe('claimed');
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => store.claim(grantOf('a'))));
    expect(outcomes).toEqual(['claimed', ...Array.from({ length: 4 }, () => 'duplicate')]);
    const { keepUntil: _, account: __, grant: given, ...ours } = grantOf('a');
    const { route: ___, ...granted } = given!;
    const grant = { ...granted, state: 'claimed', deliveredAt: null, answered: false };
    expect(await store.findClaim(keyOf('a'))).toEqual({ ...ours, grant });
    expect(await store.claim(accountedOf('a'))).toBe('duplicate');
    expect(await store.facilitatorCounts(TODAY, nodeOf('ours'))).toEqual({ total: 1, today: 1, nodes: 1, own: 0 });
    // The longer of both times holds.
    await store.prune(keepUntil - 1);
    expect(await store.findClaim(keyOf('a'))).not.toBeNull();
    await store.prune(keepUntil);
    expect(await store.findClaim(keyOf('a'))).toBeNull();
  });

  test('never replaces a claim for the same node or a grant, and needs a grant itself', async () => {
    await store.claim(accountedOf('same', {}, { payTo: nodeOf('ours') }));
    expect(await store.claim(grantOf('same'))).toBe('duplicate');
    expect(await grantedNow('same')).toBeNull();
    await store.claim(grantOf('granted', { payTo: nodeOf('theirs') }));
    expect(await store.claim(grantOf('granted'))).toBe('duplicate');
    await store.claim(accountedOf('claimed'));
    expect(await store.claim(accountedOf('claimed', {}, { payTo: nodeOf('ours') }))).toBe('duplicate');
    expect((await store.findClaim(keyOf('claimed')))?.payTo).toEqual(nodeOf('theirs'));
  });
});
