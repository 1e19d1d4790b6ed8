import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type EmbeddedLightning, startEmbeddedLightning, startExchanges } from '../../../dev/lightning/lightning.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { decodeInvoice } from '../../../src/payment/lightning/bolt11.ts';
import { readMacaroon, writeMacaroon } from '../../../src/payment/protocols/l402/l402.ts';
import { createAheadClock } from '../../support/ahead-clock.ts';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { type LightningRequirement, offeredBy } from '../../support/lightning/lightning-buyer.ts';
import { type LightningService, startLightningService } from '../../support/lightning/lightning-service.ts';
import { askedBy, SPELLINGS, type Spellings, spellingsOf } from '../../support/lightning/spellings.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Answer, call } from '../../support/service/service.ts';
import { decoded } from '../../support/usdc/buyer.ts';
import { type Challenge, credentialOf } from '../../support/usdc/mpp-buyer.ts';

/** Proofs of payments that were made in time, and presented when little of what shows it is left. */
const [MINUTE_MS, DAY_MS] = [60_000, 86_400_000];
const INVOICE_MS = 300_000;
/** The protocols that present a challenge with the proof. */
const CHALLENGED = ['l402', 'mpp'] as const;
const [FIRST, SECOND, THIRD] = ['first', 'second', 'third'].map((name) => `${name} secret of more than 32 characters`);

const moody = moodyEndpoint();
let tag = 0;
const fresh = () => `${moody.path}?tag=paid${++tag}`;

/** A paid invoice: the request that it is for, what the 402 asked, and the three spellings of its proof. */
interface Paid {
  readonly path: string;
  readonly preimage: string;
  readonly invoice: string;
  readonly macaroon: string;
  readonly challenge: Challenge;
  readonly requirement: LightningRequirement;
  readonly spelt: Spellings;
}

const problem = ({ body }: Answer) => JSON.parse(body) as { code: string; charged: unknown; detail: string };
/** Why a proof was refused. The receipt says so also where no new invoice can be made: the node's clock does not move with the service's. */
const refusalOf = (answer: Answer): unknown => decoded(answer, 'payment-response').errorReason;
const refusal = (answer: Answer): unknown[] => [answer.status, refusalOf(answer)];

let lightning: EmbeddedLightning;
beforeAll(async () => {
  lightning = await startEmbeddedLightning();
});
afterAll(() => lightning.stop());

/** Expects that a proof under a lost secret is refused with any other terms than the invoice's, and buys with these under any signature. */
async function expectBound(shop: LightningService, paid: Paid, other: Paid): Promise<void> {
  const { path, preimage, macaroon, challenge, invoice } = paid;
  const content = readMacaroon(Buffer.from(macaroon, 'base64'))!;
  const [services = '', until = ''] = content.caveats;
  const forged = (change: Partial<typeof content>) =>
    `L402 ${writeMacaroon(randomBytes(32), 'percall', { ...content, ...change }).toString('base64')}:${preimage}`;
  const request = JSON.parse(Buffer.from(challenge.request ?? '', 'base64url').toString());
  const asking = (change: object, ofChallenge: object = {}) => {
    const encoded = Buffer.from(JSON.stringify({ ...request, ...change })).toString('base64url');
    return credentialOf({ ...challenge, request: encoded, ...ofChallenge }, { preimage });
  };
  const details = request.methodDetails;
  const { paymentHash } = decodeInvoice(other.invoice)!;
  const cases: [string, string][] = [
    ['a token of another hash', forged({ identifier: Buffer.concat([Buffer.alloc(2), randomBytes(64)]) })],
    ['a token of another invoice', forged({ caveats: [services, until, `percall_invoice=${other.invoice}`] })],
    ['a token of no invoice', forged({ caveats: [services, until, 'percall_invoice=lnbc1'] })],
    ['a challenge of another amount', asking({ amount: '2' })],
    ['a challenge of another currency', asking({ currency: 'BTC' })],
    ['a challenge of another node', asking({ recipient: `02${'11'.repeat(32)}` })],
    ['a challenge of another invoice', asking({ methodDetails: { ...details, invoice: other.invoice } })],
    [
      'a challenge of another hash',
      asking({ methodDetails: { ...details, paymentHash: Buffer.from(paymentHash).toString('hex') } }),
    ],
    ['a challenge with more members', asking({ more: 'x' })],
    ['a challenge of another realm', asking({}, { realm: 'other.test' })],
    ['a challenge of another expiry', asking({}, { expires: '2999-01-01T00:00:00Z' })],
    ['a challenge with a digest', asking({}, { digest: 'x' })],
  ];
  for (const [title, authorization] of cases) {
    const answer = await call(shop.origin, path, { headers: { authorization } });
    expect(refusal(answer), title).toEqual([402, 'invalid_challenge']);
  }
  expect(decodeInvoice(invoice)).not.toBeNull();
  // The same terms under any signature: the preimage and our own record say the rest.
  expect((await call(shop.origin, path, { headers: { authorization: asking({}) } })).status).toBe(200);
  expect((await call(shop.origin, path, { headers: { authorization: forged({}) } })).status).toBe(200);
}

