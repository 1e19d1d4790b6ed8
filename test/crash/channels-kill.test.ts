import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount } from '../../src/embedded/accounts.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../src/embedded/network.ts';
import { SETTLEMENT } from '../../src/payment/rails/usdc-channels/scheme.ts';
import { channelEntry } from '../support/channels/channel-buyer.ts';
import { type Attempt, type End, newKillBuyer, type SaleLeft } from '../support/channels/kill-buyer.ts';
import { ask, left } from '../support/ledger/kill-ledger.ts';
import { seed, seededRandom } from '../support/random.ts';
import { createProcess } from '../support/service/process.ts';
import { call } from '../support/service/service.ts';
import { until } from '../support/service/workers.ts';
import { balanceOf } from '../support/usdc/buyer.ts';

const ROUNDS = Number(process.env.ROUNDS ?? (process.env.SLOW ? 500 : 20));
const BUYERS = 5;
/** How long a round's calls run, in ms: longer than a block, so that kills come before, during and after deposits. */
const LONGEST_MS = 1500;
/** `Deposited(bytes32 indexed channelId, address indexed sender, uint128 amount, uint128 newBalance)`. */
const DEPOSITED = '0x6c2a09353b5e75e70d0b9778b80a413809bb235d46c211811c474b3346791d89';
const SALES = `
  SELECT lower(hex(channel_id)) || ':' || voucher_max AS key, state, hex(transaction_hash) AS "transaction", CAST(body AS TEXT) AS reply
    FROM usdc_payments LEFT JOIN usdc_replies ON payment_id = id WHERE channel_id IS NOT NULL AND state <> 'failed'`;

type Buyer = Awaited<ReturnType<typeof newKillBuyer>>;

let network: EmbeddedNetwork;
let folder: string;
let file: string;
let service: Awaited<ReturnType<typeof createProcess>>;
let buyers: Buyer[];
const random = seededRandom('channels-kill');

beforeAll(async () => {
  network = await startEmbeddedNetwork();
  folder = mkdtempSync(join(tmpdir(), 'percall-channels-kill-'));
  file = join(folder, 'ledger.db');
  service = await createProcess(network, folder, {
    ...{ CHANNELS: 'on', CHANNELS_AUTHORIZER_KEY: createAccount().privateKey, CHANNELS_MIN_DEPOSIT_USDC: '0.1' },
    ...{ NODE_COMPILE_CACHE: join(folder, 'compiled'), PAYER_MAX_OPEN: '0', COLLECTOR: 'off' },
  });
  await start();
  // A regular stop writes the compile cache, which halves every later start.
  await service.stop();
  await start();
  buyers = await Promise.all(Array.from({ length: BUYERS }, () => newKillBuyer(network, service.origin, random)));
}, 120_000);
afterAll(async () => {
  await service?.kill();
  await network?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the service and waits until it has found the contracts. */
async function start(): Promise<void> {
  await service.start();
  await until('channels are offered', async () => {
    const { headers } = await call(service.origin, '/v1/paid/fees/estimate');
    return JSON.stringify(channelEntryOrNull(String(headers['payment-required']))) !== 'null';
  });
}

function channelEntryOrNull(header: string) {
  try {
    return channelEntry(header);
  } catch {
    return null;
  }
}

/** The sales of channels in the files of the dead service. */
function salesLeft(): (buyer: Buyer, attempt: Attempt) => SaleLeft | null {
  const rows = new Map(left<SaleLeft & { key: string }>(file, SALES).map((row) => [row.key, row]));
  return ({ id }, { max }) => rows.get(`${id.slice(2)}:${max}`) ?? null;
}

/** The amounts of a channel's deposits on the chain. */
async function depositsOf(id: string): Promise<bigint[]> {
  const filter = { address: SETTLEMENT, topics: [DEPOSITED, id], fromBlock: '0x0', toBlock: 'latest' };
  const logs = await network.rpc<{ data: string }[]>('eth_getLogs', [filter]);
  return logs.map(({ data }) => BigInt(data.slice(0, 66)));
}

/** What was charged and deposited is exactly what the buyer was told, in the ledger, in its sums and on the chain. */
async function checkSums(buyer: Buyer, context: string): Promise<void> {
  const { charged, deposited, highest } = buyer.told();
  const id = `x'${buyer.id.slice(2)}'`;
  const noted = ask<number | undefined>(file, `SELECT charged FROM channels WHERE id = ${id}`) ?? 0;
  const sold = `SELECT coalesce(sum(charged), 0) FROM usdc_payments WHERE channel_id = ${id} AND state = 'settled'`;
  expect([BigInt(noted), BigInt(ask<number>(file, sold))], context).toEqual([charged, charged]);
  expect(charged, context).toBeLessThanOrEqual(highest);
  const deposits = await depositsOf(buyer.id);
  expect(deposits, context).toEqual(Array(Number(deposited / buyer.depositSize)).fill(buyer.depositSize));
  expect(buyer.funds - (await balanceOf(network, buyer.address)), context).toBe(deposited);
}

test(
  `${ROUNDS} times kill -9 during deposits and vouchers: no answered call is lost, no deposit is made twice, and each buyer is charged what it was told`,
  async () => {
    const ends = new Map<End, number>();
    let answered = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const context = `seed ${seed}, round ${round} (run again with SEED=${seed})`;
      const trading = Promise.all(buyers.map(({ trade }) => trade(context)));
      // A buyer's failed expectation ends the round at once.
      await Promise.race([trading, delay(random() * LONGEST_MS)]);
      await service.kill();
      await trading;
      const find = salesLeft();
      const heard = buyers.map((buyer) => buyer.takeHeard());
      for (const [at, buyer] of buyers.entries()) {
        for (const { attempt, body } of heard[at] ?? []) {
          expect(find(buyer, attempt), context).toMatchObject({ state: 'settled', reply: body });
          answered++;
        }
      }
      await start();
      await Promise.all(
        buyers.map(async (buyer, at) => {
          const end = await buyer.comeBack((attempt) => find(buyer, attempt), context);
          ends.set(end, (ends.get(end) ?? 0) + 1);
          for (const answer of (heard[at] ?? []).slice(-2)) await buyer.checkAgain(answer, context);
          buyer.takeHeard();
          await checkSums(buyer, context);
        }),
      );
      const open = "SELECT count(*) FROM usdc_payments WHERE state NOT IN ('settled', 'failed')";
      expect(ask<number>(file, open), context).toBe(0);
    }
    // The kills must have interrupted vouchers and deposits, before and after they were paid. Otherwise this test shows nothing.
    expect(answered).toBeGreaterThan(ROUNDS);
    expect(ends.get('voucher charged, delivered again')).toBeGreaterThan(0);
    expect(ends.get('deposit sent, delivered again')).toBeGreaterThan(0);
    expect(ask<string>(file, 'PRAGMA integrity_check')).toBe('ok');
    process.stdout.write(
      `${ROUNDS} kills, seed ${seed}: ${answered} answers, ${JSON.stringify(Object.fromEntries(ends))}\n`,
    );
  },
  ROUNDS * 20_000,
);
