import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount } from '../../src/embedded/accounts.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../src/embedded/network.ts';
import { channelEntry } from '../support/channels/channel-buyer.ts';
import { type Attempt, type End, type KillBuyer, newKillBuyer, type SaleLeft } from '../support/channels/kill-buyer.ts';
import { claimedOf, createLeaver, eventsOf, type Leaver } from '../support/channels/kill-leaver.ts';
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
/** Rounds between two buyers that take their money back. */
const STAY_ROUNDS = 2;
/** The contract's shortest delay of a withdrawal. */
const DELAY_SECONDS = 900;
const SALES = `
  SELECT lower(hex(channel_id)) || ':' || voucher_max AS key, state, hex(transaction_hash) AS "transaction", CAST(body AS TEXT) AS reply
    FROM usdc_payments LEFT JOIN usdc_replies ON payment_id = id WHERE channel_id IS NOT NULL AND state <> 'failed'`;

let network: EmbeddedNetwork;
let folder: string;
let file: string;
let service: Awaited<ReturnType<typeof createProcess>>;
let buyers: KillBuyer[];
const random = seededRandom('channels-kill');

beforeAll(async () => {
  network = await startEmbeddedNetwork();
  folder = mkdtempSync(join(tmpdir(), 'percall-channels-kill-'));
  file = join(folder, 'ledger.db');
  service = await createProcess(network, folder, {
    ...{ CHANNELS: 'on', CHANNELS_AUTHORIZER_KEY: createAccount().privateKey, CHANNELS_MIN_DEPOSIT_USDC: '0.1' },
    // Ten calls of a buyer are claimed, so that claims are under way at any moment.
    ...{
      CHANNELS_CLAIM_FROM_USDC: '0.005',
      CHANNELS_WITHDRAW_DELAY_SECONDS: String(DELAY_SECONDS),
      CHANNELS_CLAIM_AFTER_SECONDS: '400',
    },
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
function salesLeft(): (buyer: KillBuyer, attempt: Attempt) => SaleLeft | null {
  const rows = new Map(left<SaleLeft & { key: string }>(file, SALES).map((row) => [row.key, row]));
  return ({ id }, { max }) => rows.get(`${id.slice(2)}:${max}`) ?? null;
}

/** What was charged and deposited is exactly what the buyer was told, in the ledger, in its sums and on the chain. */
async function checkSums(buyer: KillBuyer, context: string): Promise<void> {
  const { charged, deposited, highest } = buyer.told();
  const id = `x'${buyer.id.slice(2)}'`;
  const noted = ask<number | undefined>(file, `SELECT charged FROM channels WHERE id = ${id}`) ?? 0;
  const sold = `SELECT coalesce(sum(charged), 0) FROM usdc_payments WHERE channel_id = ${id} AND state = 'settled'`;
  expect([BigInt(noted), BigInt(ask<number>(file, sold))], context).toEqual([charged, charged]);
  expect(charged, context).toBeLessThanOrEqual(highest);
  const deposits = await eventsOf(network, 'Deposited', buyer.id);
  expect(deposits, context).toEqual(Array(Number(deposited / buyer.depositSize)).fill(buyer.depositSize));
  const refunds = await eventsOf(network, 'Refunded', buyer.id);
  const refunded = refunds.reduce((sum, amount) => sum + amount, 0n);
  expect(await balanceOf(network, buyer.address), context).toBe(buyer.funds - deposited + refunded);
  expect(await claimedOf(network, buyer.id), context).toBeLessThanOrEqual(charged);
}

/** One buyer with money left takes it back, by a refund and by a withdrawal in turns. Another one takes its place. */
async function chooseLeaver(at: number): Promise<Leaver | null> {
  const leaving = buyers.find((buyer) => buyer.told().deposited > buyer.told().charged);
  if (at % STAY_ROUNDS !== 1 || !leaving) return null;
  buyers = buyers.filter((buyer) => buyer !== leaving);
  return createLeaver(network, service.origin, leaving, at % (2 * STAY_ROUNDS) === 1 ? 'refund' : 'withdrawal');
}

/** The service claims everything when it stops. Then each channel's claims are its charges, and the seller holds their sum. */
async function checkClaims(all: readonly KillBuyer[], leavers: readonly Leaver[]): Promise<void> {
  await service.stop();
  const context = `after the last round, seed ${seed}`;
  for (const buyer of all) expect(await claimedOf(network, buyer.id), context).toBe(buyer.told().charged);
  const charged = all.reduce((sum, buyer) => sum + buyer.told().charged, 0n);
  const writtenOff = ask<number>(file, 'SELECT coalesce(sum(written_off), 0) FROM channels');
  expect([await balanceOf(network, network.seller), BigInt(writtenOff)], context).toEqual([charged, 0n]);
  await network.rpc('evm_increaseTime', [DELAY_SECONDS + 1]);
  for (const leaver of leavers) await leaver.takeRest(context);
}

// A slow lane: a payer's withdrawal may meet a claim that lowers what is left, and then this test's own call is refused.
test.runIf(process.env.SLOW !== undefined || process.env.ROUNDS !== undefined)(
  `${ROUNDS} times kill -9 during deposits, vouchers, claims and refunds: no answered call is lost, no deposit is made twice, and each buyer is charged what it was told`,
  async () => {
    const ends = new Map<End, number>();
    const leavers: Leaver[] = [];
    const sum = { answered: 0, claims: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      const context = `seed ${seed}, round ${round} (run again with SEED=${seed})`;
      const leaver = await chooseLeaver(round);
      const trading = Promise.all([...buyers.map(({ trade }) => trade(context)), leaver?.leave()]);
      // A buyer's failed expectation ends the round at once.
      await Promise.race([trading, delay(random() * LONGEST_MS)]);
      await service.kill();
      await trading;
      const find = salesLeft();
      const openClaims = "SELECT count(*) AS n FROM channel_operations WHERE kind = 'claim' AND state = 'open'";
      sum.claims += left<{ n: number }>(file, openClaims)[0]?.n ?? 0;
      const heard = new Map(buyers.map((buyer) => [buyer, buyer.takeHeard()]));
      for (const [buyer, answers] of heard) {
        for (const { attempt, body } of answers)
          expect(find(buyer, attempt), context).toMatchObject({ state: 'settled', reply: body });
        sum.answered += answers.length;
      }
      await start();
      const comingBack = [...heard].map(async ([buyer, answers]) => {
        const end = await buyer.comeBack((attempt) => find(buyer, attempt), context);
        ends.set(end, (ends.get(end) ?? 0) + 1);
        for (const answer of answers.slice(-2)) await buyer.checkAgain(answer, context);
        buyer.takeHeard();
      });
      await Promise.all([...comingBack, leaver?.finish(context)]);
      if (leaver) {
        leavers.push(leaver);
        buyers.push(await newKillBuyer(network, service.origin, random));
      }
      await Promise.all(
        [...buyers, ...leavers.slice(-1).map(({ buyer }) => buyer)].map((one) => checkSums(one, context)),
      );
      const open = "SELECT count(*) FROM usdc_payments WHERE state NOT IN ('settled', 'failed')";
      expect(ask<number>(file, open), context).toBe(0);
    }
    await checkClaims([...buyers, ...leavers.map(({ buyer }) => buyer)], leavers);
    // The kills must have interrupted vouchers and deposits, before and after they were paid. Otherwise this test shows nothing.
    expect(sum.answered).toBeGreaterThan(ROUNDS);
    expect(ends.get('voucher charged, delivered again')).toBeGreaterThan(0);
    expect(ends.get('deposit sent, delivered again')).toBeGreaterThan(0);
    expect(ask<string>(file, 'PRAGMA integrity_check')).toBe('ok');
    const gone = Object.groupBy(leavers, ({ kind }) => kind);
    const told = { ...sum, refunds: gone.refund?.length ?? 0, withdrawals: gone.withdrawal?.length ?? 0 };
    process.stdout.write(
      `${ROUNDS} kills, seed ${seed}: ${JSON.stringify({ ...told, ...Object.fromEntries(ends) })}\n`,
    );
  },
  ROUNDS * 30_000,
);