describeServices('a proof of a payment that was made in time', (ledgerEnv) => {
  let env: Record<string, string>;
  const clock = createAheadClock();
  /** When the last payment was made, by the machine's own clock. */
  let paidAtMs = 0;
  const folder = mkdtempSync(join(tmpdir(), 'percall-paid-proofs-'));

  beforeAll(async () => {
    env = { ...(await ledgerEnv()), PUBLIC_ORIGIN: 'http://percall.test' };
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  /** A service over the same ledger and the same node as every other one of this suite, at the nodes' own time. */
  function openShop(more: Record<string, string> = {}): Promise<LightningService> {
    clock.aheadMs = 0;
    moody.recover();
    moody.slow(0);
    const options = { catalogue: [moody.endpoint], clock, dataDir: folder, env: { ...env, ...more } };
    return startLightningService(lightning, options);
  }

  async function withShop(more: Record<string, string>, run: (shop: LightningService) => Promise<void>) {
    const shop = await openShop(more);
    try {
      await run(shop);
    } finally {
      await shop.stop();
    }
  }

  async function pay({ origin }: LightningService, path = fresh()): Promise<Paid> {
    const answer = await call(origin, path);
    const asked = askedBy(answer);
    const preimage = await lightning.pay(asked.invoice);
    paidAtMs = systemClock.nowMs();
    return { path, preimage, ...asked, requirement: offeredBy(answer), spelt: spellingsOf(answer, preimage) };
  }

  const present = ({ origin }: LightningService, { path, spelt }: Paid, by: keyof Spellings) =>
    call(origin, path, { headers: spelt[by] });

  /** Moves the clock to this long after the invoices have expired, and deletes what the service deletes by then. */
  async function passExpiry({ deps }: LightningService, ms: number): Promise<void> {
    // The tests before may have taken long. The clock never goes back.
    clock.aheadMs = Math.max(clock.aheadMs, paidAtMs + INVOICE_MS + ms - systemClock.nowMs());
    await deps.lightningStore.prune(clock.nowMs());
  }

  // One service for all of them. All is paid at first, because the nodes make no invoices of a later time.
  describe('as the time goes on', { shuffle: false }, () => {
    let shop: LightningService;
    /** By the protocol that presents it first, and by what it is for. */
    const bought = {} as Record<(typeof CHALLENGED)[number], Record<'left' | 'unserved' | 'last' | 'late', Paid>>;
    let claimed: Paid;
    beforeAll(async () => {
      shop = await openShop();
      for (const by of CHALLENGED)
        bought[by] = { left: await pay(shop), unserved: await pay(shop), last: await pay(shop), late: await pay(shop) };
      claimed = await pay(shop);
    });
    afterAll(() => shop?.stop());

    test('is claimed by the facilitator', async () => {
      const { requirement, preimage } = claimed;
      const payload = { x402Version: 2, accepted: requirement, payload: { preimage } };
      const body = JSON.stringify({ x402Version: 2, paymentPayload: payload, paymentRequirements: requirement });
      const answer = await call(shop.origin, '/facilitator/settle', { method: 'POST', body });
      expect(JSON.parse(answer.body)).toMatchObject({ success: true });
    });

    test('over x402 is refused once the invoice has expired', async () => {
      await passExpiry(shop, MINUTE_MS + 10_000);
      const answer = await present(shop, bought.l402.last, 'x402');
      expect(refusalOf(answer)).toBe('invalid_exact_lnbtc_invoice_expired');
    });

    test.each(CHALLENGED)(
      'over %s that comes late causes one run, however often its buyer leaves early',
      async (by) => {
        const paid = bought[by].left;
        await passExpiry(shop, 2 * MINUTE_MS);
        moody.slow(300);
        const runs = moody.runs();
        for (let visit = 0; visit < 3; visit++) {
          const control = new AbortController();
          const gone = fetch(shop.origin + paid.path, { headers: paid.spelt[by], signal: control.signal }).catch(
            () => null,
          );
          await expect.poll(moody.runs, { interval: 2 }).toBe(runs + 1);
          control.abort();
          expect(await gone).toBeNull();
          const key = { network: lightning.network, paymentHash: decodeInvoice(paid.invoice)!.paymentHash };
          await expect.poll(async () => (await shop.deps.lightningStore.findClaim(key))?.grant?.answered).toBe(true);
        }
        moody.slow(0);
        expect((await present(shop, paid, by)).status).toBe(200);
        expect(moody.runs()).toBe(runs + 1);
      },
    );

    test.each(CHALLENGED)('over %s that comes late and is not served is charged perhaps', async (by) => {
      await passExpiry(shop, 6 * DAY_MS);
      moody.fail();
      const failed = await present(shop, bought[by].unserved, by);
      moody.recover();
      expect([failed.status, problem(failed).charged]).toEqual([502, 'unknown']);
      expect(problem(failed).detail).toContain('7 days');
    });

    test.each(CHALLENGED)(
      'over %s buys its answer up to seven days after the invoice expired, and once',
      async (by) => {
        const paid = bought[by].last;
        await passExpiry(shop, 7 * DAY_MS - MINUTE_MS);
        expect((await present(shop, paid, 'x402')).status).not.toBe(200);
        const runs = moody.runs();
        const sold = await present(shop, paid, by);
        expect(sold.status).toBe(200);
        for (const again of SPELLINGS) expect((await present(shop, paid, again)).body, again).toBe(sold.body);
        expect(moody.runs()).toBe(runs + 1);
      },
    );

    test('is spent once the facilitator has claimed it, as long as it could be honoured', async () => {
      await passExpiry(shop, 7 * DAY_MS - MINUTE_MS);
      for (const by of CHALLENGED) expect(refusalOf(await present(shop, claimed, by)), by).toBe('duplicate_settlement');
    });

    test.each(CHALLENGED)('over %s is refused later', async (by) => {
      await passExpiry(shop, 7 * DAY_MS + MINUTE_MS);
      expect(refusalOf(await present(shop, bought[by].late, by))).toBe('invalid_exact_lnbtc_invoice_expired');
    });

    test.each(CHALLENGED)('over %s that was not served is kept for seven days more', async (by) => {
      await passExpiry(shop, 13 * DAY_MS - MINUTE_MS);
      expect((await present(shop, bought[by].unserved, by)).status).toBe(200);
    });
  });

  test('is honoured after two changes of the secret, and refused with a challenge that names anything else than the invoice', async () => {
    const paid: Paid[] = [];
    await withShop({ MPP_SECRET: FIRST! }, async (shop) => {
      for (let count = 0; count < 5; count++) paid.push(await pay(shop));
    });
    await withShop({ MPP_SECRET: THIRD!, MPP_SECRET_PREVIOUS: SECOND! }, async (shop) => {
      await expectBound(shop, paid[4]!, await pay(shop));
      for (const by of CHALLENGED) {
        const elsewhere = { ...paid[0]!, path: fresh() };
        expect(refusal(await present(shop, elsewhere, by)), by).toEqual([402, 'invalid_challenge']);
      }
      expect((await present(shop, paid[0]!, 'l402')).status).toBe(200);
      expect((await present(shop, paid[1]!, 'mpp')).status).toBe(200);
      await passExpiry(shop, 6 * DAY_MS);
      expect((await present(shop, paid[2]!, 'l402')).status).toBe(200);
      expect((await present(shop, paid[3]!, 'mpp')).status).toBe(200);
      expect(refusalOf(await present(shop, paid[0]!, 'mpp'))).toBe('duplicate_settlement');
    });
  });

  test('of a shared node is honoured late for the signature on its challenge, and refused without it', async () => {
    // The service compares the invoice with a price of its own time.
    const exchanges = await startExchanges({ usd: '64000', nowMs: clock.nowMs });
    onTestFinished(exchanges.stop);
    const { coinbase, kraken, bitstamp } = exchanges.urls;
    const rates = { UPSTREAM_COINBASE_URL: coinbase, UPSTREAM_KRAKEN_URL: kraken, UPSTREAM_BITSTAMP_URL: bitstamp };
    const shared = { ...rates, LIGHTNING_NODE_SHARED: 'true', MPP_SECRET: FIRST! };
    await withShop(shared, async (shop) => {
      const paid = [await pay(shop), await pay(shop)];
      await passExpiry(shop, DAY_MS);
      expect((await present(shop, paid[0]!, 'l402')).status).toBe(200);
      const { path, spelt, macaroon, preimage } = paid[1]!;
      const content = readMacaroon(Buffer.from(macaroon, 'base64'))!;
      const unsigned = writeMacaroon(randomBytes(32), 'percall', content).toString('base64');
      const authorization = `L402 ${unsigned}:${preimage}`;
      const refused = await call(shop.origin, path, { headers: { authorization } });
      expect(refusalOf(refused)).toBe('exact_lnbtc_payment_not_paid');
      expect((await call(shop.origin, path, { headers: spelt.mpp })).status).toBe(200);
    });
  });
});
