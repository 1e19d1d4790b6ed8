import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { proofNow, type SettleEnd, settleOver } from '../support/lightning/settle-calls.ts';
import { type DatabaseProxy, startDatabaseProxy } from '../support/postgres/database-proxy.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';
import { seed, seededRandom } from '../support/random.ts';
import { type Instances, startInstances } from '../support/service/instances.ts';
import {
  checkSale,
  expectBalancedLedger,
  untilAllAreReady,
  untilNothingIsOpen,
  untilTheFirstLeads,
} from '../support/service/instances-checks.ts';
import { type Answer, call } from '../support/service/service.ts';
import { presentUntilServed, until, usesOf } from '../support/service/workers.ts';
import { newBuyer, type Payment, present } from '../support/usdc/buyer.ts';

/** In the quick lane each fault comes once, two of them in a round. */
const ROUNDS = Number(process.env.ROUNDS ?? (process.env.SLOW ? 100 : 4));
const PER_ROUND = process.env.SLOW ? 1 : 2;
/** A round's faults take up to this time. */
const FAULTS_MS = 3000;
const [BUYERS, CLAIMS] = [6, 12];
const PATH = '/v1/paid/fees/estimate';
/** Short time-outs, so that an unknown outcome is reported soon. A start needs its connections: on a busy machine a second was not enough for one. */
const TIMES = { LEDGER_STATEMENT_TIMEOUT_MS: '500', LEDGER_CONNECT_TIMEOUT_MS: '3000', SETTLE_WAIT_MS: '8000' };
/** How often a test tries to lose the answer to one COMMIT. */
const TRIES = 10;
type Buyer = Awaited<ReturnType<typeof newBuyer>>;
const random = seededRandom('ledger network');

