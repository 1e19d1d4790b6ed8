import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { RailFixture, RailPayment } from '../../support/rails/rail-fixture.ts';
import type { Request, Stage } from '../../support/rails/rail-stage.ts';
import { seed, seededRandom } from '../../support/random.ts';

/** The number of kills at random moments. One more test kills the service at three named steps. */
const KILLS = process.env.SLOW ? 25 : 0;
const BUYERS = 4;
/** Longer than a presentation takes. So a kill comes before, during or after it. */
const LONGEST_MS = 600;
/** A process starts in a second, or in half a minute on a busy machine. */
const TEST_MS = 90_000;

interface Purchase {
  readonly request: Request;
  readonly payment: RailPayment;
  /** The body of the answer that the buyer received; null without one. */
  readonly heard: string | null;
}

/** Tests promise 10 with real processes that are killed. */
export function promisesOfCrashing(fixture: RailFixture, stage: Stage): void {
  const order = async () => {
    const request = stage.request();
    return { request, payment: await stage.pay(request) };
  };
  const present = ({ request, payment }: Pick<Purchase, 'request' | 'payment'>) =>
    stage.present(request, payment).catch(() => null);

  /** Checks that the same payment gets one answer and is taken once. */
  async function expectSold({ request, payment, heard }: Purchase, context: string): Promise<void> {
    const { body } = await stage.buy(request, payment);
    if (heard !== null) expect(body, context).toBe(heard);
    expect((await stage.present(request, payment)).body, context).toBe(body);
    expect(await payment.lost(), context).toBe(payment.price);
  }

  test(
    '10: a kill while the handler runs, during the settlement or after the answer loses neither the money nor the answer',
    async () => {
      const [served, settling, running] = [await order(), await order(), await order()];
      const { body } = await stage.buy(served.request, served.payment);
      const runs = stage.source.runs(settling.request.tag);
      const handler = stage.source.hold(running.request.tag);
      const broken = [present(running)];
      await handler.arrived;
      const hanging = await stage.hang();
      // The buyer of an escrowed call has its answer by now, and the seller's claim hangs.
      const early = fixture.kind === 'escrowed' ? (await stage.buy(settling.request, settling.payment)).body : null;
      if (early === null) broken.push(present(settling));
      await hanging.arrived(settling.payment);
      await stage.kill();
      for (const answer of await Promise.all(broken)) expect(answer?.status ?? 'broken').not.toBe(200);
      handler.release();
      await hanging.heal();
      await stage.start();
      await expectSold({ ...served, heard: body }, 'after the answer');
      await expectSold({ ...settling, heard: early }, 'while it was settled');
      // The reply was stored before the settlement. So the handler does not run again.
      expect(stage.source.runs(settling.request.tag)).toBe(runs + 1);
      await expectSold({ ...running, heard: null }, 'while the handler ran');
    },
    TEST_MS,
  );

  test.runIf(KILLS > 0)(
    `10: ${KILLS} kills at random moments lose neither the money nor the answer`,
    async () => {
      const random = seededRandom(`rail ${fixture.name}`);
      for (let round = 0; round < KILLS; round++) {
        const context = `round ${round}, seed ${seed}`;
        const orders = await Promise.all(Array.from({ length: BUYERS }, order));
        const answers = orders.map(present);
        await delay(random() * LONGEST_MS);
        await stage.kill();
        const heard = await Promise.all(answers);
        await stage.start();
        const purchases = orders.map((one, at) => ({
          ...one,
          heard: heard[at]?.status === 200 ? heard[at].body : null,
        }));
        await Promise.all(purchases.map((purchase) => expectSold(purchase, context)));
      }
    },
    KILLS * 30_000,
  );
}
