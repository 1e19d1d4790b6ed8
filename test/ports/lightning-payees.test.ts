import { expect, test } from 'vitest';
import type { ClaimAccount, ClaimOutcome } from '../../src/store/ports/lightning.ts';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';
import { accountedOf, DAY, hashOf, nodeOf, TODAY } from '../support/lightning/lightning-rows.ts';

describePorts('the parts of the facilitator’s day', (adapter) => {
  const ledger = useLedger(adapter);
  const store = ofNow(() => ledger.stores.lightning);
  const counts = () => store.facilitatorCounts(TODAY, nodeOf('ours'));

  /** A claim for a payee by a client of its own, as the facilitator makes it. */
  const claimFor = (name: string, payee: string, more: Partial<ClaimAccount> = {}, client = payee) => {
    const hashes = { clientHash: hashOf(client), payeeClientHash: hashOf(`${client} of ${payee}`) };
    return store.claim(accountedOf(name, { ...hashes, ...more }, { payTo: nodeOf(payee) }));
  };
  const EARLIER = ['2026-02-28', '2026-03-01', '2026-03-02'];
  /** Claims for a payee on three earlier days, by two clients. */
  const makeKnown = (payee: string) =>
    Promise.all(EARLIER.map((day, at) => claimFor(`${payee} ${day}`, payee, { day }, `${payee} ${at === 0}`)));
  const outcomesOf = (claims: number, make: (at: number) => Promise<ClaimOutcome>) =>
    Promise.all(Array.from({ length: claims }, (_, at) => make(at)));

  test('one payee has its part of the day, whoever claims, within one batch and later', async () => {
    const claim = (at: number) => claimFor(`${at}`, 'one', { payeeCap: 3 }, `client ${at}`);
    expect(await outcomesOf(4, claim)).toEqual(['claimed', 'claimed', 'claimed', 'payee_cap']);
    expect(await claim(4)).toBe('payee_cap');
    expect(await claimFor('another', 'another', { payeeCap: 3 })).toBe('claimed');
    // A refused claim is counted nowhere. A spent proof comes first, then the day's cap, the client's, and the payee's.
    expect(await counts()).toMatchObject({ today: 4 });
    expect(await claimFor('0', 'one', { payeeCap: 3 })).toBe('duplicate');
    expect(await claimFor('5', 'one', { payeeCap: 3, dailyCap: 4 })).toBe('daily_cap');
    expect(await claimFor('5', 'one', { payeeCap: 3, clientCap: 1 }, 'client 0')).toBe('client_cap');
    expect(await claimFor('5', 'one', { payeeCap: 3, openCap: 0 })).toBe('payee_cap');
    expect(await claimFor('5', 'one', { payeeCap: 3, day: '2026-03-04' })).toBe('claimed');
  });

  test('the known payees are counted once a day, also where the day begins with a claim that is refused', async () => {
    await makeKnown('known');
    const ofDay = (day: string) =>
      ledger.sql(`SELECT claims, known_payees FROM lightning_facilitator_days WHERE day = '${day}'`);
    // A proof of yesterday, presented again by somebody else.
    expect(await claimFor(`known ${EARLIER[2]}`, 'known', {}, 'a stranger')).toBe('duplicate');
    expect((await ofDay(TODAY)).map((row) => Object.values(row).map(Number))).toEqual([[0, 1]]);
    // Known since then: it does not count before the next day.
    expect(await claimFor('more', 'known')).toBe('claimed');
    expect((await ofDay(TODAY)).map((row) => Object.values(row).map(Number))).toEqual([[1, 1]]);
    const refused = { openCap: 0, dailyCap: 0 };
    expect(await outcomesOf(3, (at) => claimFor(`no ${at}`, `no ${at}`, refused))).toEqual(Array(3).fill('daily_cap'));
    expect((await ofDay(TODAY)).map((row) => Object.values(row).map(Number))).toEqual([[1, 1]]);
    expect(await counts()).toMatchObject({ today: 1 });
  });

  test('one claim on the day before makes no payee known: the open part stays closed to it', async () => {
    const caps = { dailyCap: 8, openCap: 4 };
    const payees = ['a', 'b', 'c', 'd'];
    await Promise.all(payees.map((payee) => claimFor(`${payee} before`, payee, { ...caps, day: '2026-03-02' })));
    const ends = await outcomesOf(8, (at) => claimFor(`${at}`, payees[at % 4]!, caps));
    expect(ends).toEqual([...Array(4).fill('claimed'), ...Array(4).fill('open_cap')]);
  });

  test('three earlier days and two clients make a payee known; fewer of either, or days of long ago, do not', async () => {
    const closed = { openCap: 0 };
    await makeKnown('known');
    for (const day of EARLIER) await claimFor(`one client ${day}`, 'one client', { day });
    for (const [at, day] of EARLIER.slice(1).entries())
      await claimFor(`two days ${day}`, 'two days', { day }, `client ${at}`);
    for (const [at, day] of ['2026-01-28', '2026-01-31', '2026-03-02'].entries())
      await claimFor(`long ago ${day}`, 'long ago', { day }, `client ${at}`);
    const payees = ['known', 'one client', 'two days', 'long ago'];
    const ends = await Promise.all(payees.map((payee) => claimFor(`${payee} now`, payee, closed)));
    expect(ends).toEqual(['claimed', 'open_cap', 'open_cap', 'open_cap']);
    // What is claimed today does not count: neither a third day nor a second client.
    for (const client of ['x', 'y']) await claimFor(`two days ${client}`, 'two days', {}, client);
    expect(await claimFor('two days again', 'two days', closed)).toBe('open_cap');
    expect(await claimFor('two days tomorrow', 'two days', { ...closed, day: '2026-03-04' })).toBe('claimed');
  });

  test('a second client on one of the days is enough, in the batch of the first or later', async () => {
    const claims = (payee: string) =>
      ['first', 'second'].map((client) => () => claimFor(`${payee} ${client}`, payee, { day: EARLIER[0]! }, client));
    await Promise.all(claims('in one batch').map((claim) => claim()));
    for (const claim of claims('one by one')) await claim();
    for (const payee of ['in one batch', 'one by one']) {
      for (const day of EARLIER.slice(1)) await claimFor(`${payee} ${day}`, payee, { day }, 'first');
      expect(await claimFor(`${payee} now`, payee, { openCap: 0 })).toBe('claimed');
    }
  });

  test('a client whose claim was refused is no second client, also in the batch of the other', async () => {
    const [first = '', ...later] = EARLIER;
    await claimFor('spent', 'another');
    const batch = ['spent', 'fresh'].map((name) => claimFor(name, 'payee', { day: first }, `client of ${name}`));
    expect(await Promise.all(batch)).toEqual(['duplicate', 'claimed']);
    for (const day of later) await claimFor(day, 'payee', { day }, 'client of fresh');
    expect(await claimFor('now', 'payee', { openCap: 0 })).toBe('open_cap');
  });

  test('known payees have equal parts of their half, and may use the open half beyond', async () => {
    const caps = { dailyCap: 12, openCap: 6 };
    for (const payee of ['a', 'b', 'c']) await makeKnown(payee);
    // Half of the day is 6, so each of the three has 2, whoever comes first. `a` takes two more of the open half.
    expect(await outcomesOf(4, (at) => claimFor(`a ${at}`, 'a', caps))).toEqual(Array(4).fill('claimed'));
    const strangers = await outcomesOf(6, (at) => claimFor(`stranger ${at}`, `stranger ${at}`, caps));
    expect(strangers).toEqual([...Array(4).fill('claimed'), 'open_cap', 'open_cap']);
    expect(await claimFor('a 4', 'a', caps)).toBe('known_cap');
    const left = await outcomesOf(6, (at) => claimFor(`late ${at}`, at % 2 ? 'b' : 'c', caps));
    expect(left).toEqual([...Array(4).fill('claimed'), 'daily_cap', 'daily_cap']);
    expect(await counts()).toMatchObject({ today: 12 });
  });

  test('the parts of known payees hold across two instances', async () => {
    const stores = [store, (await ledger.another()).lightning];
    for (const payee of ['a', 'b']) await makeKnown(payee);
    const claims = Array.from({ length: 40 }, (_, at) => {
      const hashes = { clientHash: hashOf(`${at}`), payeeClientHash: hashOf(`${at}`) };
      const payTo = nodeOf(at < 20 ? 'a' : 'b');
      return stores[at % 2]!.claim(accountedOf(`${at}`, { ...hashes, dailyCap: 10, openCap: 0 }, { payTo }));
    });
    const outcomes = await Promise.all(claims);
    for (const mine of [outcomes.slice(0, 20), outcomes.slice(20)])
      expect(mine.filter((outcome) => outcome === 'claimed')).toHaveLength(5);
  });

  test('a payee’s days are kept while they can make it known', async () => {
    await makeKnown('known');
    const last = Date.parse('2026-03-30T00:00:00Z');
    await store.prune(last);
    expect(await claimFor('still', 'known', { openCap: 0, day: '2026-03-30' })).toBe('claimed');
    await store.prune(last + 5 * DAY);
    const days = () => ledger.sql('SELECT day FROM lightning_facilitator_payees');
    expect(await days()).toEqual([{ day: '2026-03-30' }]);
    // A day longer than the thirty that count.
    await store.prune(last + 31 * DAY);
    expect(await days()).toEqual([{ day: '2026-03-30' }]);
    await store.prune(last + 32 * DAY);
    expect(await days()).toEqual([]);
  });

  test('the open part holds across two instances', async () => {
    const stores = [store, (await ledger.another()).lightning];
    const claims = Array.from({ length: 30 }, (_, at) =>
      stores[at % 2]!.claim(accountedOf(`${at}`, { openCap: 7 }, { payTo: nodeOf(`${at}`) })),
    );
    const outcomes = await Promise.all(claims);
    expect(outcomes.filter((outcome) => outcome === 'claimed')).toHaveLength(7);
    expect(outcomes.filter((outcome) => outcome === 'open_cap')).toHaveLength(23);
  });
});