describePostgres('the network between one of two instances and the ledger', () => {
  let network: EmbeddedNetwork;
  let proxy: DatabaseProxy;
  let service: Instances;
  let buyers: Buyer[];
  beforeAll(async () => {
    network = await startEmbeddedNetwork();
    const url = await freshDatabase();
    proxy = await startDatabaseProxy(url);
    // A hundred rounds claim more than one client's share of a day.
    const env = { ...TIMES, FACILITATOR_PER_MINUTE: '0', FACILITATOR_DAILY_CAP: '1000000' };
    service = await startInstances(network, url, 2, env, (at) => (at === 0 ? { LEDGER_URL: proxy.url } : {}));
    buyers = await Promise.all(Array.from({ length: BUYERS }, () => newBuyer(network, 50_000_000n)));
  });
  afterAll(async () => {
    await service?.stop();
    await proxy?.stop();
    await network?.stop();
  });

  /** The faults of the connection. Each ends with `heal`. */
  const faults: Record<string, () => unknown> = {
    'delays by 100 ms': () => proxy.delay(100),
    'is cut': () => proxy.cut(),
    'is half closed': () => proxy.halfClose(),
    'is away': () => proxy.away(),
    'loses the answer to a COMMIT and breaks': () => proxy.loseCommit('cut'),
    'goes deaf': () => proxy.swallow(),
    'loses the answer to a COMMIT and goes deaf': () => proxy.loseCommit('swallow'),
  };
  const names = Object.keys(faults);
  const groups = Array.from({ length: Math.ceil(names.length / PER_ROUND) }, (_, at) =>
    names.slice(at * PER_ROUND, (at + 1) * PER_ROUND),
  );
  /** Each fault of a group, ended at a random moment before the next one begins. */
  async function cause(group: readonly string[]): Promise<void> {
    for (const what of group) {
      faults[what]?.();
      await delay((random() * FAULTS_MS) / PER_ROUND);
      proxy.heal();
    }
  }
  const [troubled, sound] = [() => service.origins[0] as string, () => service.origins[1] as string];
  const problem = (answer: Answer) => JSON.parse(answer.body) as { code: string; charged: unknown };

  /** A payment that was reported as uncharged is not charged, now or later. An unknown outcome is never reported as certain. */
  async function expectTruthfulAnswer(payment: Payment, answer: Answer | null, context: string): Promise<void> {
    if (answer === null || answer.status === 200) return;
    const summary = `${answer.status} ${answer.body} ${context}`;
    expect([429, 500, 502], summary).not.toContain(answer.status);
    const { code, charged } = problem(answer);
    // While the ledger is away, it is unknown whether the payment was taken before.
    if (code !== 'ledger_unavailable') expect(charged, summary).toBe(code === 'settlement_unknown' ? 'unknown' : false);
    if (charged === false) expect(await usesOf(network, payment), summary).toBe(0);
  }

  /**
   * Settles proofs where the connection is sound, and there again each that may not be claimed yet: on a busy machine a statement is too late for its
   * time-out there, too.
   */
  async function settleSoundly(proofs: readonly ReturnType<typeof proofNow>[]): Promise<SettleEnd[]> {
    const isOpen = (end: SettleEnd | undefined) => end === undefined || end === 'replay_store_unavailable';
    const ends: SettleEnd[] = [];
    await until('every proof is settled', async () => {
      const open = proofs.flatMap((_, at) => (isOpen(ends[at]) ? [at] : []));
      const settled = await settleOver(
        sound(),
        open.map((at) => proofs[at] as (typeof proofs)[number]),
        3,
      );
      for (const [index, at] of open.entries()) ends[at] = settled[index] as SettleEnd;
      return !ends.some(isOpen);
    });
    return ends;
  }

  /** The claims of the ledger, and how many its totals count. */
  async function countClaims(): Promise<{ rows: number; counted: number }> {
    const [totals] = await service.ask<{ rows: string; counted: string }>(
      'SELECT (SELECT count(*) FROM lightning_claims) AS rows, (SELECT claims FROM lightning_facilitator_totals) AS counted',
    );
    return { rows: Number(totals?.rows), counted: Number(totals?.counted) };
  }

  test(
    `${ROUNDS} rounds: no payment is charged twice or reported wrongly, and no acknowledged claim is lost`,
    async () => {
      const summary: Record<string, number> = {};
      const before = await countClaims();
      for (let round = 0; round < ROUNDS; round++) {
        await untilAllAreReady(service);
        const group = groups[round % groups.length] as string[];
        const context = `the wire ${group.join(', then ')}, seed ${seed}, round ${round} (run again with SEED=${seed})`;
        const payments = await Promise.all(buyers.map((buyer) => buyer.sign(sound(), PATH)));
        const spreadMs = 200 + random() * 800;
        const answers = payments.map(async (payment, at) => {
          await delay(random() * spreadMs);
          return present(at % 3 === 2 ? sound() : troubled(), PATH, payment).catch(() => null);
        });
        const proofs = Array.from({ length: CLAIMS }, proofNow);
        const claiming = settleOver(troubled(), proofs, 3);
        await delay(random() * spreadMs);
        const [received, claims] = await Promise.all([Promise.all(answers), claiming, cause(group)]);

        await untilAllAreReady(service);
        await untilNothingIsOpen(service);
        for (const [at, payment] of payments.entries())
          await expectTruthfulAnswer(payment, received[at] ?? null, context);
        for (const [at, payment] of payments.entries()) {
          const sale = { path: PATH, payment, received: received[at] ?? null };
          const end = await checkSale(network, service.origin, sale, context);
          const word = `${received[at]?.status ?? 'broken'} ${end ? 'charged' : 'not charged'}`;
          summary[word] = (summary[word] ?? 0) + 1;
        }
        // A claimed proof stays claimed. A proof whose claim got no answer is claimed now, or was before.
        const again = await settleSoundly(proofs);
        expect(
          again.filter((end) => end !== 'success' && end !== 'duplicate_settlement'),
          context,
        ).toEqual([]);
        for (const [at, end] of claims.entries())
          if (end === 'success') expect(again[at], context).toBe('duplicate_settlement');
        for (const end of claims) summary[end] = (summary[end] ?? 0) + 1;
        await expectBalancedLedger(network, service, context);
      }
      const after = await countClaims();
      expect(after.rows - before.rows).toBe(ROUNDS * CLAIMS);
      expect(after.counted).toBe(after.rows);
      process.stdout.write(`${ROUNDS} rounds, seed ${seed}: ${JSON.stringify(summary)}\n`);
    },
    300_000 + ROUNDS * 60_000,
  );

  describe.each(['cut', 'swallow'] as const)('a connection that loses the answer to a COMMIT (%s)', (how) => {
    afterEach(() => proxy.heal());

    /**
     * Tries with something new until the COMMIT with its mark is made and the answer to it is lost. On a busy machine an earlier statement can be too
     * late for its time-out. Then that COMMIT never comes.
     */
    async function untilLost<Made, End>(
      make: () => Promise<Made>,
      markOf: (made: Made) => string | Uint8Array,
      use: (made: Made) => Promise<End>,
    ): Promise<[Made, End]> {
      for (let tries = 1; ; tries++) {
        await untilAllAreReady(service);
        const made = await make();
        const lost = proxy.loseCommit(how, markOf(made)).then(() => true);
        const used = use(made);
        const isLost = await Promise.race([lost, used.then(() => false)]);
        const end = await used;
        if (isLost) return [made, end];
        proxy.heal();
        expect(tries, `never lost: ${JSON.stringify(end)}`).toBeLessThan(TRIES);
      }
    }

    /** A payment, and the answer to it after the COMMIT with this mark. */
    const payUntilLost = (markOf: (payment: Payment) => string | Uint8Array) =>
      untilLost(
        () => (buyers[0] as Buyer).sign(sound(), PATH),
        markOf,
        async (payment) => {
          const answer = await present(troubled(), PATH, payment);
          await expectTruthfulAnswer(payment, answer, how);
          return answer;
        },
      );

    test('of an intent: the outcome is unknown or absent, and the same payment is served and charged once', async () => {
      // The sold reply, which only this transaction contains.
      const [payment, answer] = await payUntilLost(() => '"costUsdc"');
      await untilNothingIsOpen(service);
      expect(answer.status).toBe(503);
      await expectTruthfulAnswer(payment, answer, how);
      await checkSale(network, sound(), { path: PATH, payment, received: answer }, how);
      await expectBalancedLedger(network, service, how);
    });

    test('of a reservation: the outcome is reported as unknown, nothing is charged, and the reservation is released', async () => {
      const [payment, answer] = await payUntilLost(({ authorization }) => authorization.nonce);
      expect([answer.status, problem(answer).code, problem(answer).charged]).toEqual([
        503,
        'ledger_unavailable',
        'unknown',
      ]);
      await untilNothingIsOpen(service);
      expect(await usesOf(network, payment)).toBe(0);
      await checkSale(network, sound(), { path: PATH, payment, received: answer }, how);
    });

    test('of a claim: it is not reported as claimed, and was made once', async () => {
      const [proof, ends] = await untilLost(
        async () => proofNow(),
        ({ paymentHash }) => Buffer.from(paymentHash, 'hex'),
        (one) => settleOver(troubled(), [one], 1),
      );
      expect(ends).toEqual(['replay_store_unavailable']);
      expect(await settleSoundly([proof, proof])).toEqual(['duplicate_settlement', 'duplicate_settlement']);
      const counts =
        'SELECT count(*) = (SELECT claims FROM lightning_facilitator_totals) AS even FROM lightning_claims';
      expect(await service.ask(counts)).toEqual([{ even: true }]);
    });
  });

  test.each(process.env.SLOW ? (['away', 'swallow'] as const) : (['swallow'] as const))(
    'a leader that is cut off (%s) steps down, and the other instance leads',
    async (how) => {
      await untilTheFirstLeads(service);
      const payment = await (buyers[0] as Buyer).sign(sound(), PATH);
      proxy[how]();
      const refused = present(troubled(), PATH, payment);
      await until('the other one leads, and it alone', async () => {
        const standing = await Promise.all(
          service.origins.map(
            async (origin) => JSON.parse((await call(origin, '/readyz')).body).checks.instances.leads,
          ),
        );
        return standing[0] === false && standing[1] === true;
      });
      const { code, charged } = problem(await refused);
      expect([code, charged]).toEqual(['ledger_unavailable', 'unknown']);
      expect(await usesOf(network, payment)).toBe(0);
      expect((await call(troubled(), '/v1/paid')).status).toBe(200);
      const other = await (buyers[1] as Buyer).sign(sound(), PATH);
      expect((await presentUntilServed(sound(), PATH, other)).status).toBe(200);
      proxy.heal();
      await presentUntilServed(troubled(), PATH, payment);
      expect(await usesOf(network, payment)).toBe(1);
      await untilNothingIsOpen(service);
      await expectBalancedLedger(network, service, `seed ${seed}`);
    },
  );
});
