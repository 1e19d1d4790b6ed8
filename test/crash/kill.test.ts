import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../src/embedded/network.ts';
import { bytesToHex } from '../../src/lib/hex.ts';
import { AUTHORIZATION_USED } from '../../src/payment/evm/token.ts';
import { type KillProxy, startKillProxy } from '../support/chain/kill-proxy.ts';
import { ask, rowsLeft, watchRise } from '../support/ledger/kill-ledger.ts';
import { seed, seededRandom } from '../support/random.ts';
import { newPayers, type Payer, presentUnheard } from '../support/service/kill-buyers.ts';
import { inFlight, type KillPoint, killPoints, type Remains, shared } from '../support/service/kill-points.ts';
import { createProcess } from '../support/service/process.ts';
import type { Answer } from '../support/service/service.ts';
import { balanceOf, decoded, type Payment, present } from '../support/usdc/buyer.ts';

const KILLS = process.env.SLOW ? 500 : 20;
/** Buyers with a key, and buyers who pay from a contract. */
const [KEYS, WALLETS] = [7, 2];
/** Each has more than all his calls cost. */
const UNITS = 20_000_000n;
/** A named point that was missed is tried again so often; what was a kill all the same is judged like any other. */
const TRIES = 3;
/** How long a point may take to come, a request is held there, a moment that passes by itself may take, and a buyer waits for an end. */
const [REACH_MS, HOLD_MS, RISE_MS, END_MS] = [20_000, 400, 3000, 30_000];

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
  const compiled = join(folder, 'compiled');
  service = await createProcess(network, folder, { RPC_URLS: proxy.url, NODE_COMPILE_CACHE: compiled });
  payers = await newPayers(network, KEYS, WALLETS, UNITS);
  await service.start();
  // What it has compiled is written when it ends in peace, and makes every later start half as long.
  await service.stop();
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
/** What a kill has left of it. */
type Left = Order & Remains;
type End = 'delivered before' | 'charged, delivered again' | 'not charged, bought again' | 'not charged, left alone';

const random = seededRandom('kill');
const leftAlone: Left[] = [];

test(
  `${KILLS} times kill -9 in the middle of paid calls, at named points and at random: each is settled and its answer still there, or not charged`,
  async () => {
    const named = killPoints(network.relayer.address.toLowerCase());
    const reached = new Map<string, number>(named.map(({ name }) => [name, 0]));
    const ends = new Map<End, number>();
    let [sharing, missed] = [0, 0];
    for (const [at, point] of drawPlan(named).entries()) {
      for (let tries = 1; ; tries++) {
        const context = `${point?.name ?? 'at random'}, seed ${seed}, round ${at} (run again with SEED=${seed})`;
        const left = await killAndRestart(point);
        for (const end of await judgeAll(left.remains, context)) ends.set(end, (ends.get(end) ?? 0) + 1);
        if (shared(left.remains.filter(inFlight))) sharing++;
        if (point === null) break;
        if (left.there && point.shows(left.remains)) {
          reached.set(point.name, (reached.get(point.name) ?? 0) + 1);
          break;
        }
        missed++;
        expect(tries, `never there: ${context}`).toBeLessThan(TRIES);
      }
    }
    await judgeLeftAlone();
    // The kills must have met payments before and after the money was on its way, and at every point, or this test has shown nothing.
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
    const told = JSON.stringify({ ...Object.fromEntries(ends), sharing, missed });
    process.stdout.write(`${KILLS} kills, seed ${seed}: ${told}${points}\n`);
  },
  KILLS * 15_000,
);

/** Each named point equally often, in about six of ten kills, the others at random; in an order by the seed. */
function drawPlan(named: readonly KillPoint[]): (KillPoint | null)[] {
  const rounds = Math.floor((KILLS * 0.6) / named.length) * named.length;
  const plan = Array.from({ length: KILLS }, (_, at) => (at < rounds ? (named[at % named.length] ?? null) : null));
  const drawn = plan.map((point) => ({ point, at: random() }));
  return drawn.sort((a, b) => a.at - b.at).map(({ point }) => point);
}

/** One round: everybody buys, the service is killed at the point and started again; in half of the rounds nothing is mined in between. */
async function killAndRestart(point: KillPoint | null): Promise<{ remains: Left[]; there: boolean }> {
  if (point?.fresh) {
    await service.kill();
    await service.start();
  }
  const orders = await Promise.all(
    payers.map(async (payer) => {
      const path = `/v1/paid/chain/wallet?address=${payer.address}`;
      return { payer, path, payment: await payer.sign(service.origin, path) };
    }),
  );
  const { answers, there } = await killAt(point, orders);
  const unmined = random() < 0.5;
  if (unmined) await network.pauseMining();
  const remains = await whatIsLeft(orders, await Promise.all(answers));
  if (!unmined) await network.resumeMining();
  await service.start();
  await network.resumeMining();
  return { remains, there };
}

