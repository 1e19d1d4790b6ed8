import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { childrenOf } from '../../../scripts/lib/child-processes.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../src/embedded/network.ts';
import { ask } from '../../support/ledger/kill-ledger.ts';
import { payFor, presentProof } from '../../support/lightning/lightning-buyer.ts';
import { proofNow, settleOver } from '../../support/lightning/settle-calls.ts';
import { seed, seededRandom } from '../../support/random.ts';
import { type Figures, metricOf, readFigures } from '../../support/service/metric.ts';
import { createProcess } from '../../support/service/process.ts';
import { type Answer, call, startService } from '../../support/service/service.ts';
import {
  isAlive,
  presentUntilServed,
  servedBy,
  stateOf,
  sums,
  until,
  untilNothingIsOpen,
  usesOf,
} from '../../support/service/workers.ts';
import { newBuyer, type Payment, present } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';
const WORKERS = 2;
/** Settle calls per minute and client: more than the race for one proof needs. */
const PER_MINUTE = 150;
const random = seededRandom('workers');
const IS_OPEN = "FROM usdc_payments WHERE state IN ('reserved', 'settling')";
const UNDER_WAY = `SELECT count(*) ${IS_OPEN}`;
const BUSY_PROCESSES = `SELECT count(DISTINCT boot_id) ${IS_OPEN}`;

let network: EmbeddedNetwork;
let folder: string;
let file: string;
let service: Awaited<ReturnType<typeof createProcess>>;
let buyer: Awaited<ReturnType<typeof newBuyer>>;
/** A primary and its workers, over a directory of their own. */
beforeAll(async () => {
  network = await startEmbeddedNetwork({ lightning: true });
  buyer = await newBuyer(network, 50_000_000n);
  folder = mkdtempSync(join(tmpdir(), 'percall-workers-'));
  file = join(folder, 'ledger.db');
  const env = { WORKERS: String(WORKERS), FACILITATOR_PER_MINUTE: String(PER_MINUTE), PAYER_MAX_OPEN: '0' };
  service = await createProcess(network, folder, { REDELIVERY_MAX: '100', ...env });
});
beforeEach(async () => {
  // One test leaves it stopped.
  if (!isAlive(service.pid())) await service.start();
  await until('every API process serves', allServe);
});
afterAll(async () => {
  const left = isAlive(service.pid()) ? workers() : [];
  await service.kill();
  // API processes write until they notice that the primary is gone.
  await until('no API process is left', () => !left.some(isAlive));
  await network.stop();
  rmSync(folder, { recursive: true, force: true });
});

const sign = () => buyer.sign(service.origin, PATH);
const signMany = (count: number) => Promise.all(Array.from({ length: count }, sign));
const show = (payment: Payment) => present(service.origin, PATH, payment);
const kindsOf = (answers: readonly Answer[], pick: (answer: Answer) => unknown) => [...new Set(answers.map(pick))];
const workers = () => childrenOf(service.pid());
const metric = (name: string) => metricOf(service.origin, name);
const allServe = async () => (await metric('api_processes')) === WORKERS;

/** Two counts of the settled payments, from a reading with the figures of every process. Those of a process that answers late are missing in one. */
async function settledByFigures(): Promise<number[]> {
  const names = ['moves_total{rail="usdc",state="settled"}', 'settlement_duration_seconds_count{outcome="settled"}'];
  // The sum of the files that each process may open shows how many are in a reading.
  const limits = readFileSync(`/proc/${service.pid()}/limits`, 'utf8');
  const ofAll = (1 + WORKERS) * Number(/^Max open files +(\d+)/m.exec(limits)?.[1]);
  let read: Figures = () => null;
  await until('the figures of all processes are read', async () => {
    read = await readFigures(service.origin);
    return read('process_max_fds') === ofAll;
  });
  return names.map((name) => read(`payment_${name}`) ?? 0);
}

/** Calls until another API process than the given one has answered. */
async function answerOfAnother(than: Answer, make: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 0; tries < 40; tries++) {
    const answer = await make();
    if (servedBy(answer) !== servedBy(than)) return answer;
  }
  throw new Error('the same API process answers every call');
}

/** Checks that every payment was charged once and is answered, or was not charged and can still buy. Returns how many were charged. */
async function checkPayments(payments: readonly Payment[], received: readonly (Answer | null)[]): Promise<number> {
  const charged = await Promise.all(payments.map((payment) => usesOf(network, payment)));
  payments.forEach((_, at) => {
    expect(charged[at]).toBeLessThanOrEqual(1);
    if (received[at]?.status === 200) expect(charged[at]).toBe(1);
  });
  const again = await Promise.all(payments.map((payment) => presentUntilServed(service.origin, PATH, payment)));
  await untilNothingIsOpen(file);
  for (const [at, payment] of payments.entries()) {
    expect(await usesOf(network, payment)).toBe(1);
    expect(stateOf(file, payment)).toBe('settled');
    if (received[at]?.status === 200) expect(again[at]?.body).toBe(received[at]?.body);
  }
  return charged.filter((uses) => uses === 1).length;
}

