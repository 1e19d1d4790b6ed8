import { expect, test } from 'vitest';
import type { ClaimAccount, ClaimOutcome, NewClaim } from '../../src/store/ports/lightning.ts';
import { type Adapter, describeLedgers, describePorts, useLedger } from '../support/ledger/ledger-adapters.ts';
import { createLightningModel } from '../support/lightning/lightning-model.ts';
import { accountedOf, grantOf, hashOf, keyOf, NOON, nodeOf, TODAY } from '../support/lightning/lightning-rows.ts';
import { seed, seededRandom } from '../support/random.ts';

/** Readings are slower on PostgreSQL. */
const DAYS = { sqlite: 40, postgres: process.env.SLOW ? 400 : 12 };
const BURSTS = 4;
const NO_CAPS = { dailyCap: 1000, clientCap: 1000, payeeCap: 1000, openCap: 1000 };
/** The first days, each with one cap alone, of one claim. */
const ONE_CAP = [
  { ...NO_CAPS, openCap: 1 },
  { ...NO_CAPS, dailyCap: 1 },
  { ...NO_CAPS, clientCap: 1 },
  { ...NO_CAPS, payeeCap: 1 },
];
type Caps = Pick<ClaimAccount, 'dailyCap' | 'clientCap' | 'payeeCap' | 'openCap'>;
const CLIENTS = ['x', 'y', 'z'];
const KNOWN = ['ours', 'theirs', 'third'];
const OUTCOMES: readonly ClaimOutcome[] = [
  ...(['claimed', 'duplicate', 'daily_cap', 'client_cap', 'payee_cap', 'known_cap', 'open_cap'] as const),
];
const dayOf = (day: number): string => new Date(NOON + day * 86_400_000).toISOString().slice(0, 10);
const range = (count: number): number[] => Array.from({ length: count }, (_, at) => at);

describePorts('many facilitator’s claims at once', (adapter) => {
  const ledger = useLedger(adapter, { synced: false });
  const days = DAYS[adapter.name];

  test(`end as they would one by one, and are counted exactly: ${days} days of bursts (SEED=${seed})`, async () => {
    const random = seededRandom('lightning-counted-claims');
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
    const model = createLightningModel();
    const seen = new Map<ClaimOutcome, number>();
    const store = ledger.stores.lightning;

    /** Names come again within a burst and later; now and then a cap or a day differs, or a claim of ours is among them. Half of the payees are of this day. */
    const someClaim = (day: number, caps: Caps): [string, NewClaim] => {
      const name = `${pick([day, day, day, day - 1])}-${Math.floor(random() * 40)}`;
      const payTo = nodeOf(pick([...KNOWN, `new ${day}`, `new too ${day}`]));
      if (random() < 0.05) return [name, grantOf(name, { payTo })];
      const client = hashOf(pick(CLIENTS));
      const hashes = { clientHash: client, payeeClientHash: client };
      const account = { day: dayOf(random() < 0.05 ? day + 1 : day), ...hashes, ...caps };
      if (random() < 0.05) account.dailyCap += 2;
      if (random() < 0.05) account.openCap += 1;
      return [name, accountedOf(name, account, { payTo })];
    };

    // Three payees become known; then one of them uses up its share, and the open part too.
    const asClient = (name: string) => ({ clientHash: hashOf(name), payeeClientHash: hashOf(name) });
    const short = { ...NO_CAPS, dailyCap: 7, openCap: 1 };
    const before = [
      ...[-4, -3, -2].flatMap((day) => KNOWN.map((payee) => ({ day, payee, caps: NO_CAPS }))),
      ...range(6).map(() => ({ day: -1, payee: 'third', caps: short })),
    ].map(({ day, payee, caps }, at): [string, NewClaim] => {
      const account = { day: dayOf(day), ...asClient(CLIENTS[at % 2 ? 0 : 1] ?? ''), ...caps };
      return [`before ${at}`, accountedOf(`before ${at}`, account, { payTo: nodeOf(payee) })];
    });
    const first = before.map(([name, claim]) => model.claim(name, claim));
    expect(await Promise.all(before.map(([, claim]) => store.claim(claim)))).toEqual(first);
    for (const outcome of first) seen.set(outcome, 1);

    for (const day of range(days)) {
      const drawn = {
        dailyCap: pick([1, 8, 20, 1000]),
        clientCap: pick([1, 3, 10, 1000]),
        payeeCap: pick([1, 4, 10, 1000]),
        openCap: pick([1, 4, 10, 1000]),
      };
      // Each cap is the only one once, so that each outcome is seen whatever is drawn.
      const caps = { ...drawn, ...ONE_CAP[day] };
      for (const burst of range(BURSTS)) {
        const claims = range(pick([1, 2, 5, 30])).map(() => someClaim(day, caps));
        const should = claims.map(([name, claim]) => model.claim(name, claim));
        const made = await Promise.all(claims.map(([, claim]) => store.claim(claim)));
        expect(made, `SEED=${seed}, day ${day}, burst ${burst}`).toEqual(should);
        for (const outcome of made) seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
      }
      const own = nodeOf('ours');
      expect(await store.facilitatorCounts(dayOf(day), own)).toEqual(model.counts(dayOf(day), own));
      for (const client of CLIENTS.map(hashOf)) {
        expect(await store.clientCount(dayOf(day), client)).toBe(model.clientCount(dayOf(day), client));
      }
    }
    expect([...seen.keys()].toSorted()).toEqual(OUTCOMES.toSorted());
  });

  test('reject one by one when they are malformed, and the others are made and counted once', async () => {
    const store = ledger.stores.lightning;
    const names = range(8).map((at) => `proof ${at}`);
    const claims = names.map((name, at) => accountedOf(name, {}, at === 3 ? { payTo: Buffer.alloc(32) } : {}));
    const ends = await Promise.allSettled(claims.map((claim) => store.claim(claim)));
    expect(ends.map((end) => (end.status === 'fulfilled' ? end.value : 'rejected'))).toEqual(
      names.map((_, at) => (at === 3 ? 'rejected' : 'claimed')),
    );
    const counts = await store.facilitatorCounts(TODAY, nodeOf('theirs'));
    expect(counts).toEqual({ total: 7, today: 7, nodes: 1, own: 7 });
    expect(await store.findClaim(keyOf('proof 3'))).toBeNull();
  });

  test('store the fields of each claim', async () => {
    const store = ledger.stores.lightning;
    const claims = range(5).map((at) =>
      accountedOf(
        `proof ${at}`,
        {},
        { amountMsat: 2n ** 64n + BigInt(at), claimedAt: NOON + at, payTo: nodeOf(`${at}`) },
      ),
    );
    await Promise.all(claims.map((claim) => store.claim(claim)));
    for (const [at, { payTo, amountMsat, claimedAt }] of claims.entries()) {
      expect(await store.findClaim(keyOf(`proof ${at}`))).toMatchObject({ payTo, amountMsat, claimedAt, grant: null });
    }
  });
});

