import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { bytesToHex } from '../../src/lib/hex.ts';
import { AUTHORIZATION_USED } from '../../src/payment/usdc/token.ts';
import { type KillProxy, type Standing, startKillProxy } from '../support/chain/kill-proxy.ts';
import { ask, rowsLeft, watchRise } from '../support/ledger/kill-ledger.ts';
import { seed, seededRandom, shuffled } from '../support/random.ts';
import { newPayers, type Payer, presentAndDiscard } from '../support/service/kill-buyers.ts';
import { inFlight, type KillPoint, killPoints, type Remains, shared } from '../support/service/kill-points.ts';
import { createProcess } from '../support/service/process.ts';
import type { Answer } from '../support/service/service.ts';
import { usesOf } from '../support/service/workers.ts';
import { balanceOf, decoded, type Payment, present } from '../support/usdc/buyer.ts';
import { receiptIn } from '../support/usdc/mpp-buyer.ts';

/** In the slow lane each kill is at one of the twelve points, or at random. In the quick lane seven kills are at all of them. */
const KILLS = process.env.SLOW ? 500 : 7;
/** Buyers with a key by x402 and by MPP, and buyers whose payer is a contract. */
const BUYERS = { keys: 4, byMpp: 3, wallets: 2 };
/** In base units: more than all calls of a buyer cost. */
const UNITS = 20_000_000n;
/** How often a kill point that was missed is tried again. A kill that hits no point is checked like any other. */
const TRIES = 10;
/**
 * In ms: how long a point may take to be reached, how long a request is held there, how long a short-lived point may take to appear, and how long a
 * buyer waits for a final answer.
 */
const [REACH_MS, HOLD_MS, RISE_MS, END_MS] = [20_000, 400, 3000, 120_000];

