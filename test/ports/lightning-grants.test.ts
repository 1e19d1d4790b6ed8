import { beforeEach, describe, expect, test } from 'vitest';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';
import { accountedOf, DAY, grantOf, HOUR, invoiceOf, keyOf, NOON } from '../support/lightning/lightning-rows.ts';

const MINUTE = 60_000;
const body = (text: string): Buffer => Buffer.from(text);

describePorts('granted claims', (adapter) => {
  const ledger = useLedger(adapter);
  const store = ofNow(() => ledger.stores.lightning);

  const grant = async (name: string) => (await store.findClaim(keyOf(name)))?.grant;

  describe('leases', () => {
    const take = (name: string, holder: string, now = NOON) => store.takeLease(keyOf(name), holder, now, now + MINUTE);

    test('are held by one presentation at a time, not twice by the same one, until it releases the lease or the lease ends', async () => {
      await store.claim(grantOf('a'));
      expect(await Promise.all(['p:1', 'p:2', 'p:1'].map((holder) => take('a', holder)))).toEqual([true, false, false]);
      await store.releaseLease(keyOf('a'), 'p:2');
      expect(await take('a', 'p:2')).toBe(false);
      await store.releaseLease(keyOf('a'), 'p:1');
      expect(await take('a', 'p:2')).toBe(true);
      expect(await take('a', 'p:3', NOON + MINUTE - 1)).toBe(false);
      expect(await take('a', 'p:3', NOON + MINUTE)).toBe(true);
    });

    test('exist only for a claim with a grant that is still redeemable', async () => {
      await Promise.all([store.claim(grantOf('a')), store.claim(accountedOf('b'))]);
      expect(await take('b', 'p:1')).toBe(false);
      expect(await take('unknown', 'p:1')).toBe(false);
      expect(await take('a', 'p:1', NOON + 7 * DAY)).toBe(false);
      expect(await take('a', 'p:1', NOON + 7 * DAY - 1)).toBe(true);
    });

    test('of dead processes are released, and those of this process are not', async () => {
      await Promise.all(['a', 'b', 'c', 'd'].map((name) => store.claim(grantOf(name))));
      await Promise.all([take('a', 'dead:1'), take('b', 'dead:2'), take('c', 'mine:1')]);
      expect(await store.releaseLeasesExcept('mine')).toBe(2);
      expect(await Promise.all(['a', 'b', 'c'].map((name) => take(name, 'mine:2')))).toEqual([true, true, false]);
    });

    test('of one dead process are released, and those of living ones are not', async () => {
      const names = ['a', 'b', 'c'];
      await Promise.all(names.map((name) => store.claim(grantOf(name))));
      await Promise.all([take('a', 'dead:1'), take('b', 'living:1'), take('c', 'dead:2')]);
      expect(await store.releaseLeasesOf('dead')).toBe(2);
      expect(await Promise.all(names.map((name) => take(name, 'living:2')))).toEqual([true, false, true]);
    });
  });

  describe('answers', () => {
    const lease = (holder: string, now = NOON) => store.takeLease(keyOf('a'), holder, now, now + MINUTE);
    beforeEach(async () => {
      await store.recordInvoice(invoiceOf('a'), body('kept'));
      await store.claim(grantOf('a'));
    });

    test('are stored once, by the holder of the lease, and replace the kept reply', async () => {
      await lease('p:1');
      expect(await store.storeAnswer(keyOf('a'), 'p:2', body('not mine'))).toBe(false);
      expect([await store.answer(keyOf('a')), (await grant('a'))?.answered]).toEqual([null, false]);
      expect(await store.keptReply(keyOf('a'))).toEqual(body('kept'));
      const both = ['fresh', 'again'].map((text) => store.storeAnswer(keyOf('a'), 'p:1', body(text)));
      expect(await Promise.all(both)).toEqual([true, false]);
      expect([await store.answer(keyOf('a')), (await grant('a'))?.answered]).toEqual([body('fresh'), true]);
      expect(await store.keptReply(keyOf('a'))).toBeNull();
    });

    test('are refused after the lease was lost, and for a claim without a lease', async () => {
      expect(await store.storeAnswer(keyOf('a'), 'p:1', body('x'))).toBe(false);
      await lease('p:1');
      await lease('p:2', NOON + MINUTE);
      expect(await store.storeAnswer(keyOf('a'), 'p:1', body('x'))).toBe(false);
      expect(await store.storeAnswer(keyOf('a'), 'p:2', body('y'))).toBe(true);
      expect(await store.answer(keyOf('a'))).toEqual(body('y'));
    });

    test('bytes of replies and answers are counted exactly', async () => {
      await store.recordInvoice(invoiceOf('b'), Buffer.alloc(50_000));
      expect([await store.bodyBytes(), await store.offeredBytes()]).toEqual([50_004, 50_004]);
      await lease('p:1');
      await store.storeAnswer(keyOf('a'), 'p:1', Buffer.alloc(30_000));
      expect([await store.bodyBytes(), await store.offeredBytes()]).toEqual([80_000, 50_000]);
      await store.prune(NOON + 8 * DAY);
      expect([await store.bodyBytes(), await store.offeredBytes()]).toEqual([0, 0]);
    });

    test('are marked delivered once, which ends the seven days and starts the time for fetching them again', async () => {
      const until = NOON + MINUTE + 900_000;
      expect(await store.delivered(keyOf('a'), NOON + MINUTE, until)).toBe(true);
      expect(await store.delivered(keyOf('a'), NOON + HOUR, until + HOUR)).toBe(false);
      expect(await grant('a')).toMatchObject({ state: 'delivered', deliveredAt: NOON + MINUTE, redeemUntil: until });
    });

    test('of a facilitator’s claim or of none are never delivered', async () => {
      await store.claim(accountedOf('b'));
      expect(await store.delivered(keyOf('b'), NOON, NOON + MINUTE)).toBe(false);
      expect(await store.delivered(keyOf('unknown'), NOON, NOON + MINUTE)).toBe(false);
      expect(await grant('b')).toBeNull();
    });
  });
});
