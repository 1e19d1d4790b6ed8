import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { type Postgres, startPostgres } from '../../scripts/lib/ledger/postgres.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { seed, seededRandom } from '../support/random.ts';
import { type Instances, leaderOf, startInstances, untilOneLeads } from '../support/service/instances.ts';
import {
  checkSale,
  expectBalancedLedger,
  untilAllAreReady,
  untilNothingIsOpen,
} from '../support/service/instances-checks.ts';
import { isAlive, presentUntilServed, until } from '../support/service/workers.ts';
import { newBuyer, type Payment, present } from '../support/usdc/buyer.ts';

/** How many instances. When the leader of three dies, one lives that takes over and one that follows it. */
const COUNTS = process.env.SLOW ? [2, 4] : [3];
/**
 * For each number of instances. The quick lane has the first three kinds of kill once, and leaves out the leader's at any moment: the second kind and
 * the leader that never comes back are such.
 */
const ROUNDS = process.env.KILLS ? Number(process.env.KILLS) / COUNTS.length : process.env.SLOW ? 100 : 3;
const BUYERS = 8;
const PATH = '/v1/paid/fees/estimate';
/** How long a batch may take to appear. */
const BATCH_MS = 60_000;

type Buyer = Awaited<ReturnType<typeof newBuyer>>;
const random = seededRandom('instances');
const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;

describePostgres('instances that are killed', () => {
  let network: EmbeddedNetwork;
  let postgres: Postgres;
  let buyers: Buyer[];
  beforeAll(async () => {
    [network, postgres] = await Promise.all([startEmbeddedNetwork(), startPostgres()]);
    await postgres.createDatabase('ledger');
    buyers = await Promise.all(Array.from({ length: BUYERS }, () => newBuyer(network, 50_000_000n)));
  });
  afterAll(async () => {
    await postgres?.stop();
    await network?.stop();
  });

  describe.each(COUNTS)('%i of them', (count) => {
    let service: Instances;
    beforeAll(async () => {
      service = await startInstances(network, postgres.url('ledger'), count);
    });
    afterAll(() => service?.stop());
    beforeEach(() => useLiving(2));

    /** Two tests leave an instance dead. Starts what is missing, and waits until all that live are ready. */
    async function useLiving(least: number): Promise<void> {
      const living = () => service.instances.filter((instance) => isAlive(instance.pid()));
      for (const instance of service.instances)
        if (!isAlive(instance.pid()) && living().length < least) await instance.start();
      await untilAllAreReady({ origins: living().map(({ origin }) => origin) });
    }

    /** Each function kills one part during paid calls, and returns a function that starts it again. */
    const kills: Record<string, () => Promise<() => Promise<void>>> = {
      'any instance': async () => {
        await delay(random() * 800);
        const victim = pick(service.instances);
        await victim.kill();
        return victim.start;
      },
      'the one that leads, within a batch': async () => {
        const batch = "SELECT id FROM usdc_payments WHERE state = 'settling' AND transaction_hash IS NOT NULL";
        const at = await leaderOf(service);
        // Mining stops, so sent transactions stay in flight.
        await network.pauseMining();
        const late = AbortSignal.timeout(BATCH_MS);
        while (!late.aborted && (await service.ask(batch)).length < 2) await delay(5);
        expect(late.aborted, `no batch came, seed ${seed}`).toBe(false);
        const leader = service.instances[at] ?? pick(service.instances);
        await leader.kill();
        return async () => {
          if (random() < 0.5) await network.resumeMining();
          await leader.start();
          await network.resumeMining();
        };
      },
      PostgreSQL: async () => {
        await delay(random() * 800);
        await postgres.kill();
        await delay(random() * 1500);
        return postgres.restart;
      },
      'the one that leads': async () => {
        await delay(random() * 800);
        const leader = service.instances[await leaderOf(service)] ?? pick(service.instances);
        await leader.kill();
        return leader.start;
      },
    };

    /** A killed instance that was started again has marked its last run as ended. */
    async function expectLiving(): Promise<void> {
      const alive = await service.ask<{ n: string }>('SELECT count(*) AS n FROM instances WHERE seen_at > 0');
      expect(alive).toEqual([{ n: String(count) }]);
    }

    function presentAll(payments: readonly Payment[]) {
      const spreadMs = random() * 600;
      return payments.map(async (payment) => {
        await delay(random() * spreadMs);
        return present(service.origin, PATH, payment).catch(() => null);
      });
    }

    test(
      `${ROUNDS} times: no payment is charged twice, every charged payment is answered, the ledger agrees with the chain, and a restarted instance marks its last run as ended`,
      async () => {
        const summary: Record<string, number> = {};
        const names = Object.keys(kills);
        await useLiving(count);
        for (let round = 0; round < ROUNDS; round++) {
          await untilAllAreReady(service);
          const what = names[round % names.length] as string;
          const context = `${what} of ${count}, seed ${seed}, round ${round} (run again with SEED=${seed})`;
          const payments = await Promise.all(buyers.map((buyer) => buyer.sign(service.origin, PATH)));
          const answers = presentAll(payments);
          const startAgain = await kills[what]?.();
          await startAgain?.();
          if (what !== 'PostgreSQL') await expectLiving();
          const received = await Promise.all(answers);
          const ends = await Promise.all(
            payments.map((payment, at) =>
              checkSale(network, service.origin, { path: PATH, payment, received: received[at] ?? null }, context),
            ),
          );
          await untilNothingIsOpen(service);
          await expectBalancedLedger(network, service, context);
          for (const word of [what, ...ends.map((wasCharged) => (wasCharged ? 'charged before' : 'not charged'))])
            summary[word] = (summary[word] ?? 0) + 1;
        }
        process.stdout.write(`${ROUNDS} rounds with ${count}, seed ${seed}: ${JSON.stringify(summary)}\n`);
      },
      300_000 + ROUNDS * 60_000,
    );

    test('a stopping instance releases the lease first', async () => {
      expect(await service.instances[await untilOneLeads(service)]?.stop()).toBe(0);
      const free = 'SELECT id FROM instance_lease WHERE until = 0 OR holder IN (SELECT boot_id FROM instances)';
      expect(await service.ask(free)).toHaveLength(1);
    });

    test('when a killed instance never comes back, another finishes its payments', async () => {
      const at = await untilOneLeads(service);
      await network.pauseMining();
      const payments = await Promise.all(buyers.map((buyer) => buyer.sign(service.origin, PATH)));
      const answers = presentAll(payments);
      await until('it holds some', async () => {
        const open = "SELECT id FROM usdc_payments WHERE state IN ('reserved', 'settling')";
        return (await service.ask(open)).length >= BUYERS / 2;
      });
      await service.instances[at]?.kill();
      await network.resumeMining();
      const context = `never back, ${count}, seed ${seed}`;
      const received = await Promise.all(answers);
      await Promise.all(
        payments.map((payment, of) =>
          checkSale(network, service.origin, { path: PATH, payment, received: received[of] ?? null }, context),
        ),
      );
      await untilNothingIsOpen(service);
      await expectBalancedLedger(network, service, context);
      await presentUntilServed(service.origin, PATH, await (buyers[0] as Buyer).sign(service.origin, PATH));
    });
  });
});
