import { expect, test } from 'vitest';
import { type OpenSettling, openSettling } from '../../../support/payment/settling-world.ts';

const PATIENCE_MS = 60_000;

/** Which of these rows are still there. */
async function leftOf({ ledger }: OpenSettling, rows: readonly { readonly id: string }[]): Promise<unknown[]> {
  const found = await Promise.all(rows.map(({ id }) => ledger.get(id)));
  return rows.filter((_, index) => found[index] !== null);
}

test('a process that is alone on the ledger takes over all rows of dead processes before it sells', async () => {
  const world = openSettling();
  const { settling, reserved, warned, done } = world;
  const [own, other] = [await reserved('own'), await reserved('other', 'other')];
  world.script.loads = leftOf(world, [own, other]);
  await settling.start(() => {});
  expect(await leftOf(world, [own, other])).toEqual([own]);
  expect([warned, done]).toEqual([[{ released: 1, unknown: 0 }], ['loads']]);
  await settling.start(() => {});
  expect(warned).toHaveLength(1);
});

test('it loads its settlers after that, and not when the ledger is silent', async () => {
  const { settling, done } = openSettling({ broken: { recover: () => Promise.reject(new Error('silent')) } });
  await expect(settling.start(() => {})).rejects.toThrow('silent');
  expect(done).toEqual([]);
});

test('beside other processes, rows of dead ones are taken over at once, rows of unlisted ones after a while, rows of living ones never', async () => {
  const world = openSettling({ leads: 'in turn', living: () => ['alive'], takeOverAfterMs: PATIENCE_MS });
  const { settling, reserved, clock } = world;
  const rows = await Promise.all(['alive', 'dead', 'unheard'].map((by) => reserved(by, by)));
  const [alive, , unheard] = rows;
  await settling.takeOver();
  expect(await leftOf(world, rows)).toEqual(rows);
  await settling.takeOver(['dead']);
  expect(await leftOf(world, rows)).toEqual([alive, unheard]);
  await clock.advance(PATIENCE_MS);
  await settling.takeOver();
  expect(await leftOf(world, rows)).toEqual([alive]);
});

test('every take-over is logged with the number of released and of unknown rows', async () => {
  const world = openSettling();
  const rows = [await world.reserved('forgotten', 'one'), await world.stored('sent', { by: 'other', sent: true })];
  await world.settling.takeOver();
  expect(await leftOf(world, rows)).toEqual(rows.slice(1));
  expect(world.warned).toEqual([{ released: 1, unknown: 1 }]);
});

test('an instance takes over what dead ones left also when it has stepped down since it was asked', async () => {
  const world = openSettling({ leads: 'in turn', living: () => ['this'], takeOverAfterMs: PATIENCE_MS });
  await world.settling.start(() => {});
  const leader = world.leader();
  await leader.lead(1);
  leader.stepDown();
  const rows = [await world.reserved('a', 'dead')];
  await leader.takeOver(['dead']);
  expect(await leftOf(world, rows)).toEqual([]);
  await world.settling.stop();
});

test('a round takes over the rows of dead processes beside other processes only', async () => {
  const alone = openSettling();
  const leading = openSettling({ leads: 'in turn' });
  await leading.settling.start(() => {});
  await leading.leader().lead(1);
  for (const world of [alone, leading]) {
    const rows = [await world.reserved('a', 'dead')];
    await world.settling.reconcile(() => true);
    expect(await leftOf(world, rows)).toEqual(world === alone ? rows : []);
  }
  await leading.settling.stop();
});
