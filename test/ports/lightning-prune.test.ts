import { expect, test } from 'vitest';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';
import { accountedOf, DAY, grantOf, HOUR, invoiceOf, keyOf, NOON } from '../support/lightning/lightning-rows.ts';

const MINUTE = 60_000;
const { forgetAt } = invoiceOf('a');
const { keepUntil } = grantOf('a');
const REDEEM_UNTIL = NOON + 7 * DAY;

describePorts('forgetting', (adapter) => {
  const ledger = useLedger(adapter);
  const store = ofNow(() => ledger.stores.lightning);

  /** The rows that are left of a proof: record, kept reply, claim, answer. */
  async function left(name: string): Promise<string> {
    const key = keyOf(name);
    const parts = { invoice: store.findInvoice, reply: store.keptReply, claim: store.findClaim, answer: store.answer };
    const found = await Promise.all(Object.entries(parts).map(async ([part, read]) => ((await read(key)) ? part : '')));
    return found.filter(Boolean).join(' ');
  }
  async function leftAt(now: number, name: string): Promise<string> {
    await store.prune(now);
    return left(name);
  }
  const record = (name: string, more = {}) => store.recordInvoice(invoiceOf(name, more), Buffer.from('kept'));

  test('an unpaid invoice is deleted with its reply at forgetAt, not before', async () => {
    await record('a');
    expect(await leftAt(forgetAt - 1, 'a')).toBe('invoice reply');
    expect(await leftAt(forgetAt, 'a')).toBe('');
  });

  test('a facilitator’s claim is deleted at keepUntil, not before', async () => {
    await store.claim(accountedOf('a'));
    expect(await leftAt(keepUntil - 1, 'a')).toBe('claim');
    expect(await leftAt(keepUntil, 'a')).toBe('');
  });

  test('the reply of a granted claim without an answer is kept while the claim is redeemable', async () => {
    await record('a');
    await store.claim(grantOf('a'));
    expect(await leftAt(forgetAt + DAY, 'a')).toBe('invoice reply claim');
    expect(await leftAt(REDEEM_UNTIL - 1, 'a')).toBe('invoice reply claim');
    expect(await leftAt(REDEEM_UNTIL, 'a')).toBe('');
  });

  test('a facilitator’s claim keeps no reply, because it grants nothing', async () => {
    await record('a');
    await store.claim(accountedOf('a'));
    expect(await leftAt(forgetAt, 'a')).toBe('claim');
  });

  test('an answered claim and its answer are kept while it is redeemable, and its invoice is deleted like any other', async () => {
    await record('a');
    await store.claim(grantOf('a'));
    await store.takeLease(keyOf('a'), 'p:1', NOON, NOON + MINUTE);
    await store.storeAnswer(keyOf('a'), 'p:1', Buffer.from('answer'));
    expect(await leftAt(forgetAt - 1, 'a')).toBe('invoice claim answer');
    expect(await leftAt(REDEEM_UNTIL - 1, 'a')).toBe('claim answer');
    expect(await leftAt(REDEEM_UNTIL, 'a')).toBe('');
  });

  test('a delivered answer is deleted when it expires, its claim when the scheme allows, and neither comes back', async () => {
    await store.claim(grantOf('a'));
    await store.takeLease(keyOf('a'), 'p:1', NOON, NOON + MINUTE);
    await store.storeAnswer(keyOf('a'), 'p:1', Buffer.from('answer'));
    const until = NOON + 15 * MINUTE;
    await store.delivered(keyOf('a'), NOON, until);
    expect(await leftAt(until - 1, 'a')).toBe('claim answer');
    expect(await leftAt(until, 'a')).toBe('claim');
    expect(await store.storeAnswer(keyOf('a'), 'p:1', Buffer.from('another'))).toBe(false);
    expect(await store.claim(grantOf('a'))).toBe('duplicate');
    expect(await leftAt(keepUntil - 1, 'a')).toBe('claim');
    expect(await leftAt(keepUntil, 'a')).toBe('');
  });

  test('a claim that is being served at its last moment stays until the lease ends', async () => {
    await record('a');
    await store.claim(grantOf('a'));
    await store.takeLease(keyOf('a'), 'p:1', REDEEM_UNTIL - 1, REDEEM_UNTIL + MINUTE);
    expect(await leftAt(REDEEM_UNTIL + MINUTE - 1, 'a')).toBe('invoice reply claim');
    await store.storeAnswer(keyOf('a'), 'p:1', Buffer.from('answer'));
    expect(await leftAt(REDEEM_UNTIL + MINUTE - 1, 'a')).toBe('claim answer');
    expect(await leftAt(REDEEM_UNTIL + MINUTE, 'a')).toBe('');
  });

  test('the reply of a claim is deleted at the moment its lease ends', async () => {
    await record('a');
    await store.claim(grantOf('a'));
    await store.takeLease(keyOf('a'), 'p:1', REDEEM_UNTIL - 1, REDEEM_UNTIL + MINUTE);
    expect(await leftAt(REDEEM_UNTIL + MINUTE - 1, 'a')).toBe('invoice reply claim');
    expect(await leftAt(REDEEM_UNTIL + MINUTE, 'a')).toBe('');
  });

  test('a delivery that is recorded after its answer was deleted reopens nothing', async () => {
    await store.claim(grantOf('a', { keepUntil: REDEEM_UNTIL + DAY }));
    await store.takeLease(keyOf('a'), 'p:1', NOON, NOON + MINUTE);
    await store.storeAnswer(keyOf('a'), 'p:1', Buffer.from('answer'));
    expect(await leftAt(REDEEM_UNTIL, 'a')).toBe('claim');
    expect(await store.delivered(keyOf('a'), REDEEM_UNTIL, REDEEM_UNTIL + HOUR)).toBe(false);
    expect(await store.takeLease(keyOf('a'), 'p:2', REDEEM_UNTIL, REDEEM_UNTIL + 1)).toBe(false);
  });

  test('a claim is kept as long as the record of its invoice', async () => {
    const late = keepUntil + DAY;
    await Promise.all([record('a', { forgetAt: late }), record('b', { forgetAt: late })]);
    await store.claim(accountedOf('a'));
    await store.claim(
      grantOf('b', {
        grant: { requestHash: Buffer.alloc(32), redeemUntil: NOON + HOUR, route: '/v1/lightning/a', protocol: 'x402' },
      }),
    );
    for (const name of ['a', 'b']) {
      expect(await leftAt(late - 1, name)).toBe('invoice reply claim');
      expect(await store.claim(accountedOf(name))).toBe('duplicate');
    }
    await store.prune(late);
    expect([await left('a'), await left('b')]).toEqual(['', '']);
  });

  test('the oldest go first, a hundred a write, so that a write which came meanwhile waits for few', async () => {
    const names = Array.from({ length: 600 }, (_, at) => `n${at}`);
    await Promise.all(names.map((name, at) => record(name, { forgetAt: forgetAt - at })));
    const pruning = store.prune(forgetAt);
    await record('new', { forgetAt: forgetAt + DAY });
    const rows = await ledger.sql('SELECT forget_at FROM lightning_invoices ORDER BY forget_at');
    await pruning;
    // The new one's and those that are not deleted yet: the younger ones, whole hundreds of them.
    const times = rows.map((row) => Number(Object.values(row)[0]));
    expect(times.length).toBeGreaterThan(1);
    expect((times.length - 1) % 100).toBe(0);
    expect(times.slice(0, -1)).toEqual(
      Array.from({ length: times.length - 1 }, (_, at) => forgetAt - times.length + 2 + at),
    );
    expect(await ledger.sql('SELECT network FROM lightning_invoices')).toHaveLength(1);
  });

  test('one call deletes more than one chunk of everything, and other writes go on meanwhile', async () => {
    const names = Array.from({ length: 250 }, (_, at) => `n${at}`);
    await Promise.all(names.flatMap((name) => [record(name), store.claim(grantOf(name))]));
    await Promise.all(
      names
        .slice(0, 230)
        .flatMap((name) => [
          store.takeLease(keyOf(name), 'p:1', NOON, NOON + MINUTE),
          store.storeAnswer(keyOf(name), 'p:1', Buffer.from('answer')),
        ]),
    );
    let pruned = false;
    const pruning = store.prune(REDEEM_UNTIL).then(() => {
      pruned = true;
    });
    expect(await store.claim(grantOf('new', { keepUntil: REDEEM_UNTIL + DAY }))).toBe('claimed');
    expect(pruned).toBe(false);
    await pruning;
    expect(new Set(await Promise.all(names.map(left)))).toEqual(new Set(['']));
    expect([await left('new'), await store.bodyBytes()]).toEqual(['claim', 0]);
  });
});