let network: EmbeddedNetwork;
let proxy: KillProxy;
let folder: string;
let file: string;
let service: Awaited<ReturnType<typeof createProcess>>;
let payers: Payer[];
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  proxy = await startKillProxy(network.rpcUrl);
  folder = mkdtempSync(join(tmpdir(), 'percall-kill-'));
  file = join(folder, 'ledger.db');
  service = await createProcess(network, folder, { RPC_URLS: proxy.url, MPP: 'on' });
  payers = await newPayers(network, BUYERS, UNITS);
  await service.start();
});
afterAll(async () => {
  await service.kill();
  await proxy.stop();
  await network.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** One buyer's call of a round. */
interface Order {
  readonly payer: Payer;
  readonly path: string;
  readonly payment: Payment;
}
/** An order and its state after the kill. */
type Left = Order & Remains;
type End = 'delivered before' | 'charged, delivered again' | 'not charged, bought again' | 'not charged, left alone';

const random = seededRandom('kill');
const leftAlone: Left[] = [];
/** Whether the running process may have settled a payment. */
let hasSettled = false;

test(
  `${KILLS} times kill -9 during paid calls, at twelve named points${process.env.SLOW ? ' and at random' : ''}: each call is settled and its answer still available, or not charged`,
  async () => {
    const named = killPoints(network.relayer.address.toLowerCase());
    const reached = new Map<string, number>(named.map(({ name }) => [name, 0]));
    const ends = new Map<End, number>();
    let [sharing, missed] = [0, 0];
    const plan = drawPlan(named);
    const away: Left[] = [];
    for (const [at, points] of plan.entries()) {
      for (let tries = 1; ; tries++) {
        const what = points.map(({ name }) => name).join('; ') || 'at random';
        const context = `${what}, seed ${seed}, round ${at} (run again with SEED=${seed})`;
        const { remains, there } = await killAndRestart(points);
        away.push(...remains);
        if (shared(remains.filter(inFlight))) sharing++;
        const isReached = there && points.every(({ shows }) => shows(remains));
        // The next kill wants a process that has settled nothing. So the buyers of this one come back after it.
        const isLeft = isReached && plan[at + 1]?.some(({ fresh }) => fresh) && !remains.some(inFlight);
        if (!isLeft) for (const end of await checkAll(away.splice(0), context)) ends.set(end, (ends.get(end) ?? 0) + 1);
        if (isReached) {
          for (const { name } of points) reached.set(name, (reached.get(name) ?? 0) + 1);
          break;
        }
        missed++;
        expect(tries, `never there: ${context}`).toBeLessThan(TRIES);
      }
    }
    await checkNotPresented();
    // The kills must have interrupted payments before and after the settlement was sent, and at every point. Otherwise this test shows nothing.
    expect(ends.get('charged, delivered again')).toBeGreaterThan(0);
    expect(ends.get('not charged, bought again')).toBeGreaterThan(0);
    expect(sharing).toBeGreaterThan(0);
    expect([...reached.values()].filter((times) => times === 0)).toEqual([]);
    expect(reached.size).toBe(12);
    for (const { address } of payers) {
      const paid = `SELECT coalesce(sum(amount), 0) FROM usdc_payments WHERE state = 'settled' AND payer = x'${address.slice(2)}'`;
      expect(await balanceOf(network, address), `seed ${seed}`).toBe(UNITS - BigInt(ask<number>(file, paid)));
    }
    const points = [...reached].map(([name, times]) => `\n  ${times} × ${name}`).join('');
    const byMpp = ask<number>(file, "SELECT count(*) FROM usdc_payments WHERE state = 'settled' AND protocol = 'mpp'");
    expect(byMpp).toBeGreaterThan(0);
    const summary = JSON.stringify({ byMpp, ...Object.fromEntries(ends), sharing, missed });
    process.stdout.write(`${KILLS} kills, seed ${seed}: ${summary}${points}\n`);
  },
  300_000 + KILLS * 60_000,
);

/**
 * The kills, each with its points. In the slow lane their order is from the seed: about six in ten are at a named point, each point equally often, the others
 * at random times. In the quick lane points share kills, and those that need a process which has settled nothing come first.
 */
function drawPlan(named: readonly KillPoint[]): (readonly KillPoint[])[] {
  if (!process.env.SLOW) {
    const kills = [...Map.groupBy(named, ({ kill }) => kill)].sort(([a], [b]) => a - b);
    return kills.map(([, points]) => points.toReversed());
  }
  const rounds = Math.floor((KILLS * 0.6) / named.length) * named.length;
  const plan = Array.from({ length: KILLS }, (_, at) =>
    at < rounds ? named.slice(at % named.length).slice(0, 1) : [],
  );
  return shuffled(plan, random);
}

/** One round: all buyers pay, the service is killed at the points and started again. In half of the rounds no block is mined in between. */
async function killAndRestart(points: readonly KillPoint[]): Promise<{ remains: Left[]; there: boolean }> {
  if (hasSettled && points.some(({ fresh }) => fresh)) {
    await service.kill();
    await service.start();
  }
  const orders = await Promise.all(
    payers.map(async (payer) => {
      const path = `${payer.mount}/chain/wallet?address=${payer.address}`;
      return { payer, path, payment: await payer.sign(service.origin, path) };
    }),
  );
  const { answers, there } = await killAt(points, orders);
  const unmined = random() < 0.5;
  if (unmined) await network.pauseMining();
  const remains = await whatIsLeft(orders, await Promise.all(answers));
  if (!unmined) await network.resumeMining();
  await service.start();
  hasSettled = remains.some(inFlight);
  await network.resumeMining();
  return { remains, there };
}

/** Kills the service when buyers have reached all these points, or after a random time. `there` is true when the kill came at the points. */
async function killAt(points: readonly KillPoint[], orders: readonly Order[]) {
  if (points.some(({ unmined }) => unmined)) await network.pauseMining();
  const [answers, standings]: [Promise<string | null>[], Standing[]] = [[], []];
  if (points.length === 0) {
    answers.push(...presentAll(orders, present));
    await delay(random() * 900);
  }
  for (const [at, { stop, rises, withoutAnswers }] of points.entries()) {
    const standing = proxy.stopAt(stop, () => {
      if (rises === undefined) return true;
      // A short-lived point: the signal must be sent in the same tick in which the test sees it.
      const risen = watchRise(file, rises, RISE_MS);
      if (risen) void service.kill();
      return risen;
    });
    standings.push(standing);
    const those = orders.slice(answers.length, answers.length + buyersFor(points, at));
    const begun = presentAll(those, withoutAnswers ? presentAndDiscard : present);
    answers.push(...begun);
    await Promise.race([standing.reached, Promise.all(begun), delay(REACH_MS, undefined, { ref: false })]);
  }
  if (points.some(({ rises }) => rises === undefined)) await delay(random() * HOLD_MS);
  const there = standings.every((standing) => standing.holds());
  await service.kill();
  for (const standing of standings) standing.letGo();
  return { answers, there };
}

/** How many buyers go for the point at this place. The last point gets all that are left. */
function buyersFor(points: readonly KillPoint[], at: number): number {
  if (at === points.length - 1) return payers.length;
  const [single, sharing] = [1, undefined].map((few) => points.filter(({ buyers }) => buyers === few).length);
  return points[at]?.buyers ?? Math.floor((payers.length - Number(single)) / Number(sharing));
}

/** Buyers present their payments at nearly the same time. Each result is the whole answer, or null. */
function presentAll(orders: readonly Order[], by: typeof present | typeof presentAndDiscard): Promise<string | null>[] {
  const spreadMs = Math.floor(random() * 3) * 150;
  return orders.map(async ({ path, payment }) => {
    await delay(random() * spreadMs);
    const answer = await by(service.origin, path, payment).catch(() => null);
    return answer?.status === 200 ? answer.body : null;
  });
}

async function whatIsLeft(orders: readonly Order[], received: readonly (string | null)[]): Promise<Left[]> {
  const rows = rowsLeft(file);
  return Promise.all(
    orders.map(async (order, at) => {
      const row = rows.get(bytesToHex(order.payment.authorization.nonce)) ?? null;
      return {
        ...order,
        isWallet: order.payer.isWallet,
        received: received[at] ?? null,
        row,
        onChain: await stageOf(row),
      };
    }),
  );
}

async function stageOf(row: Remains['row']): Promise<Remains['onChain']> {
  if (row === null || row.transaction === null) return 'nothing';
  const known = await network.rpc<{ blockNumber: string | null } | null>('eth_getTransactionByHash', [row.transaction]);
  if (known === null) return 'nothing';
  return known.blockNumber === null ? 'pending' : 'mined';
}

/** Most buyers present the same payment again at once; a few that are owed nothing do not. Afterwards no payment is open, and all sums agree. */
async function checkAll(remains: readonly Left[], context: string): Promise<End[]> {
  hasSettled = true;
  // A challenge of MPP lives for ten minutes, so its buyer returns at once.
  const mayStay = ({ row, payer }: Left) => row?.transaction == null && payer.mount === '/v1/paid';
  const returning = remains.map((left) => ({ left, stays: mayStay(left) && random() < 0.3 }));
  const ends = await Promise.all(returning.map(({ left, stays }) => checkPayment(left, stays, context)));
  const open = "SELECT count(*) FROM usdc_payments WHERE state NOT IN ('settled', 'failed')";
  expect(ask<number>(file, open), context).toBe(0);
  const settled = "SELECT coalesce(sum(amount), 0) FROM usdc_payments WHERE state = 'settled'";
  expect(await balanceOf(network, network.seller), context).toBe(BigInt(ask<number>(file, settled)));
  return ends;
}

async function checkPayment(left: Left, stays: boolean, context: string): Promise<End> {
  const { row, received } = left;
  if (received !== null) expect([row?.state, row?.reply], context).toEqual(['settled', received]);
  if (row?.transaction == null) {
    // Without a hash on disk no transaction was sent.
    expect(await usesOf(network, left.payment), context).toBe(0);
    if (stays) {
      leftAlone.push(left);
      return 'not charged, left alone';
    }
    await buyToTheEnd(left, context);
    return 'not charged, bought again';
  }
  const { body } = await buyToTheEnd(left, context);
  expect(body, context).toBe(row.reply);
  return received === null ? 'charged, delivered again' : 'delivered before';
}

/** A buyer that did not come back was never charged, and its payment is still valid. */
async function checkNotPresented(): Promise<void> {
  const context = `left alone, seed ${seed}`;
  for (let at = 0; at < leftAlone.length; at += 2 * payers.length) {
    await Promise.all(
      leftAlone.slice(at, at + 2 * payers.length).map(async (left) => {
        expect(await usesOf(network, left.payment), context).toBe(0);
        await buyToTheEnd(left, context);
      }),
    );
  }
  await checkAll([], context);
}

/** Presents the same payment until its final answer, which must be the bought one, charged once. */
async function buyToTheEnd(order: Order, context: string): Promise<Answer> {
  const deadline = Date.now() + END_MS;
  let answer = await present(service.origin, order.path, order.payment);
  while ((answer.status === 409 || answer.status === 503) && Date.now() < deadline) {
    await delay(200);
    answer = await present(service.origin, order.path, order.payment);
  }
  expect(answer.status, `${context}: ${order.path} ${answer.body} ${answer.headers['payment-required'] ?? ''}`).toBe(
    200,
  );
  const isByMpp = order.payer.mount === '/v1/mpp';
  const transaction = isByMpp ? receiptIn(answer).reference : decoded(answer, 'payment-response').transaction;
  expect(await usesOf(network, order.payment), context).toBe(1);
  expect(await network.rpc('eth_getTransactionReceipt', [transaction]), context).toMatchObject({
    status: '0x1',
    logs: expect.arrayContaining([expect.objectContaining({ topics: usedBy(order) })]),
  });
  return answer;
}

/** The topics of the use of a payment's authorization. */
function usedBy({ payment: { authorization } }: Order): string[] {
  const word = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex').padStart(64, '0')}`;
  return [AUTHORIZATION_USED, word(authorization.from), word(authorization.nonce)];
}
