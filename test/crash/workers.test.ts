import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { childrenOf } from '../../scripts/lib/child-processes.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../src/embedded/network.ts';
import { seed, seededRandom } from '../support/random.ts';
import { createProcess } from '../support/service/process.ts';
import {
  isAlive,
  presentUntilServed,
  stateOf,
  sums,
  until,
  untilNothingIsOpen,
  usesOf,
} from '../support/service/workers.ts';
import { newBuyer, type Payment, present } from '../support/usdc/buyer.ts';

/** In the quick lane test/conformance/instances/workers.test.ts kills the primary at a random moment. */
const ROUNDS = Number(process.env.KILLS ?? (process.env.SLOW ? 50 : 2));
const BUYERS = 8;
const WORKERS = 2;
const PATH = '/v1/paid/fees/estimate';

let network: EmbeddedNetwork;
let folder: string;
let file: string;
let service: Awaited<ReturnType<typeof createProcess>>;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  folder = mkdtempSync(join(tmpdir(), 'percall-workers-'));
  file = join(folder, 'ledger.db');
  service = await createProcess(network, folder, { WORKERS: String(WORKERS) });
  await service.start();
});
afterAll(async () => {
  await service.kill();
  await network.stop();
  rmSync(folder, { recursive: true, force: true });
});

const random = seededRandom('workers');

/** Kills one API process, both, or the primary, which is started again: each in its turn. Returns the name of what it killed. */
async function kill(round: number): Promise<string> {
  const workers = childrenOf(service.pid());
  if (round % 3 === 2) {
    await service.kill();
    await until('no API process outlives the primary', () => !workers.some(isAlive));
    await service.start();
    return 'primary';
  }
  const victims = round % 3 === 0 ? workers.slice(0, 1) : workers;
  for (const pid of victims) {
    process.kill(pid, 'SIGKILL');
    await delay(random() * 100);
  }
  return victims.length === 1 ? 'one of two' : 'both';
}

/** Whether the payment was already on the chain before the buyer came back. */
async function checkPayment(payment: Payment, received: string | null, context: string): Promise<boolean> {
  const before = await usesOf(network, payment);
  expect(before, context).toBeLessThanOrEqual(1);
  if (received !== null) expect(before, context).toBe(1);
  const again = await presentUntilServed(service.origin, PATH, payment);
  expect(await usesOf(network, payment), context).toBe(1);
  expect(stateOf(file, payment), context).toBe('settled');
  if (received !== null) expect(again.body, context).toBe(received);
  return before === 1;
}

test(
  `${ROUNDS} times processes are killed during paid calls: each call is settled and its answer still available, or not charged`,
  async () => {
    const summary: Record<string, number> = {};
    const buyers = await Promise.all(Array.from({ length: BUYERS }, () => newBuyer(network, 10_000_000n)));
    for (let round = 0; round < ROUNDS; round++) {
      await until('all workers run', () => childrenOf(service.pid()).length === WORKERS);
      await presentUntilServed(service.origin, PATH, await buyers[0]!.sign(service.origin, PATH));
      const payments = await Promise.all(buyers.map((buyer) => buyer.sign(service.origin, PATH)));
      const spreadMs = random() * 600;
      const answers = payments.map(async (payment) => {
        await delay(random() * spreadMs);
        const answer = await present(service.origin, PATH, payment).catch(() => null);
        return answer?.status === 200 ? answer.body : null;
      });
      await delay(random() * 800);
      const what = await kill(round);
      const context = `${what} killed, seed ${seed}, round ${round} (run again with SEED=${seed})`;
      const received = await Promise.all(answers);
      const ends = await Promise.all(
        payments.map((payment, at) => checkPayment(payment, received[at] ?? null, context)),
      );
      await untilNothingIsOpen(file);
      const { chain, ledger } = await sums(network, file);
      expect(chain, context).toBe(ledger);
      for (const word of [what, ...ends.map((wasCharged) => (wasCharged ? 'charged before' : 'not charged'))])
        summary[word] = (summary[word] ?? 0) + 1;
    }
    process.stdout.write(`${ROUNDS} rounds, seed ${seed}: ${JSON.stringify(summary)}\n`);
  },
  300_000 + ROUNDS * 60_000,
);
