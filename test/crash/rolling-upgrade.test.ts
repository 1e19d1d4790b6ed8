import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { type Postgres, startPostgres } from '../../scripts/lib/ledger/postgres.ts';
import { checkout, hasCommit } from '../../scripts/lib/schemas/checkout.ts';
import { openEarlierPostgres } from '../../scripts/lib/schemas/earlier-stores.ts';
import { RELEASED } from '../../scripts/lib/schemas/released.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { newestVersion } from '../../src/store/db/migrate.ts';
import { openPostgresStores } from '../../src/store/open-postgres.ts';
import type { LedgerStores } from '../../src/store/ports/stores.ts';
import { channelState, channelTerms, voucherSale } from '../support/ledger/channel-rows.ts';
import { describePostgres, POSTGRES_LIMITS } from '../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';
import { leaderOf } from '../support/service/instances.ts';
import { checkSale, expectBalancedLedger, untilNothingIsOpen } from '../support/service/instances-checks.ts';
import { ownPort } from '../support/service/own-port.ts';
import { createProcess } from '../support/service/process.ts';
import { until } from '../support/service/workers.ts';
import { newBuyer, type Payment, present } from '../support/usdc/buyer.ts';

// An instance of the last schema's code and one of today on one ledger, as in a rolling upgrade. The old code comes out of git's history, so this runs in
// the slow lane, and not in a shallow clone.

const NEWEST = newestVersion();
const EARLIER = RELEASED.filter(({ database, version }) => database === 'postgres' && version < NEWEST);
/** The last schema before today's, and the last one whose instances may not run beside today's. */
const [before, older] = [EARLIER.at(-1), EARLIER.findLast(({ version }) => version < 18)];
/** The first schema whose instances may run beside today's. Its transactions are SERIALIZABLE, and today's are not. */
const beside = EARLIER.find(({ version }) => version === 18);
if (before === undefined || older === undefined || beside === undefined) throw new Error('there is no earlier schema');
const missing = !process.env.SLOW
  ? 'it belongs to the slow lane'
  : [before, older, beside].every(({ commit }) => hasCommit(commit))
    ? null
    : 'this clone lacks the history';
if (missing !== null) process.stderr.write(`skipped, an upgrade with running instances: ${missing}\n`);

const PATH = '/v1/paid/fees/estimate';
const BUYERS = 6;
type Buyer = Awaited<ReturnType<typeof newBuyer>>;
type Instance = Awaited<ReturnType<typeof createProcess>>;

