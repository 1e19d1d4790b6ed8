import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../src/embedded/network.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { proofNow, settleOver } from '../support/lightning/settle-calls.ts';
import { type DatabaseProxy, startDatabaseProxy } from '../support/postgres/database-proxy.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';
import { seed, seededRandom } from '../support/random.ts';
import { presentUntilServed, until, usesOf } from '../support/service/crew.ts';
import { type Instances, leaderOf, startInstances } from '../support/service/instances.ts';
import {
  expectEvenBooks,
  judgeSale,
  untilAllAreReady,
  untilNothingIsOpen,
} from '../support/service/instances-judge.ts';
import { type Answer, call } from '../support/service/service.ts';
import { newBuyer, type Payment, present } from '../support/usdc/buyer.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const ROUNDS = Number(process.env.ROUNDS ?? (process.env.SLOW ? 70 : 7));
const [BUYERS, CLAIMS] = [6, 12];
const PATH = '/v1/paid/fees/estimate';
/** Short, so that what is unknown is known to be so soon. */
const TIMES = { LEDGER_STATEMENT_TIMEOUT_MS: '500', LEDGER_CONNECT_TIMEOUT_MS: '1000', SETTLE_WAIT_MS: '8000' };
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
    const env = { ...TIMES, FACILITATOR_PER_MINUTE: '0' };
    service = await startInstances(network, url, 2, env, (at) => (at === 0 ? { LEDGER_URL: proxy.url } : {}));
    buyers = await Promise.all(Array.from({ length: BUYERS }, () => newBuyer(network, 50_000_000n)));
  });
  afterAll(async () => {
    await service?.stop();
    await proxy?.stop();
    await network?.stop();
  });

  /** What may befall the wire; each ends with `heal`. */
  const mischief: Record<string, () => unknown> = {
    'delays by 100 ms': () => proxy.delay(100),
    'is cut': () => proxy.cut(),
    'is half closed': () => proxy.halfClose(),
    'is away': () => proxy.away(),
    'goes deaf': () => proxy.swallow(),
    'loses the answer to a COMMIT and breaks': () => proxy.loseCommit('cut'),
    'loses the answer to a COMMIT and goes deaf': () => proxy.loseCommit('swallow'),
  };
  const names = Object.keys(mischief);
  const [troubled, sound] = [() => service.origins[0] as string, () => service.origins[1] as string];
  const problem = (answer: Answer) => JSON.parse(answer.body) as { code: string; charged: unknown };

  /** What is said to be uncharged was not, and is not later; nothing is said for certain that nobody knows. */
  async function expectTrueWord(payment: Payment, answer: Answer | null, context: string): Promise<void> {
    if (answer === null || answer.status === 200) return;
    const told = `${answer.status} ${answer.body} ${context}`;
    expect([429, 500, 502], told).not.toContain(answer.status);
    const { code, charged } = problem(answer);
    // Whether a ledger that is away has taken this payment before is as unknown as what a chain has not said.
    if (code !== 'ledger_unavailable') expect(charged, told).toBe(code === 'settlement_unknown' ? 'unknown' : false);
    if (charged === false) expect(await usesOf(network, payment), told).toBe(0);
  }

  test(
    `${ROUNDS} rounds: nobody is charged twice or told wrong, no acknowledged claim is lost`,
    async () => {
      const told: Record<string, number> = {};
      for (let round = 0; round < ROUNDS; round++) {
        await untilAllAreReady(service);
        const what = names[round % names.length] as string;
        const context = `the wire ${what}, seed ${seed}, round ${round} (run again with SEED=${seed})`;
        const payments = await Promise.all(buyers.map((buyer) => buyer.sign(sound(), PATH)));
        const spreadMs = 200 + random() * 800;
        const answers = payments.map(async (payment, at) => {
          await delay(random() * spreadMs);
          return present(at % 3 === 2 ? sound() : troubled(), PATH, payment).catch(() => null);
        });
        const proofs = Array.from({ length: CLAIMS }, proofNow);
        const claiming = settleOver(troubled(), proofs, 3);
        await delay(random() * spreadMs);
        mischief[what]?.();
        const healing = delay(random() * 3000).then(() => proxy.heal());
        const [heard, claims] = await Promise.all([Promise.all(answers), claiming, healing]);

        await untilAllAreReady(service);
        await untilNothingIsOpen(service);
        for (const [at, payment] of payments.entries()) await expectTrueWord(payment, heard[at] ?? null, context);
        for (const [at, payment] of payments.entries()) {
          const sale = { path: PATH, payment, heard: heard[at] ?? null };
          const end = await judgeSale(network, service.origin, sale, context);
          const word = `${heard[at]?.status ?? 'broken'} ${end ? 'charged' : 'not charged'}`;
          told[word] = (told[word] ?? 0) + 1;
        }
        // A proof that was claimed is spent; one whose claim nobody heard of is spent now or was.
        const again = await settleOver(sound(), proofs, 3);
        expect(
          again.filter((end) => end !== 'success' && end !== 'duplicate_settlement'),
          context,
        ).toEqual([]);
        for (const [at, end] of claims.entries())
          if (end === 'success') expect(again[at], context).toBe('duplicate_settlement');
        for (const end of claims) told[end] = (told[end] ?? 0) + 1;
        await expectEvenBooks(network, service, context);
      }
      const [books] = await service.ask<{ rows: string; counted: string }>(
        'SELECT (SELECT count(*) FROM lightning_claims) AS rows, (SELECT claims FROM lightning_facilitator_totals) AS counted',
      );
      expect(Number(books?.rows)).toBe(ROUNDS * CLAIMS);
      expect(books?.counted).toBe(books?.rows);
      process.stdout.write(`${ROUNDS} rounds, seed ${seed}: ${JSON.stringify(told)}\n`);
    },
    60_000 + ROUNDS * 40_000,
  );

  describe.each(['cut', 'swallow'] as const)('that loses the answer to a COMMIT (%s)', (how) => {
    afterEach(() => proxy.heal());

    test('of an intent: the outcome is unknown or none, and the same payment is served and charged once', async () => {
      await untilAllAreReady(service);
      const payment = await (buyers[0] as Buyer).sign(sound(), PATH);
      // What is sold, which only this transaction carries.
      const lost = proxy.loseCommit(how, '"costUsdc"');
      const [answer] = await Promise.all([present(troubled(), PATH, payment), lost]);
      await untilNothingIsOpen(service);
      expect(answer.status).toBe(503);
      await expectTrueWord(payment, answer, how);
      await judgeSale(network, sound(), { path: PATH, payment, heard: answer }, how);
      await expectEvenBooks(network, service, how);
    });

    test('of a reservation: nothing is charged, and the reservation is given back', async () => {
      await untilAllAreReady(service);
      const payment = await (buyers[0] as Buyer).sign(sound(), PATH);
      const lost = proxy.loseCommit(how, payment.authorization.nonce);
      const [answer] = await Promise.all([present(troubled(), PATH, payment), lost]);
      expect([answer.status, problem(answer).code, problem(answer).charged]).toEqual([
        503,
        'ledger_unavailable',
        false,
      ]);
      await untilNothingIsOpen(service);
      expect(await usesOf(network, payment)).toBe(0);
      await judgeSale(network, sound(), { path: PATH, payment, heard: answer }, how);
    });

    test('of a claim: it is not told as claimed, and was made once', async () => {
      await untilAllAreReady(service);
      const proof = proofNow();
      // In hex, as the values of an array travel.
      const lost = proxy.loseCommit(how, proof.paymentHash);
      const [ends] = await Promise.all([settleOver(troubled(), [proof], 1), lost]);
      expect(ends).toEqual(['replay_store_unavailable']);
      expect(await settleOver(sound(), [proof, proof], 1)).toEqual(['duplicate_settlement', 'duplicate_settlement']);
      const counts =
        'SELECT count(*) = (SELECT claims FROM lightning_facilitator_totals) AS even FROM lightning_claims';
      expect(await service.ask(counts)).toEqual([{ even: true }]);
    });
  });

  test.each(process.env.SLOW ? (['away', 'swallow'] as const) : (['swallow'] as const))(
    'a leader that is cut off (%s) leads no more, and the other one does',
    async (how) => {
      await untilAllAreReady(service);
      // The lease goes back to the one whose wire is in the test's hands.
      if ((await leaderOf(service)) === 1) {
        await service.instances[1]?.stop();
        await until('the first one leads', async () => (await leaderOf(service)) === 0);
        await service.instances[1]?.start();
      }
      expect(await leaderOf(service)).toBe(0);
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
      await expectEvenBooks(network, service, `seed ${seed}`);
    },
  );
});