describe('two API processes', () => {
  test('sell and redeliver what the other one sold, and the chain agrees with the ledger', async () => {
    const answers = [];
    for (let round = 0; round < 4; round++) {
      const payment = await sign();
      const sold = await show(payment);
      expect(sold.status).toBe(200);
      const again = await answerOfAnother(sold, () => show(payment));
      expect([again.status, again.body]).toEqual([200, sold.body]);
      expect(again.headers['payment-response']).toBe(sold.headers['payment-response']);
      expect(await usesOf(network, payment)).toBe(1);
      answers.push(sold, again);
    }
    expect(kindsOf(answers, servedBy)).toHaveLength(WORKERS);
    const { chain, ledger } = await sums(network, file);
    expect(chain).toBe(ledger);
  });

  test('charge once and answer once for 128 simultaneous presentations of one payment over both', async () => {
    const payment = await sign();
    const answers = await Promise.all(Array.from({ length: 128 }, () => show(payment)));
    expect(kindsOf(answers, servedBy)).toHaveLength(WORKERS);
    const served = answers.filter(({ status }) => status === 200);
    expect(served.length).toBeGreaterThan(0);
    expect(kindsOf(served, ({ body }) => body)).toHaveLength(1);
    // 402 for a presentation that came after the last allowed redelivery.
    expect(
      kindsOf(answers, ({ status }) => status).filter((status) => ![200, 409, 402].includes(Number(status))),
    ).toEqual([]);
    expect(await usesOf(network, payment)).toBe(1);
  });

  test('settle a hundred different payments at once, whichever process serves them', async () => {
    const payments = await signMany(100);
    const answers = await Promise.all(payments.map(show));
    expect(kindsOf(answers, ({ status }) => status)).toEqual([200]);
    expect(kindsOf(answers, servedBy)).toHaveLength(WORKERS);
    const { chain, ledger } = await sums(network, file);
    expect(chain).toBe(ledger);
  });

  test('sell one answer for a balance that covers one of two payments', async () => {
    const poor = await newBuyer(network, 500n);
    const payments = await Promise.all([poor.sign(service.origin, PATH), poor.sign(service.origin, PATH)]);
    const answers = await Promise.all(payments.map(show));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(1);
    expect(statuses.filter((status) => status === 402).length).toBeGreaterThanOrEqual(1);
    const uses = await Promise.all(payments.map((payment) => usesOf(network, payment)));
    expect(uses).toEqual(statuses.map((status) => (status === 200 ? 1 : 0)));
  });

  test('claim a proof once that is brought to the facilitator 128 times over both, and share the limit per minute', async () => {
    const ends = await settleOver(service.origin, Array(128).fill(proofNow()), 64);
    expect(ends.filter((one) => one === 'success')).toHaveLength(1);
    expect(ends.filter((one) => one === 'duplicate_settlement')).toHaveLength(127);
    const more = await settleOver(service.origin, Array.from({ length: 64 }, proofNow), 32);
    const [claimed, limited] = ['success', 'rate_limited'].map((end) => more.filter((one) => one === end).length);
    expect((claimed ?? 0) + (limited ?? 0)).toBe(64);
    // Without a shared limit all 64 would be claimed. A process that waits 50 ms for the counts, which a busy machine brings about, counts a call by itself.
    expect(claimed).toBeGreaterThanOrEqual(PER_MINUTE - 128);
    expect(claimed).toBeLessThan(PER_MINUTE - 128 + 16);
  });

  test('claim a Lightning proof once, and both give its one answer', async () => {
    const path = '/v1/lightning/rpc/health';
    const proof = await payFor(network.lightning!.pay, service.origin, path);
    const answers = await Promise.all(Array.from({ length: 32 }, () => presentProof(service.origin, path, proof)));
    const again = await Promise.all(Array.from({ length: 20 }, () => presentProof(service.origin, path, proof)));
    expect(kindsOf(again, ({ status }) => status)).toEqual([200]);
    expect(kindsOf(again, servedBy)).toHaveLength(WORKERS);
    const served = [...answers, ...again].filter(({ status }) => status === 200);
    expect(kindsOf(served, ({ body }) => body)).toHaveLength(1);
    const claims = `SELECT count(*) FROM lightning_claims WHERE payment_hash = x'${proof.paymentHash}'`;
    expect(ask<number>(file, claims)).toBe(1);
  });

  test('read the same collected data, and each reports the figures of all', async () => {
    // A killed primary's figures are gone, so only what is added to them can agree with the ledger.
    const settled = "SELECT count(*) FROM usdc_payments WHERE state = 'settled'";
    await untilNothingIsOpen(file);
    const [counted, sold] = [await settledByFigures(), ask<number>(file, settled)];
    expect((await show(await sign())).status).toBe(200);
    const collectedOf = ({ body }: Answer) => JSON.parse(body).freshness.collected as number;
    const before = await call(service.origin, '/v1/fees');
    await network.mine(3);
    await until('both report new blocks', async () => {
      const answers = await Promise.all(Array.from({ length: 20 }, () => call(service.origin, '/v1/fees')));
      const areNewer = answers.every((answer) => collectedOf(answer) > collectedOf(before));
      return areNewer && kindsOf(answers, servedBy).length === WORKERS;
    });
    const added = ask<number>(file, settled) - sold;
    expect(added).toBeGreaterThan(0);
    expect(await settledByFigures()).toEqual(counted.map((count) => count + added));
    const checks = async () => JSON.parse((await call(service.origin, '/readyz')).body).checks;
    // A primary that was silent for 5 s is not ready until it is heard again.
    await expect.poll(checks).toMatchObject({ primary: { ok: true }, settlement: { ok: true } });
  });

  test('share a data directory that no other service can use', async () => {
    await expect(startService(network, { dataDir: folder })).rejects.toThrow(/another process serves the ledger/);
  });
});

