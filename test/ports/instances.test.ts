import { beforeEach, expect, test } from 'vitest';
import type { LedgerStores } from '../../src/store/ports/stores.ts';
import { describePorts, useLedger } from '../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';
import { accountedOf, grantOf, hashOf, keyOf, NOON, nodeOf, TODAY } from '../support/lightning/lightning-rows.ts';

const CALLS = 128;
const ROUNDS = 5;
const range = (count: number): number[] => Array.from({ length: count }, (_, at) => at);

describePorts('two instances over one ledger', (adapter) => {
  const ledger = useLedger(adapter);
  let both: readonly LedgerStores[];
  beforeEach(async () => {
    both = [ledger.stores, await ledger.another()];
  });

  /** The same call many times at once, alternately from both instances. Some come a little later, so that they interleave in many ways. */
  const race = <T>(call: (stores: LedgerStores, at: number) => Promise<T>, count = CALLS): Promise<T[]> =>
    Promise.all(
      range(count).map(async (at) => {
        for (let turn = 0; turn < at % 5; turn++) await new Promise(setImmediate);
        return call(both[at % 2]!, at);
      }),
    );
  const wins = (results: readonly unknown[], win: unknown = true): number =>
    results.filter((one) => one === win).length;

  test(`${CALLS} reservations of one authorization have one winner, ${ROUNDS} times`, async () => {
    for (const round of range(ROUNDS)) {
      const tried = await race(({ payments }, at) =>
        payments.reserve(reservation(`p${round}-${at}`, `n${round}`), 0, null),
      );
      expect(wins(tried)).toBe(1);
      const rows = await Promise.all(both.map(({ payments }) => payments.find(reservation('any', `n${round}`))));
      expect(rows.map((row) => row?.id)).toEqual(both.map(() => `p${round}-${tried.indexOf(true)}`));
    }
  });

  test(`${CALLS} claims of one proof have one winner, ${ROUNDS} times, and are counted once`, async () => {
    for (const round of range(ROUNDS)) {
      const outcomes = await race(({ lightning }) => lightning.claim(accountedOf(`proof ${round}`)));
      expect([wins(outcomes, 'claimed'), wins(outcomes, 'duplicate')]).toEqual([1, CALLS - 1]);
    }
    const counts = await ledger.stores.lightning.facilitatorCounts(TODAY, nodeOf('theirs'));
    expect(counts).toEqual({ total: ROUNDS, today: ROUNDS, nodes: 1, own: ROUNDS });
  });

  test('claims of many proofs, each made by both instances, succeed once each and are counted exactly', async () => {
    const outcomes = await race(({ lightning }, at) => lightning.claim(accountedOf(`proof ${at >> 1}`)));
    expect(wins(outcomes, 'claimed')).toBe(CALLS / 2);
    expect((await both[1]!.lightning.facilitatorCounts(TODAY, null)).total).toBe(CALLS / 2);
    expect(await both[0]!.lightning.clientCount(TODAY, hashOf('client'))).toBe(CALLS / 2);
  });

  test('a payer’s cap is never exceeded', async () => {
    const tried = await race(({ payments }, at) => payments.reserve(reservation(`p${at}`, `n${at}`), 5, null), 60);
    expect(wins(tried)).toBe(5);
    expect((await ledger.stores.payments.countByState()).reserved).toBe(5);
  });

  test('the facilitator’s caps are never exceeded: the day’s, and the client’s', async () => {
    const limited = (client: string, name: string) =>
      accountedOf(name, { clientHash: hashOf(client), dailyCap: 20, clientCap: 7 });
    const outcomes = await race(({ lightning }, at) => lightning.claim(limited(`client ${at % 8}`, `proof ${at}`)), 96);
    expect([wins(outcomes, 'claimed'), wins(outcomes, 'duplicate')]).toEqual([20, 0]);
    const counts = await Promise.all(
      range(8).map((at) => ledger.stores.lightning.clientCount(TODAY, hashOf(`client ${at}`))),
    );
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(20);
    const one = await race(({ lightning }, at) =>
      lightning.claim(accountedOf(`tomorrow ${at}`, { day: '2026-03-04', clientCap: 7 })),
    );
    expect([wins(one, 'claimed'), wins(one, 'client_cap')]).toEqual([7, CALLS - 7]);
  });

  test('a payment gets exactly one final state', async () => {
    const { payments } = ledger.stores;
    for (const round of range(ROUNDS)) {
      const id = `p${round}`;
      await payments.reserve(reservation(id, id), 0, null);
      await payments.move(id, ['reserved'], 'settling', {}, { store: Buffer.from('reply') });
      const tried = await race((stores, at) => {
        if (at % 3 === 0) return stores.payments.release(id, ['settling']);
        const [to, reply] = at % 3 === 1 ? (['settled', { keepUntil: 9 }] as const) : (['failed', 'drop'] as const);
        return stores.payments.move(id, ['settling', 'unknown'], to, { endedAt: 1, reason: null }, reply);
      }, 32);
      expect(wins(tried)).toBe(1);
      const end = ['gone', 'settled', 'failed'][tried.indexOf(true) % 3];
      expect((await both[1]!.payments.get(id))?.state ?? 'gone').toBe(end);
    }
  });

  test('a reply is returned again up to its limit and no more often', async () => {
    const { payments } = ledger.stores;
    await payments.reserve(reservation('a', 'a'), 0, null);
    await payments.move('a', ['reserved'], 'settling', {}, { store: Buffer.from('reply') });
    await payments.move('a', ['settling'], 'settled', {}, { keepUntil: 10 });
    const taken = await race((stores) => stores.payments.takeReply('a', 5, 1), 64);
    expect(taken.filter((one) => one !== null)).toHaveLength(5);
    expect((await payments.get('a'))?.deliveries).toBe(5);
  });

  test('a granted claim is served by one caller, and answered once', async () => {
    await ledger.stores.lightning.claim(grantOf('a'));
    const leases = await race(
      ({ lightning }, at) => lightning.takeLease(keyOf('a'), `boot:${at}`, NOON, NOON + 60_000),
      64,
    );
    expect(wins(leases)).toBe(1);
    const holder = `boot:${leases.indexOf(true)}`;
    const stored = await race(
      ({ lightning }, at) => lightning.storeAnswer(keyOf('a'), holder, Buffer.from(`${at}`)),
      16,
    );
    expect(wins(stored)).toBe(1);
    expect(await both[1]!.lightning.answer(keyOf('a'))).toEqual(Buffer.from(`${stored.indexOf(true)}`));
  });

  test('when two payments of one payer are reserved at once, at least one counts the other', async () => {
    const ids = range(40).map((at) => `${at}`.padStart(2, '0'));
    // Ids that do not come in the order of the calls, as those of two processes.
    const given = ids.toSorted((a, b) => Buffer.compare(hash32(a), hash32(b)));
    await race(({ payments }, at) => payments.reserve(reservation(given[at]!, given[at]!), 0, null), ids.length);
    const sums = await Promise.all(ids.map((id) => both[1]!.payments.sumOfOpen(reservation(id, id), id)));
    const inOrder = range(ids.length).map((at) => BigInt(at) * 500n);
    const total = (of: readonly bigint[]) => of.reduce((sum, one) => sum + one, 0n);
    expect(total(sums)).toBeGreaterThanOrEqual(total(inOrder));
    // PostgreSQL gives each its place: every one counts exactly those before it.
    if (adapter.name === 'postgres') expect(sums.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(inOrder);
  });
});
