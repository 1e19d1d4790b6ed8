import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Postgres, startPostgres } from '../../scripts/lib/ledger/postgres.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { openPostgresStores } from '../../src/store/open-postgres.ts';
import type { LedgerStores } from '../../src/store/ports/stores.ts';
import { describePostgres, POSTGRES_LIMITS } from '../support/ledger/ledger-adapters.ts';
import { reservation } from '../support/ledger/ledger-rows.ts';
import { accountedOf, NOON } from '../support/lightning/lightning-rows.ts';
import { seed, seededRandom } from '../support/random.ts';
import { until } from '../support/service/workers.ts';

const KILLS = process.env.SLOW ? 50 : 3;
const WRITES = 400;

describePostgres('PostgreSQL that dies under the ledger', () => {
  let server: Postgres;
  let stores: LedgerStores;
  beforeAll(async () => {
    server = await startPostgres();
    await server.createDatabase('ledger');
    stores = await openPostgresStores({ url: server.url('ledger'), ...POSTGRES_LIMITS, clock: systemClock });
  });
  afterAll(async () => {
    await stores?.close();
    await server?.stop();
  });

  test(
    `${KILLS} times kill -9 in the middle of writes: none that was acknowledged is lost, none is made twice, and the stores go on (SEED=${seed})`,
    async () => {
      const random = seededRandom('postgres-crash');
      const sum = { acknowledged: 0, unheard: 0, notDone: 0 };
      for (let round = 0; round < KILLS; round++) {
        const context = `SEED=${seed}, round ${round}`;
        const names = Array.from({ length: WRITES }, (_, at) => `${round}-${at}`);
        const write = async (name: string, at: number) => {
          await new Promise((next) => setTimeout(next, random() * 60));
          return at % 2 === 0
            ? stores.payments.reserve(reservation(name, name), 0, null)
            : stores.lightning.claim(
                accountedOf(name, { day: '2026-03-03', clientCap: 1e6, dailyCap: 1e6 }, { claimedAt: NOON }),
              );
        };
        // The kill comes after a number of answers, not after a time: a busy machine has answered none, or all, by any time.
        let left = 1 + Math.floor(random() * (WRITES / 4));
        const enough = Promise.withResolvers<void>();
        const note = <T>(end: T): T => {
          left -= 1;
          if (left === 0) enough.resolve();
          return end;
        };
        const ends = Promise.all(
          names.map((name, at) =>
            write(name, at)
              .then(note)
              .catch(() => 'unheard' as const),
          ),
        );
        await enough.promise;
        await server.kill();
        const first = await ends;
        await server.restart();
        await untilReady();
        // All callers try again, with and without an answer.
        const second = await Promise.all(names.map(write));
        for (const [at, name] of names.entries()) {
          const won = (end: unknown) => end === true || end === 'claimed';
          if (first[at] === 'unheard') sum[won(second[at]) ? 'notDone' : 'unheard']++;
          else {
            expect([won(first[at]), won(second[at])], `${context}, ${name}`).toEqual([true, false]);
            sum.acknowledged++;
          }
        }
      }
      const all = (WRITES / 2) * KILLS;
      expect((await stores.payments.countByState()).reserved).toBe(all);
      expect(await stores.lightning.facilitatorCounts('2026-03-03', null)).toMatchObject({ total: all, today: all });
      // The kills must have met writes on their way, or this test has shown nothing.
      expect(sum.acknowledged).toBeGreaterThan(0);
      expect(sum.unheard + sum.notDone).toBeGreaterThan(0);
      process.stdout.write(`${KILLS} kills of PostgreSQL, seed ${seed}: ${JSON.stringify(sum)}\n`);
    },
    300_000 + KILLS * 30_000,
  );

  function untilReady(): Promise<void> {
    const works = () =>
      Promise.all(Array.from({ length: 8 }, () => stores.ping())).then(
        () => true,
        () => false,
      );
    return until('the stores are back', works, 20);
  }
});