describe('kill -9', () => {
  test('of an API process stops no other process; it is replaced, and every charged payment is answered', async () => {
    const restarts = (await metric('api_process_restarts_total')) ?? 0;
    const [victim] = workers();
    const payments = await signMany(12);
    // Nothing is settled before the kill, so every buyer of the killed process is left without an answer.
    await network.pauseMining();
    const tryToShow = (payment: Payment) => show(payment).catch(() => null);
    const answers = payments.map(tryToShow);
    await until('all are under way, and each process has some', async () => {
      if (ask<number>(file, UNDER_WAY) < payments.length) return false;
      if (ask<number>(file, BUSY_PROCESSES) === WORKERS) return true;
      // The system gave every connection to one of the two.
      const one = await sign();
      payments.push(one);
      answers.push(tryToShow(one));
      return false;
    });
    process.kill(victim!, 'SIGKILL');
    await until('it is gone', () => !isAlive(victim!));
    await network.resumeMining();
    const received = await Promise.all(answers);
    expect(received.filter((answer) => answer?.status === 200).length).toBeGreaterThan(0);
    expect(received).toContain(null);
    expect(await checkPayments(payments, received)).toBeGreaterThan(0);
    await until('another serves in its place', allServe);
    expect(workers()).not.toContain(victim);
    expect(await metric('api_process_restarts_total')).toBe(restarts + 1);
  });

  test(`of the primary ends its API processes, and the next start waits for a busy one and finishes every payment (seed ${seed})`, async () => {
    for (let round = 0; round < (process.env.SLOW ? 3 : 1); round++) {
      const afterMs = random() * 400;
      const [busy, ...others] = workers() as [number, ...number[]];
      const payments = await signMany(12);
      // No payment ends before it is seen.
      await network.pauseMining();
      const answers = payments.map((payment) => show(payment).catch(() => null));
      await until('a payment is under way', () => ask<number>(file, UNDER_WAY) > 0);
      await network.resumeMining();
      await delay(afterMs);
      // Too busy to notice that the primary is gone, like a process that waits for a disk.
      process.kill(busy, 'SIGSTOP');
      await service.kill();
      await until('no other API process is left', () => !others.some(isAlive));
      const started = service.start();
      await delay(1500);
      expect(isAlive(busy)).toBe(true);
      process.kill(busy, 'SIGCONT');
      await started;
      expect(isAlive(busy)).toBe(false);
      await checkPayments(payments, await Promise.all(answers));
      await until('every API process serves', allServe);
    }
  });

  test('is not needed: a stop completes every answer first and exits with 0', async () => {
    const pids = workers();
    const payments = await signMany(8);
    // No call ends before it is seen.
    await network.pauseMining();
    const answers = payments.map(show);
    await until('a call is under way', () => ask<number>(file, UNDER_WAY) > 0);
    const stopped = service.stop();
    await network.resumeMining();
    const received = await Promise.all(answers.map((answer) => answer.catch(() => null)));
    expect(await stopped, service.log().slice(-3000)).toBe(0);
    expect(pids.some(isAlive)).toBe(false);
    for (const [at, payment] of payments.entries()) {
      expect(received[at] === null || received[at]?.status === 200).toBe(true);
      expect(await usesOf(network, payment)).toBe(received[at] === null ? 0 : 1);
    }
    expect(received.filter((answer) => answer !== null).length).toBeGreaterThan(0);
  });
});
