import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acceptMismatch } from '../../../scripts/lib/ledger/beside-service.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { channelBuyer } from '../../support/channels/channel-buyer.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { channelEnv } from '../../support/channels/stock-buyer.ts';
import { readFigures } from '../../support/service/metric.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';
import { buyOnce, decoded, newBuyer, type Payment, present } from '../../support/usdc/buyer.ts';
import { GATEWAY_WALLET, withGatewayNetwork } from '../../support/usdc/gateway-network.ts';
import { signForGateway } from '../../support/usdc/gateway-payment.ts';
import { newOutsider } from '../../support/usdc/outsider.ts';
import { headerOf, payloadOf, type Requirement } from '../../support/usdc/payments.ts';

const PATH = '/v1/paid/fees/estimate';
const RAILS = ['usdc-exact', 'usdc-gateway', 'usdc-channels'];
const { network, gateway, gatewayEnv } = withGatewayNetwork();

let dataDir: string;
let service: Service | null = null;
const channels = channelEnv('0.01');
beforeAll(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'percall-books-'));
});
afterAll(async () => {
  await service?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

function inLedger<T>(work: (db: Database.Database) => T): T {
  const db = new Database(join(dataDir, 'ledger.db'));
  try {
    return work(db);
  } finally {
    db.close();
  }
}
const all = <Row>(sql: string) => inLedger((db) => db.prepare<[], Row>(sql).all());
const missing = () =>
  all<{ rail: string; item: string; amount: number; accepted_at: number | null }>(
    "SELECT rail, item, amount, accepted_at FROM book_entries WHERE kind = 'missing' ORDER BY rail, item",
  );
const amounts = () => Object.fromEntries(missing().map(({ rail, item, amount }) => [`${rail} ${item}`, amount]));
const unread = () => all<{ item: string }>("SELECT item FROM book_entries WHERE kind = 'unread'");

/** Starts the service, and returns it once its first round over the books has ended. */
async function started(env: Record<string, string> = {}): Promise<Service> {
  const since = Date.now();
  await service?.stop();
  service = await startService(network, {
    dataDir,
    env: { ...gatewayEnv(), ...channels, PRICES: 'fees/estimate=0.0005', ...env },
  });
  await until('a round has ended', () =>
    all<{ at: number }>("SELECT noted_at AS at FROM book_entries WHERE kind = 'checked'").some(({ at }) => at >= since),
  );
  return service;
}
async function stopped(): Promise<void> {
  await service?.stop();
  service = null;
}

/** A payment by a payer with a deposit in the Gateway and nothing on the chain. */
async function batched({ get }: Service): Promise<Payment> {
  const { privateKey, address } = await newBuyer(network, 0n);
  const accepts = decoded(await get(PATH), 'payment-required').accepts as Requirement[];
  const requirement = accepts.find(({ extra }) => extra.verifyingContract === GATEWAY_WALLET) as Requirement;
  gateway.deposit(address, BigInt(requirement.amount));
  const authorization = signForGateway(privateKey, requirement, GATEWAY_WALLET);
  return { authorization, requirement, header: headerOf(payloadOf(authorization, requirement)) };
}

/** An outsider pays this much of its own USDC to the seller. Returns the transaction's hash. */
async function transferToSeller(units: bigint): Promise<string> {
  const outsider = await newOutsider(network);
  await network.fundUsdc(outsider.address, units);
  const words = [network.seller.slice(2).toLowerCase(), units.toString(16)].map((text) => text.padStart(64, '0'));
  return outsider.send(`0xa9059cbb${words.join('')}`);
}

/** Copies a row under another id, with what is given. Columns that are keys get new values. */
function plant(id: string, of: string, set: Record<string, unknown> = {}): void {
  inLedger((db) => {
    const row = db.prepare<[string], Record<string, unknown>>('SELECT * FROM usdc_payments WHERE id = ?').get(of);
    const planted = { ...row, id, nonce: randomBytes(32), identifier_hash: null, ...set };
    const names = Object.keys(planted);
    db.prepare(`INSERT INTO usdc_payments (${names}) VALUES (${names.map((name) => `@${name}`)})`).run(planted);
  });
}

describe('the books against the chain', { shuffle: false }, () => {
  let [exact, other, inGateway, deposit] = ['', '', '', ''];
  const price = 500;

  test('have no difference after calls over all rails, their batch and their claims, whatever is compared again', async () => {
    const selling = await started();
    for (let call = 0; call < 2; call++) expect((await buyOnce(network, selling.origin, PATH)).answer.status).toBe(200);
    for (let call = 0; call < 2; call++)
      expect((await present(selling.origin, PATH, await batched(selling))).status).toBe(200);
    const entry = await untilChannelsAreOffered(selling.origin + PATH);
    const payer = await newBuyer(network);
    const channel = channelBuyer(payer.privateKey, entry);
    const headers = [channel.deposit(10_000n, 500n), channel.voucher(1000n), channel.voucher(1500n)];
    for (const [at, header] of headers.entries())
      expect((await present(selling.origin, `${PATH}?gas=${21_000 + at}`, { header })).status).toBe(200);
    gateway.batch(await transferToSeller(1000n));
    const known =
      'SELECT payment_id FROM gateway_transfers WHERE transaction_hash IS NOT NULL AND next_check_at IS NULL';
    await until('the batch is known', () => all(known).length === 2);
    // The last claims are sent now.
    await stopped();
    expect(all("SELECT id FROM channel_operations WHERE kind = 'claim' AND state = 'done'")).toHaveLength(1);
    await started();
    expect([missing(), unread()]).toEqual([[], []]);
    const figures = await readFigures((service as Service).origin);
    for (const rail of RAILS) expect(figures(`ledger_mismatch_usdc{rail="${rail}"}`), rail).toBe(0);
    expect(figures('ledger_surplus_total')).toBe(0);
    const ids = (where: string) =>
      all<{ id: string }>(`SELECT id FROM usdc_payments WHERE state = 'settled' AND ${where} ORDER BY id`);
    const plain = ids('length(transaction_hash) = 32 AND channel_id IS NULL').map(({ id }) => id);
    [exact, other] = [plain[0] as string, plain[1] as string];
    inGateway = ids('length(transaction_hash) = 16')[0]?.id as string;
    deposit = ids('length(transaction_hash) = 32 AND channel_id IS NOT NULL')[0]?.id as string;
  });

  test('find in the next round a shared, a missing and a wrong transfer on each rail, and stop the rails beyond the limit', async () => {
    await stopped();
    plant('shared', exact);
    plant('lost', exact, { transaction_hash: randomBytes(32) });
    plant('none', exact, { transaction_hash: null });
    plant('batch', inGateway, { transaction_hash: randomBytes(16) });
    plant('deposit', deposit, { transaction_hash: randomBytes(32), voucher_max: 7777 });
    inLedger((db) => {
      db.prepare('UPDATE usdc_payments SET amount = amount + 1 WHERE id = ?').run(other);
      const copied = db.prepare(
        "INSERT INTO gateway_transfers SELECT 'batch', transfer_id, status, transaction_hash, checks, NULL FROM gateway_transfers WHERE payment_id = ?",
      );
      copied.run(inGateway);
      db.prepare('UPDATE channels SET charged = charged + 1, total_claimed = total_claimed + 1').run();
      db.prepare("UPDATE channel_operations SET amount = amount + 2 WHERE kind = 'claim'").run();
    });
    const { id: channelId } = all<{ id: Buffer }>('SELECT id FROM channels')[0] as { id: Buffer };
    const { id: claim } = all<{ id: string }>("SELECT id FROM channel_operations WHERE kind = 'claim'")[0] as {
      id: string;
    };
    const selling = await started({ LEDGER_MISMATCH_STOPS_USDC: '0.0015' });
    const gatewayRows = Object.entries(amounts()).filter(([key]) => key.startsWith('usdc-gateway'));
    expect(gatewayRows.map(([, amount]) => amount)).toEqual([price]);
    expect(Object.fromEntries(Object.entries(amounts()).filter(([key]) => !key.startsWith('usdc-gateway')))).toEqual({
      'usdc-exact shared': price,
      'usdc-exact lost': price,
      'usdc-exact none': price,
      [`usdc-exact ${other}`]: price + 1,
      'usdc-channels deposit': 10_000,
      [`usdc-channels channel:${bytesToHex(channelId)}`]: 1,
      [`usdc-channels claim:${claim}`]: 2,
    });
    const figures = await readFigures(selling.origin);
    expect(figures('ledger_mismatch_usdc{rail="usdc-exact"}')).toBe(0.002001);
    expect(figures('ledger_mismatch_usdc{rail="usdc-gateway"}')).toBe(0.0005);
    await until('the rail is stopped', async () => (await selling.get('/readyz')).status === 503);
    const buyer = await newBuyer(network);
    const refused = await present(selling.origin, PATH, await buyer.sign(selling.origin, PATH));
    expect([refused.status, JSON.parse(refused.body).code]).toEqual([503, 'settlement_unavailable']);
    expect(refused.body).toContain('the chain lacks 0.002001 USDC of what the ledger has on this rail (entries: 4)');
    expect(JSON.parse(refused.body).charged).toBe(false);
    // Below the limit, a rail sells on.
    expect((await present(selling.origin, PATH, await batched(selling))).status).toBe(200);
  });

  test('sell again beside the running service once the operator accepts the difference, also after a restart', async () => {
    const selling = service as Service;
    const printed: string[] = [];
    const print = (line: string) => void printed.push(line);
    await acceptMismatch({ location: { dataDir }, clock: systemClock, print });
    expect(printed.at(-1)).toBe('accepted 0.012504 USDC');
    expect(printed).toContainEqual(expect.stringMatching(/^usdc-exact +shared +0\.0005 /));
    await until('the rail sells', async () => (await selling.get('/readyz')).status === 200);
    expect((await buyOnce(network, selling.origin, PATH)).answer.status).toBe(200);
    const again = await started({ LEDGER_MISMATCH_STOPS_USDC: '0.0015' });
    expect(missing().every(({ accepted_at: at }) => at !== null)).toBe(true);
    expect((await buyOnce(network, again.origin, PATH)).answer.status).toBe(200);
  });

  test('are whole again in the round after the rows were put right', async () => {
    await stopped();
    inLedger((db) => {
      db.prepare("DELETE FROM usdc_payments WHERE id IN ('shared', 'lost', 'none', 'deposit', 'batch')").run();
      db.prepare('UPDATE usdc_payments SET amount = amount - 1 WHERE id = ?').run(other);
      db.prepare('UPDATE channels SET charged = charged - 1, total_claimed = total_claimed - 1').run();
      db.prepare("UPDATE channel_operations SET amount = amount - 2 WHERE kind = 'claim' AND amount > 1000").run();
    });
    const { length } = missing();
    expect(length).toBeGreaterThan(0);
    await started();
    expect(missing()).toEqual([]);
  });

  test('stop nothing for dust, for a large gift and for a third party that sends an authorization of ours; they are counted', async () => {
    const selling = await started();
    // A third party sends the authorization before it is presented: it buys nothing, and its money is beyond the ledger.
    const buyer = await newBuyer(network);
    const payment = await buyer.sign(selling.origin, PATH);
    await (await newOutsider(network)).submit(payment.authorization);
    const raced = await present(selling.origin, PATH, payment);
    expect(raced.status).toBe(402);
    await transferToSeller(1n);
    await transferToSeller(5_000_000n);
    await network.mine(1300);
    const again = await started({ LEDGER_MISMATCH_STOPS_USDC: '0' });
    expect(missing()).toEqual([]);
    const figures = await readFigures(again.origin);
    expect(figures('ledger_surplus_usdc_total')).toBeCloseTo(5.000501, 6);
    expect(figures('ledger_surplus_total')).toBe(3);
    expect((await buyOnce(network, again.origin, PATH)).answer.status).toBe(200);
  });
});
