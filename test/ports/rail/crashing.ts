import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { RailPayment } from '../../support/rails/rail-fixture.ts';
import type { Request, Shop, Stage } from '../../support/rails/rail-stage.ts';
import { seed, seededRandom } from '../../support/random.ts';

/** The number of kills at random moments. One more test kills the service at three named steps. */
const KILLS = process.env.SLOW ? 25 : 0;
/** Of each rail. */
const BUYERS = 4;
/** Longer than a presentation takes. So a kill comes before, during or after it. */
const LONGEST_MS = 600;

interface Purchase {
  readonly request: Request;
  readonly payment: RailPayment;
  /** The body of the answer that the buyer received; null without one. */
  readonly heard: string | null;
}
type Order = Pick<Purchase, 'request' | 'payment'>;

const each = <From, To>(all: readonly From[], work: (one: From) => Promise<To>): Promise<To[]> =>
  Promise.all(all.map(work));

async function order(stage: Stage): Promise<Order> {
  const request = stage.request();
  return { request, payment: await stage.pay(request) };
}
const present = (stage: Stage, { request, payment }: Order) =>
  stage.presentUntilTaken(request, payment).catch(() => null);

/** Checks that the same payment gets one answer and is taken once. */
async function expectSold(stage: Stage, { request, payment, heard }: Purchase, context: string): Promise<void> {
  const { body } = await stage.buy(request, payment);
  if (heard !== null) expect(body, context).toBe(heard);
  expect((await stage.present(request, payment)).body, context).toBe(body);
  expect(await payment.lost(), context).toBe(payment.price);
}

/** Three calls of a rail's buyers: one that is answered before the kill, one that will be settled at that time, one whose handler will run. */
async function openCalls(stage: Stage) {
  const [served, settling, running] = [await order(stage), await order(stage), await order(stage)];
  const { body } = await stage.buy(served.request, served.payment);
  const runs = stage.source.runs(settling.request.tag);
  const handler = stage.source.hold(running.request.tag);
  const first = present(stage, running);
  await handler.arrivedFrom(first);
  return { stage, served: { ...served, heard: body }, settling, running, runs, handler, broken: [first] };
}

/** Tests promise 10 with a real process that is killed while it sells over all its rails. */
export function promisesOfCrashing(shop: Shop): void {
  test('10: a kill while the handler runs, during the settlement or after the answer loses neither the money nor the answer of any rail', async () => {
    const calls = await each(shop.stages, openCalls);
    // All deposits and payments are made by now. Some rails stop their settlements by stopping the chain.
    const hanging = await each(shop.stages, (stage) => stage.hang());
    const early = await each(calls, async ({ stage, settling, broken }) => {
      // The buyer of an escrowed call has its answer by now, and the seller's claim hangs.
      if (stage.fixture.kind === 'escrowed') return (await stage.buy(settling.request, settling.payment)).body;
      broken.push(present(stage, settling));
      return null;
    });
    await Promise.all(
      hanging.map(({ arrived }, at) => arrived((calls[at] as (typeof calls)[number]).settling.payment)),
    );
    await shop.kill();
    for (const answer of await Promise.all(calls.flatMap(({ broken }) => broken)))
      expect(answer?.status ?? 'broken').not.toBe(200);
    for (const { handler } of calls) handler.release();
    await each(hanging, ({ heal }) => heal());
    await shop.start();
    await each([...calls.entries()], async ([at, { stage, served, settling, running, runs }]) => {
      const of = (what: string) => `${stage.fixture.name}, ${what}`;
      await expectSold(stage, served, of('after the answer'));
      await expectSold(stage, { ...settling, heard: early[at] ?? null }, of('while it was settled'));
      // The reply was stored before the settlement. So the handler does not run again.
      expect(stage.source.runs(settling.request.tag), of('while it was settled')).toBe(runs + 1);
      await expectSold(stage, { ...running, heard: null }, of('while the handler ran'));
    });
  });

  test.runIf(KILLS > 0)(
    `10: ${KILLS} kills at random moments lose neither the money nor the answer of any rail`,
    async () => {
      const random = seededRandom(`rail ${shop.stages.map(({ fixture }) => fixture.name)}`);
      const buyers = shop.stages.flatMap((stage) => Array<Stage>(BUYERS).fill(stage));
      for (let round = 0; round < KILLS; round++) {
        const orders = await each(buyers, async (stage) => ({ stage, ...(await order(stage)) }));
        const answers = orders.map((one) => present(one.stage, one));
        await delay(random() * LONGEST_MS);
        await shop.kill();
        const heard = await Promise.all(answers);
        await shop.start();
        await each([...orders.entries()], ([at, { stage, ...one }]) => {
          const answer = heard[at];
          const context = `${stage.fixture.name}, round ${round}, seed ${seed}`;
          return expectSold(stage, { ...one, heard: answer?.status === 200 ? answer.body : null }, context);
        });
      }
    },
    300_000 + KILLS * 30_000,
  );
}
