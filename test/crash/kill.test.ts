import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../scripts/embedded/network.ts';
import { balanceOf, decoded, newBuyer, type Payment, present, transfersOf } from '../support/buyer.ts';
import { createProcess } from '../support/process.ts';
import { seed, seededRandom } from '../support/random.ts';

const KILLS = process.env.SLOW ? 200 : 20;
const BUYERS = 6;
const PATH = '/v1/paid/fees/estimate';

let network: EmbeddedNetwork;
let folder: string;
let service: Awaited<ReturnType<typeof createProcess>>;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  folder = mkdtempSync(join(tmpdir(), 'percall-kill-'));
  service = await createProcess(network, folder);
  await service.start();
});
afterAll(async () => {
  await service.kill();
  await network.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Reads the ledger's own file beside the running service. */
function ledger<T>(sql: string): T {
  const db = new Database(join(folder, 'ledger.db'), { readonly: true });
  try {
    return db.prepare(sql).get() as T;
  } finally {
    db.close();
  }
}

async function untilReconciled(): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const open = "SELECT count(*) AS n FROM usdc_payments WHERE state IN ('reserved', 'settling', 'unknown')";
    if (ledger<{ n: number }>(open).n === 0) return;
    await new Promise((next) => setTimeout(next, 50));
  }
  throw new Error('something is still open ten seconds after the restart');
}

test(
  `${KILLS} times kill -9 in the middle of paid calls: each is settled and its answer still there, or not charged`,
  async () => {
    const random = seededRandom('kill');
    const ends = { deliveredBefore: 0, settledAndRedelivered: 0, notCharged: 0 };
    const buyers = await Promise.all(Array.from({ length: BUYERS }, () => newBuyer(network, 10_000_000n)));
    for (let round = 0; round < KILLS; round++) {
      const context = `seed ${seed}, round ${round} (run again with SEED=${seed})`;
      const payments = await Promise.all(buyers.map((buyer) => buyer.sign(service.origin, PATH)));
      const answers = payments.map(async (payment) => {
        await new Promise((wait) => setTimeout(wait, random() * 300));
        return present(service.origin, PATH, payment).catch(() => null);
      });
      await new Promise((wait) => setTimeout(wait, random() * 900));
      await service.kill();
      const heard = await Promise.all(answers);
      await service.start();
      await untilReconciled();
      for (const [index, payment] of payments.entries()) {
        const end = await judge(payment, heard[index]?.status === 200 ? heard[index].body : null, context);
        ends[end]++;
      }
    }
    // The kills must have met payments at every stage, or this test has shown nothing.
    expect(ends.settledAndRedelivered).toBeGreaterThan(0);
    expect(ends.notCharged).toBeGreaterThan(0);
    const { total } = ledger<{ total: number }>(
      "SELECT sum(amount) AS total FROM usdc_payments WHERE state = 'settled'",
    );
    expect(await balanceOf(network, network.seller)).toBe(BigInt(total));
    process.stdout.write(`${KILLS} kills, seed ${seed}: ${JSON.stringify(ends)}\n`);
  },
  KILLS * 10_000,
);

async function judge(payment: Payment, heard: string | null, context: string) {
  const charged = await transfersOfNonce(payment);
  expect(charged, context).toBeLessThanOrEqual(1);
  if (heard !== null) expect(charged, context).toBe(1);
  const again = await present(service.origin, PATH, payment);
  expect(again.status, context).toBe(200);
  expect(await transfersOfNonce(payment), context).toBe(1);
  if (charged === 0) return 'notCharged';
  const { transaction } = decoded(again, 'payment-response');
  expect(await network.rpc('eth_getTransactionReceipt', [transaction]), context).toMatchObject({ status: '0x1' });
  if (heard === null) return 'settledAndRedelivered';
  expect(again.body, context).toBe(heard);
  return 'deliveredBefore';
}

/** How often the chain has used this very authorization. */
async function transfersOfNonce(payment: Payment): Promise<number> {
  const used = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';
  const { from, nonce } = payment.authorization;
  const word = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex').padStart(64, '0')}`;
  const filter = {
    address: network.usdc,
    topics: [used, word(from), word(nonce)],
    fromBlock: '0x0',
    toBlock: 'latest',
  };
  const uses = (await network.rpc<unknown[]>('eth_getLogs', [filter])).length;
  if (uses === 1) expect(await transfersOf(network, payment)).toBeGreaterThan(0);
  return uses;
}
