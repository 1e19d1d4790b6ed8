import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { type SlowChain, startSlowChain } from '../support/chain/slow-chain.ts';
import { hashOfPreimage, type LightningProof, offeredBy, proofHeader } from '../support/lightning/lightning-buyer.ts';
import { formsOf } from '../support/lightning/settle-calls.ts';
import { SPELLINGS, type Spellings, spellingsOf } from '../support/lightning/spellings.ts';
import { seed, seededRandom } from '../support/random.ts';
import { createProcess } from '../support/service/process.ts';
import { type Answer, call } from '../support/service/service.ts';
import { decoded } from '../support/usdc/buyer.ts';

const KILLS = process.env.SLOW ? 200 : 2;
const BUYERS = 6;
/** Longer than a presentation takes, so that kills come before, during and after it. */
const LONGEST_MS = 800;
/** Delay of one chain request while buyers are active, in ms. */
const SLOW_MS = 60;
/** The same in the round that waits for an open claim: long enough for the test to see the claim. */
const SLOWEST_MS = 200;

let network: EmbeddedNetwork;
let chain: SlowChain;
let folder: string;
let service: Awaited<ReturnType<typeof createProcess>>;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ lightning: true });
  chain = await startSlowChain(network.rpcUrl);
  folder = mkdtempSync(join(tmpdir(), 'percall-lightning-kill-'));
  service = await createProcess(network, folder, { RPC_URLS: chain.url, LOG_LEVEL: 'debug', COLLECTOR: 'off' });
  await service.start();
});
afterAll(async () => {
  await service?.kill();
  await chain?.stop();
  await network?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Reads the ledger's own file beside the service. */
function ledger<T>(sql: string, ...values: unknown[]): T {
  const db = new Database(join(folder, 'ledger.db'), { readonly: true });
  try {
    const statement = db.prepare<unknown[], T>(sql).pluck();
    return statement.get(...values) as T;
  } finally {
    db.close();
  }
}

/** A buyer who had paid when the service was killed. */
interface Purchase {
  readonly path: string;
  readonly proof: LightningProof;
  /** The header fields that present it, in the protocol of this buyer. */
  readonly headers: Record<string, string>;
  /** The bodies of all answers. */
  readonly received: readonly string[];
}

/** Asks again while the node is away or the rates are late (503), until there is an offer. Null once the service is gone. */
async function offerOf(path: string): Promise<Answer | null> {
  for (;;) {
    const offered = await call(service.origin, path).catch(() => null);
    if (offered === null || offered.status === 402) return offered;
    const log = service
      .log()
      .split('\n')
      .filter((line) => line.includes('Lightning node'));
    expect(offered.body, log.slice(-5).join('\n')).toMatch(/"(lightning|btc_rate)_unavailable"/);
    await delay(100);
  }
}

/** Pays an offer, whatever happens to the seller meanwhile, and presents the proof on two connections. Null when there was no offer. */
async function buy(
  path: string,
  offer: Promise<Answer | null>,
  by: keyof Spellings,
  onPaid: () => void,
): Promise<Purchase | null> {
  const offered = await offer;
  if (offered === null) return null;
  const requirement = offeredBy(offered);
  const preimage = await network.lightning!.pay(requirement.extra.invoice);
  onPaid();
  const header = proofHeader(requirement, preimage);
  const proof = { header, preimage, paymentHash: hashOfPreimage(preimage), requirement };
  const headers = spellingsOf(offered, preimage)[by];
  const shown = [0, 50].map(async (ms) => {
    await delay(ms);
    return call(service.origin, path, { headers }).catch(() => null);
  });
  const answers = (await Promise.all(shown)).filter((answer) => answer !== null);
  for (const { status, body } of answers) expect([200, 409], body).toContain(status);
  return { path, proof, headers, received: answers.flatMap(({ status, body }) => (status === 200 ? [body] : [])) };
}

/** The purchase's state in the ledger after the kill. */
function leftOf({ proof }: Purchase): string {
  const sql = 'SELECT state || answer FROM lightning_claims WHERE payment_hash = ?';
  const left = ledger<string | undefined>(sql, Buffer.from(proof.paymentHash, 'hex'));
  return { claimednone: 'claimed', claimedkept: 'answered', deliveredkept: 'delivered' }[left ?? ''] ?? 'unclaimed';
}

/** After the restart the proof buys its one answer, and presenting it again brings the same answer. Returns the purchase with that answer. */
async function checkPayment(purchase: Purchase, context: string): Promise<Purchase> {
  const { path, proof, headers, received } = purchase;
  const bodies = new Set(received);
  // In the buyer's own protocol, then in x402: one answer.
  for (const shown of [headers, { 'payment-signature': proof.header }]) {
    const answer = await call(service.origin, path, { headers: shown });
    expect(answer.status, `${context}: ${answer.body}`).toBe(200);
    expect(decoded(answer, 'payment-response'), context).toMatchObject({ transaction: proof.paymentHash });
    bodies.add(answer.body);
  }
  expect(bodies.size, context).toBe(1);
  return { ...purchase, received: [...bodies] };
}

/** The contents of the directory's files and of the log, in which preimages are searched. */
function tracesOf(purchases: readonly Purchase[]): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)));
  const places = [...files, Buffer.from(service.log())];
  return purchases.flatMap(({ proof }) =>
    formsOf(proof.preimage).some((form) => places.some((place) => place.includes(form))) ? [proof.paymentHash] : [],
  );
}