/** Kills the service at the point, or after any time; `there` when the point was reached and not yet passed. */
async function killAt(point: KillPoint | null, orders: readonly Order[]) {
  if (point === null) {
    const answers = presentAll(orders, present);
    await delay(random() * 900);
    await service.kill();
    return { answers, there: true };
  }
  const { stop, rises, unmined, unheard } = point;
  if (unmined) await network.pauseMining();
  const standing = proxy.stopAt(stop, () => {
    if (rises === undefined) return true;
    // A moment that passes by itself: the signal must go out in the turn in which it is seen.
    const risen = watchRise(file, rises, RISE_MS);
    if (risen) void service.kill();
    return risen;
  });
  const answers = presentAll(orders, unheard ? presentUnheard : present);
  await Promise.race([standing.reached, Promise.all(answers), delay(REACH_MS, undefined, { ref: false })]);
  if (rises === undefined) await delay(random() * HOLD_MS);
  const there = standing.holds();
  await service.kill();
  standing.letGo();
  return { answers, there };
}

/** Everybody presents his payment within a moment of the others; each hears his answer when all of it came, else null. */
function presentAll(orders: readonly Order[], by: typeof present | typeof presentUnheard): Promise<string | null>[] {
  const spreadMs = Math.floor(random() * 3) * 150;
  return orders.map(async ({ path, payment }) => {
    await delay(random() * spreadMs);
    const answer = await by(service.origin, path, payment).catch(() => null);
    return answer?.status === 200 ? answer.body : null;
  });
}

async function whatIsLeft(orders: readonly Order[], heard: readonly (string | null)[]): Promise<Left[]> {
  const rows = rowsLeft(file);
  return Promise.all(
    orders.map(async (order, at) => {
      const row = rows.get(bytesToHex(order.payment.authorization.nonce)) ?? null;
      return { ...order, isWallet: order.payer.isWallet, heard: heard[at] ?? null, row, onChain: await stageOf(row) };
    }),
  );
}

async function stageOf(row: Remains['row']): Promise<Remains['onChain']> {
  if (row === null || row.transaction === null) return 'nothing';
  const known = await network.rpc<{ blockNumber: string | null } | null>('eth_getTransactionByHash', [row.transaction]);
  if (known === null) return 'nothing';
  return known.blockNumber === null ? 'pending' : 'mined';
}

/** Everybody comes back at once with the same payment, but for some to whom nothing is owed. Then nothing is open, and all sums agree. */
async function judgeAll(remains: readonly Left[], context: string): Promise<End[]> {
  const returning = remains.map((left) => ({ left, stays: left.row?.transaction == null && random() < 0.3 }));
  const ends = await Promise.all(returning.map(({ left, stays }) => judge(left, stays, context)));
  const open = "SELECT count(*) FROM usdc_payments WHERE state NOT IN ('settled', 'failed')";
  expect(ask<number>(file, open), context).toBe(0);
  const settled = "SELECT coalesce(sum(amount), 0) FROM usdc_payments WHERE state = 'settled'";
  expect(await balanceOf(network, network.seller), context).toBe(BigInt(ask<number>(file, settled)));
  return ends;
}

async function judge(left: Left, stays: boolean, context: string): Promise<End> {
  const { row, heard } = left;
  if (heard !== null) expect([row?.state, row?.reply], context).toEqual(['settled', heard]);
  if (row?.transaction == null) {
    // Without a hash on disk nothing was ever sent.
    expect(await usesOf(left), context).toBe(0);
    if (stays) {
      leftAlone.push(left);
      return 'not charged, left alone';
    }
    await buyToTheEnd(left, context);
    return 'not charged, bought again';
  }
  const { body } = await buyToTheEnd(left, context);
  expect(body, context).toBe(row.reply);
  return heard === null ? 'charged, delivered again' : 'delivered before';
}

/** Whoever did not come back was never charged, and his payment is still good. */
async function judgeLeftAlone(): Promise<void> {
  const context = `left alone, seed ${seed}`;
  for (let at = 0; at < leftAlone.length; at += 2 * payers.length) {
    await Promise.all(
      leftAlone.slice(at, at + 2 * payers.length).map(async (left) => {
        expect(await usesOf(left), context).toBe(0);
        await buyToTheEnd(left, context);
      }),
    );
  }
  await judgeAll([], context);
}

/** Presents the same payment until it is answered for good, which must be with what was bought, paid for once. */
async function buyToTheEnd(order: Order, context: string): Promise<Answer> {
  const deadline = Date.now() + END_MS;
  let answer = await present(service.origin, order.path, order.payment);
  while ((answer.status === 409 || answer.status === 503) && Date.now() < deadline) {
    await delay(100);
    answer = await present(service.origin, order.path, order.payment);
  }
  expect(answer.status, `${context}: ${answer.body} ${answer.headers['payment-required'] ?? ''}`).toBe(200);
  const { transaction } = decoded(answer, 'payment-response');
  expect(await usesOf(order), context).toBe(1);
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

/** How often the chain has used a payment's authorization. */
async function usesOf(order: Order): Promise<number> {
  const filter = { address: network.usdc, topics: usedBy(order), fromBlock: '0x0', toBlock: 'latest' };
  return (await network.rpc<unknown[]>('eth_getLogs', [filter])).length;
}