// SQLite makes each in a statement of its own.
const onPostgres = (adapter: Adapter) => {
  const ledger = useLedger(adapter);
  const turns = async () =>
    (await ledger.sql("SELECT taken FROM ledger_turns WHERE name = 'lightning'")).map(({ taken }) => Number(taken))[0];

  /** The outcomes of claims at once, how many statements made them, and in how many transactions. */
  async function burst(claims: readonly NewClaim[]) {
    const before = (await turns()) ?? 0;
    const outcomes = await Promise.all(claims.map((claim) => ledger.stores.lightning.claim(claim)));
    const [made] = await ledger.sql('SELECT count(DISTINCT cmin::text) AS statements FROM lightning_claims');
    return { outcomes, statements: Number(made?.statements), transactions: ((await turns()) ?? 0) - before };
  }

  test('share a statement', async () => {
    const elsewhere = { ...accountedOf('a'), network: 'lnbtc:another' };
    expect(await burst([accountedOf('a'), accountedOf('b'), elsewhere])).toEqual({
      outcomes: ['claimed', 'claimed', 'claimed'],
      statements: 1,
      transactions: 1,
    });
  });

  test('of one proof have one each, so that none is run again', async () => {
    const names = ['a', 'b', 'a', 'c'];
    expect(await burst(names.map((name) => accountedOf(name)))).toEqual({
      outcomes: ['claimed', 'claimed', 'duplicate', 'claimed'],
      statements: 2,
      transactions: 1,
    });
  });

  test.each([{ day: dayOf(1) }, { dailyCap: 7 }, { clientCap: 7 }, { payeeCap: 7 }, { openCap: 7 }])(
    'under %j and under other caps have one each',
    async (other) => {
      expect(await burst([accountedOf('a'), accountedOf('b', other)])).toMatchObject({
        statements: 2,
        transactions: 1,
      });
    },
  );
};
describeLedgers('neighbours among a facilitator’s claims', onPostgres, 'postgres');