/**
 * Resolves when this round's kill is due. In the first round that is before a proof can be claimed, in the second while a claim waits for its answer.
 * So both cases occur on every machine. In later rounds the kill comes some time after some buyers have paid.
 */
async function untilDue(round: number, paid: Promise<void>, random: () => number): Promise<void> {
  if (round === 1) {
    const open = "SELECT count(*) FROM lightning_claims WHERE state = 'claimed'";
    while (ledger<number>(open) === 0) await delay(2);
    return;
  }
  await paid;
  if (round > 1) await delay(random() * LONGEST_MS);
}

test(
  `${KILLS} times kill -9 while buyers pay and present over Lightning: every buyer who paid gets the one answer after the restart`,
  async () => {
    const random = seededRandom('lightning-kill');
    const left: Record<string, number> = { unclaimed: 0, claimed: 0, answered: 0, delivered: 0 };
    const everything: Purchase[] = [];
    /** What was delivered before the kill. */
    let earlier: Purchase[] = [];
    for (let round = 0; round < KILLS; round++) {
      const context = `seed ${seed}, round ${round} (run again with SEED=${seed})`;
      chain.slow(() => (round === 1 ? SLOWEST_MS : random() * SLOW_MS));
      const path = (buyer: number) =>
        `/v1/lightning/chain/wallet?address=0x${(round * BUYERS + buyer).toString(16).padStart(40, '0')}`;
      const { promise: paid, resolve } = Promise.withResolvers<void>();
      let missing = round === 0 ? 1 : Math.floor(random() * (BUYERS + 1));
      const onPaid = () => --missing <= 0 && resolve();
      if (missing === 0) resolve();
      const protocolOf = (buyer: number) => SPELLINGS[buyer % SPELLINGS.length] ?? 'x402';
      const offers = Array.from({ length: BUYERS }, (_, buyer) => offerOf(path(buyer)));
      // In the first round nobody pays before everybody has an offer: so buyers of each protocol pay, however early the kill comes.
      if (round === 0) await Promise.all(offers);
      const buying = offers.map((offer, buyer) => buy(path(buyer), offer, protocolOf(buyer), onPaid));
      await untilDue(round, paid, random);
      await service.kill();
      const purchases = (await Promise.all(buying)).filter((purchase) => purchase !== null);
      for (const purchase of purchases) {
        const state = leftOf(purchase);
        left[state] = (left[state] ?? 0) + 1;
        if (purchase.received.length > 0) expect(['answered', 'delivered'], context).toContain(state);
      }
      expect(tracesOf(purchases), context).toEqual([]);
      chain.slow(() => 0);
      await service.start();
      for (const purchase of earlier) await checkPayment(purchase, context);
      earlier = await Promise.all(purchases.map((purchase) => checkPayment(purchase, context)));
      everything.push(...purchases);
    }
    expect(ledger<number>('SELECT count(*) FROM lightning_claims')).toBe(everything.length);
    // In the slow lane the first answers are deleted, 15 minutes after their delivery.
    expect(ledger<number>("SELECT count(*) FROM lightning_claims WHERE answer = 'none'")).toBe(0);
    const kept = ledger<number>("SELECT count(*) FROM lightning_claims WHERE answer = 'kept'");
    expect(ledger<number>('SELECT count(*) FROM lightning_answers')).toBe(kept);
    // Shows that the search works: it finds the payment hash.
    const hash = Buffer.from(everything[0]?.proof.paymentHash ?? '', 'hex');
    expect(['ledger.db', 'ledger.db-wal'].some((name) => readFileSync(join(folder, name)).includes(hash))).toBe(true);
    expect(tracesOf(everything)).toEqual([]);
    expect(ledger<string>('PRAGMA integrity_check')).toBe('ok');
    // The buyers of each protocol paid.
    const protocols = 'SELECT count(DISTINCT protocol) FROM lightning_claims';
    expect(ledger<number>(protocols)).toBe(SPELLINGS.length);
    // The kills must have come both before and after claims; otherwise this test shows nothing.
    expect(left.unclaimed).toBeGreaterThan(0);
    expect((left.claimed ?? 0) + (left.answered ?? 0)).toBeGreaterThan(0);
    process.stdout.write(`${KILLS} kills, seed ${seed}: ${JSON.stringify(left)}\n`);
  },
  300_000 + KILLS * 60_000,
);