describe.skipIf(missing !== null)('an upgrade', () => {
  describePostgres('of instances that share a ledger', () => {
    let network: EmbeddedNetwork;
    let postgres: Postgres;
    let work: string;
    let buyers: Buyer[];
    const started: Instance[] = [];
    beforeAll(async () => {
      [network, postgres] = await Promise.all([startEmbeddedNetwork(), startPostgres()]);
      work = mkdtempSync(join(tmpdir(), 'percall-upgrade-'));
      // A library of the reference page that is no dependency any more. The old code reads its file at the start, and no buyer asks for it.
      const gone = join(work, 'node_modules/swagger-ui-dist');
      mkdirSync(gone, { recursive: true });
      writeFileSync(join(gone, 'swagger-ui-bundle.js'), '');
      buyers = await Promise.all(Array.from({ length: BUYERS }, () => newBuyer(network, 50_000_000n)));
    });
    afterAll(async () => {
      for (const one of started) await one.kill();
      await postgres?.stop();
      await network?.stop();
      if (work) rmSync(work, { recursive: true, force: true });
    });

    /** An instance of a commit's code, or of today's, over a ledger. Both name one public origin, as behind a load balancer. */
    async function instanceOf(commit: string | null, ledger: string): Promise<Instance> {
      const [port, name] = [String(await ownPort()), commit ?? 'today'];
      const env = {
        LEDGER_URL: postgres.url(ledger),
        // The balance of the network's seller is compared with one ledger.
        SELLER_ADDRESS: ledger === 'rolling' ? network.seller : createAccount().address,
        PORT: port,
        PUBLIC_ORIGIN: 'http://127.0.0.1:1',
        PAYER_MAX_OPEN: '0',
        // Earlier versions know no `off`.
        RELAYER_DAILY_GAS_USDC: '1000',
      };
      const program = commit === null ? {} : { program: join(checkout(commit, work), 'src/server.ts') };
      const more = { COLLECTOR: 'off', REDELIVERY_MAX: '1000' };
      const instance = await createProcess(
        network,
        join(work, `data-${ledger}-${name}-${port}`),
        { ...env, ...more },
        program,
      );
      started.push(instance);
      return instance;
    }

    async function ask<Row extends object>(ledger: string, text: string): Promise<Row[]> {
      const client = new Client({ connectionString: postgres.url(ledger) });
      await client.connect();
      try {
        return (await client.query(text)).rows as Row[];
      } finally {
        await client.end();
      }
    }

    const versionOf = async (ledger: string): Promise<number> =>
      Number((await ask<{ last: string }>(ledger, 'SELECT max(version) AS last FROM ledger_migrations'))[0]?.last);

    /** Each buyer presents one payment at both instances at the same moment. It is charged once and answered alike at both. */
    async function sellAtBoth(
      ledger: string,
      [one, other]: readonly [Instance, Instance],
      what: string,
    ): Promise<void> {
      const payments: Payment[] = await Promise.all(buyers.map((buyer) => buyer.sign(one.origin, PATH)));
      const answers = await Promise.all(
        payments.map(async (payment) => {
          const both = [one, other].map(({ origin }) => present(origin, PATH, payment));
          return (await Promise.all(both)).find(({ status }) => status === 200) ?? null;
        }),
      );
      expect(answers.filter(Boolean), what).toHaveLength(BUYERS);
      for (const [at, payment] of payments.entries())
        for (const { origin } of [one, other])
          await checkSale(network, origin, { path: PATH, payment, received: answers[at] ?? null }, what);
      const service = { ask: <Row extends object>(text: string) => ask<Row>(ledger, text) };
      await untilNothingIsOpen(service);
      await expectBalancedLedger(network, service, what);
    }

    test(`from version ${before.version}: both sell, one payment buys one answer, whichever of them leads`, async () => {
      await postgres.createDatabase('rolling');
      const [old, other] = [await instanceOf(before.commit, 'rolling'), await instanceOf(before.commit, 'rolling')];
      await old.start();
      await other.start();
      expect(await versionOf('rolling')).toBe(before.version);
      const sold = await (buyers[0] as Buyer).sign(old.origin, PATH);
      const answer = await present(old.origin, PATH, sold);
      expect(answer.status).toBe(200);

      const today = await instanceOf(null, 'rolling');
      await today.start();
      expect(await versionOf('rolling')).toBe(NEWEST);
      expect(await leaderOf({ origins: [old.origin, other.origin, today.origin] })).toBe(0);
      const again = await present(today.origin, PATH, sold);
      expect([again.status, again.body]).toEqual([200, answer.body]);
      await sellAtBoth('rolling', [old, today], 'the old one leads');

      // The other old one sleeps for the moment in which the lease is free, and lives on.
      process.kill(other.pid(), 'SIGSTOP');
      expect(await old.stop()).toBe(0);
      await until("today's leads", async () => (await leaderOf({ origins: [today.origin] })) === 0);
      process.kill(other.pid(), 'SIGCONT');
      await sellAtBoth('rolling', [other, today], "today's leads");

      // The last old one dies with payments in flight, and today's finishes them.
      await network.pauseMining();
      const payments = await Promise.all(buyers.map((buyer) => buyer.sign(other.origin, PATH)));
      const cut = payments.map((payment) => present(other.origin, PATH, payment).catch(() => null));
      const open = "SELECT id FROM usdc_payments WHERE state = 'settling' AND transaction_hash IS NOT NULL";
      await until('payments are in flight', async () => (await ask('rolling', open)).length >= 2);
      await other.kill();
      await network.resumeMining();
      const received = await Promise.all(cut);
      const what = 'the old one died';
      for (const [at, payment] of payments.entries())
        await checkSale(network, today.origin, { path: PATH, payment, received: received[at] ?? null }, what);

      // What was stopped cannot come back: the ledger is newer than its program.
      await expect(old.start()).rejects.toThrow('start the newer program');
    });

    test(`from version ${beside.version}: caps, places, moves and charges are exact over two of then and two of today`, async () => {
      await postgres.createDatabase('mixed');
      const url = postgres.url('mixed');
      const today = () => openPostgresStores({ url, ...POSTGRES_LIMITS, clock: systemClock });
      const then = checkout(beside.commit, work);
      const stores = [await openEarlierPostgres(then, url), await openEarlierPostgres(then, url)];
      stores.push(await today(), await today());
      const each = <T>(count: number, call: (one: LedgerStores, at: number) => Promise<T>): Promise<T[]> =>
        Promise.all(Array.from({ length: count }, (_, at) => call(stores[at % stores.length] as LedgerStores, at)));
      const won = (tried: readonly unknown[]): number => tried.filter(Boolean).length;
      for (let round = 0; round < 5; round++) {
        const payer = Buffer.alloc(20, 100 + round);
        const row = (at: number) => reservation(`r${round}-${at}`, `r${round}-${at}`, { payer });
        expect(won(await each(80, ({ payments }, at) => payments.reserve(row(at), 5, null)))).toBe(5);
        const open = (await stores[3]?.payments.listByState(['reserved'], 10)) ?? [];
        const sums = await each(5, ({ payments }, at) => payments.sumOfOpen(row(0), open[at]?.id ?? ''));
        expect(new Set(sums)).toEqual(new Set([0n, 500n, 1000n, 1500n, 2000n]));
        for (const { id } of open) {
          const moved = await each(4, ({ payments }) => payments.move(id, ['reserved'], 'settling', {}));
          const end = { transaction: hash32(id).subarray(0, 16), endedAt: 1 };
          const settled = await each(4, ({ payments }) => payments.move(id, ['settling'], 'settled', end));
          expect([won(moved), won(settled)]).toEqual([1, 1]);
        }
        expect(await stores[round % 4]?.transfers.due(0, 100)).toHaveLength(5 * (round + 1));
        await stores[3]?.channels.note(channelTerms(`c${round}`), channelState(), 1);
        for (let max = 100n; max <= 1_000n; max += 100n) {
          const sale = (at: number) => voucherSale(`v${round}-${max}-${at}`, `c${round}`, max);
          expect(won(await each(4, ({ channels }, at) => channels.charge(sale(at), Buffer.from('r'), 9)))).toBe(1);
        }
        expect((await stores[2]?.channels.get(channelTerms(`c${round}`).id))?.charged).toBe(1_000n);
      }
      for (const one of stores) await one.close();
    });

    test(`from version ${older.version}: today's instance does not start while one of then runs, and says why`, async () => {
      await postgres.createDatabase('refused');
      const old = await instanceOf(older.commit, 'refused');
      await old.start();
      const today = await instanceOf(null, 'refused');
      await expect(today.start()).rejects.toThrow(
        `is of version ${older.version}, and instances of that program run on it (1): stop them first`,
      );
      expect(await versionOf('refused')).toBe(older.version);
      expect((await present(old.origin, PATH, await buyers[0]!.sign(old.origin, PATH))).status).toBe(200);
      expect(await old.stop()).toBe(0);
      await today.start();
      expect((await present(today.origin, PATH, await buyers[0]!.sign(today.origin, PATH))).status).toBe(200);
    });
  });
});
