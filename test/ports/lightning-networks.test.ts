import { expect, test } from 'vitest';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';
import { DAY, grantOf, invoiceOf, keyOf, NOON } from '../support/lightning/lightning-rows.ts';

// A payment hash may occur on two networks. What happens to the one leaves the other as it was.

const HERE = keyOf('a');
const THERE = { ...HERE, network: 'lnbtc:000000000933ea01ad0ee984209779ba' };
const UNTIL = NOON + 60_000;
const body = (text: string): Buffer => Buffer.from(text);

describePorts('the same payment hash on another network', (adapter) => {
  const ledger = useLedger(adapter);
  const store = ofNow(() => ledger.stores.lightning);

  const take = (key: typeof HERE, holder = 'p:1') => store.takeLease(key, holder, NOON, UNTIL);
  const grants = async (more: { redeemUntil?: number } = {}) => {
    const { grant } = grantOf('a');
    await store.claim(grantOf('a', { grant: grant && { ...grant, ...more } }));
    await store.claim(grantOf('a', THERE));
  };

  test('is leased and given back for itself', async () => {
    await grants();
    expect([await take(HERE), await take(THERE)]).toEqual([true, true]);
    await store.releaseLease(HERE, 'p:1');
    expect([await take(THERE, 'p:2'), await take(HERE, 'p:2')]).toEqual([false, true]);
  });

  test('keeps its reply, its answer and its state while the other is answered and delivered', async () => {
    for (const key of [HERE, THERE]) await store.recordInvoice(invoiceOf('a', key), body(`reply ${key.network}`));
    await grants();
    for (const key of [HERE, THERE]) await take(key);
    expect(await store.storeAnswer(HERE, 'p:1', body('answer here'))).toBe(true);
    expect([await store.keptReply(HERE), await store.answer(THERE)]).toEqual([null, null]);
    expect(await store.keptReply(THERE)).toEqual(body(`reply ${THERE.network}`));
    expect(await store.storeAnswer(THERE, 'p:1', body('answer there'))).toBe(true);
    expect(await store.answer(HERE)).toEqual(body('answer here'));
    expect(await store.answer(THERE)).toEqual(body('answer there'));
    expect(await store.delivered(HERE, NOON + 1, NOON + DAY)).toBe(true);
    const states = await Promise.all([HERE, THERE].map(async (key) => (await store.findClaim(key))?.grant?.state));
    expect(states).toEqual(['delivered', 'claimed']);
  });

  test('keeps its answer and its claim when those of the other are over', async () => {
    await grants({ redeemUntil: UNTIL });
    for (const key of [HERE, THERE]) {
      await take(key);
      await store.storeAnswer(key, 'p:1', body(key.network));
    }
    await store.prune(UNTIL);
    expect([await store.answer(HERE), await store.answer(THERE)]).toEqual([null, body(THERE.network)]);
  });

  test('keeps no invoice of the other, nor a claim by its invoice', async () => {
    await store.recordInvoice(invoiceOf('a'), body('reply'));
    await store.claim(grantOf('a', THERE));
    // The grant there may need its own reply alone.
    await store.prune(invoiceOf('a').forgetAt);
    expect(await store.findInvoice(HERE)).toBeNull();
    await store.recordInvoice(invoiceOf('a', { forgetAt: NOON + 30 * DAY }), body('reply'));
    await store.prune(NOON + 20 * DAY);
    expect([await store.findClaim(THERE), (await store.findInvoice(HERE))?.forgetAt]).toEqual([null, NOON + 30 * DAY]);
  });
});
