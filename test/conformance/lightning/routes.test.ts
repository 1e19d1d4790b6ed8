import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EmbeddedLightning, startEmbeddedLightning } from '../../../dev/lightning/lightning.ts';
import { NotFound, UpstreamFailed } from '../../../src/errors.ts';
import { MESSAGES } from '../../../src/facilitator/settle.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { bindHttp } from '../../../src/payment/lightning/binding.ts';
import { decodeInvoice } from '../../../src/payment/lightning/bolt11.ts';
import { offeredBy, payFor, presentProof, proofHeader } from '../../support/lightning/lightning-buyer.ts';
import { type LightningService, startLightningService } from '../../support/lightning/lightning-service.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { call } from '../../support/service/service.ts';
import { decoded } from '../../support/usdc/buyer.ts';

const MINUTE_MS = 60_000;
const moody = moodyEndpoint();
const other = moodyEndpoint('/test/other', '0.001');

let lightning: EmbeddedLightning;
let service: LightningService;
let shiftMs = 0;
/** Where the clock stands still; null while it goes. */
let stillMs: number | null = null;
const clock: Clock = { ...systemClock, nowMs: () => stillMs ?? Date.now() + shiftMs };

/** Stops the clock, and returns the time at which it stands. */
function stopClock(): number {
  stillMs = clock.nowMs();
  return stillMs;
}

/** Asks, pays, and keeps the proof. */
const buy = (path: string) => payFor(lightning.pay, service.origin, path);
const present = (path: string, proof: { header: string }) => presentProof(service.origin, path, proof);
const problem = (body: string) => JSON.parse(body) as { code: string; charged: unknown; detail: string };
const refusal = (answer: Awaited<ReturnType<typeof call>>) => String(decoded(answer, 'payment-required').error);
const recordsOf = () => service.deps.lightningStore;

/**
 * Another service, for a test that goes on after the node's invoices have expired by the service's clock.
 * There a refusal asks the node for a new invoice, finds it expired and does not ask again for a while.
 */
async function inAnotherShop(run: (shop: LightningService) => Promise<void>): Promise<void> {
  const shop = await startLightningService(lightning, { catalogue: [moody.endpoint], clock });
  try {
    await run(shop);
  } finally {
    await shop.stop();
  }
}

let tag = 0;
/** A request that was never made before. */
const fresh = (path = moody.path) => `${path}?tag=t${++tag}`;

beforeAll(async () => {
  lightning = await startEmbeddedLightning();
  service = await startLightningService(lightning, { catalogue: [moody.endpoint, other.endpoint], clock });
});
afterAll(async () => {
  await service.stop();
  await lightning.stop();
});
beforeEach(() => {
  stillMs = null;
  moody.recover();
  moody.slow(0);
  shiftMs = 0;
});

describe('the 402', () => {
  test('offers an invoice of our node that binds this request', async () => {
    const path = fresh();
    const answer = await call(service.origin, path);
    expect(answer.status).toBe(402);
    const { accepts, resource } = decoded(answer, 'payment-required') as {
      accepts: unknown[];
      resource: { url: string };
    };
    expect(resource.url).toBe(service.origin + path);
    expect(accepts).toHaveLength(1);
    const requirement = offeredBy(answer);
    const binding = bindHttp({ method: 'GET', url: service.origin + path, body: new Uint8Array() });
    const requestHash = Buffer.from(binding!.hash).toString('hex');
    expect(requirement).toEqual({
      scheme: 'exact',
      network: lightning.network,
      asset: 'BTC',
      amount: '1000',
      payTo: lightning.nodeId,
      maxTimeoutSeconds: 300,
      extra: {
        assetTransferMethod: 'bolt11',
        paymentFlow: 'upfront',
        invoice: expect.any(String),
        requestHash,
        requestBindingProfile: 'http:1',
        requestBindingParams: { headers: [] },
      },
    });
    const invoice = decodeInvoice(requirement.extra.invoice);
    expect(invoice).toMatchObject({ currency: 'bc', amountMsat: 1000n, expirySeconds: 300, hasDescription: false });
    expect(invoice!.descriptionHashes.map((hash) => Buffer.from(hash).toString('hex'))).toEqual([requestHash]);
    expect(Buffer.from(invoice!.payee).toString('hex')).toBe(lightning.nodeId);
  });

  test('has a body that repeats the header and adds the price', async () => {
    const answer = await call(service.origin, fresh());
    const { priceUsd, btcUsd, ...repeated } = JSON.parse(answer.body);
    expect(repeated).toEqual(decoded(answer, 'payment-required'));
    expect([priceUsd, btcUsd]).toEqual(['0.0005', '64000']);
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  test.each([
    ['another Host', { host: 'evil.example' }],
    ['forwarded headers', { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', forwarded: 'host=evil' }],
  ])('binds the configured origin whatever %s says', async (_name, headers) => {
    const path = fresh();
    const answer = await call(service.origin, path, { headers });
    expect((decoded(answer, 'payment-required') as { resource: { url: string } }).resource.url).toBe(
      service.origin + path,
    );
    const binding = bindHttp({ method: 'GET', url: service.origin + path, body: new Uint8Array() });
    expect(offeredBy(answer).extra.requestHash).toBe(Buffer.from(binding!.hash).toString('hex'));
  });

  test('binds the query byte for byte: another spelling is another request', async () => {
    const plain = offeredBy(await call(service.origin, `${moody.path}?tag=a`)).extra.requestHash;
    const escaped = offeredBy(await call(service.origin, `${moody.path}?tag=%61`)).extra.requestHash;
    expect(escaped).not.toBe(plain);
  });
});

describe('nothing is offered', () => {
  /** How often the node was asked for an invoice, by its own records. */
  const offeredNothing = async (path: string, options: Parameters<typeof call>[2], status: number) => {
    const before = await recordsOf().bodyBytes();
    const answer = await call(service.origin, path, options);
    expect(answer.status).toBe(status);
    expect(answer.headers['payment-required']).toBeUndefined();
    expect(await recordsOf().bodyBytes()).toBe(before);
    return answer;
  };

  test('for a request whose parameters are wrong', async () => {
    const answer = await offeredNothing(`${moody.path}?nonsense=1`, {}, 400);
    expect(problem(answer.body)).toMatchObject({ code: 'bad_parameter', charged: false });
  });

  test('for a request whose handler fails, which gets its own answer', async () => {
    moody.fail(new NotFound('No such thing.'), 1);
    await offeredNothing(fresh(), {}, 404);
    moody.fail(new UpstreamFailed('test', 'down'), 1);
    await offeredNothing(fresh(), {}, 502);
  });

  test('for HEAD, which would make the node create an invoice', async () => {
    const runs = moody.runs();
    const answer = await offeredNothing(moody.path, { method: 'HEAD' }, 405);
    expect(answer.headers.allow).toContain('GET');
    expect(moody.runs()).toBe(runs);
  });

  test('for a request with a body', async () => {
    await offeredNothing(moody.path, { headers: { 'content-length': '2' }, body: '{}' }, 400);
  });

  test('for a target that is not ASCII', async () => {
    await offeredNothing(`${moody.path}?tag=\u00e9`, {}, 400);
  });

  test.each(['%zz', '%a', '%'])('for a target with the broken escape %s', async (broken) => {
    const runs = moody.runs();
    const answer = await offeredNothing(`${moody.path}?tag=${broken}`, {}, 400);
    expect(problem(answer.body)).toMatchObject({ code: 'bad_parameter', charged: false });
    expect(moody.runs()).toBe(runs);
  });
});

describe('a paid retry', () => {
  test('gets the answer, with a receipt that names the payment hash and no payer', async () => {
    const path = fresh();
    const proof = await buy(path);
    const runs = moody.runs();
    const answer = await present(path, proof);
    expect(answer.status).toBe(200);
    // A new answer, not the one that was kept with the invoice.
    expect(JSON.parse(answer.body)).toEqual({ tag: `t${tag}`, run: runs + 1 });
    expect(decoded(answer, 'payment-response')).toEqual({
      success: true,
      transaction: proof.paymentHash,
      network: lightning.network,
    });
    expect(answer.headers['cache-control']).toBe('private, no-store');
  });

  test('gets the same bytes again for 15 minutes, then duplicate_settlement', () =>
    inAnotherShop(async (shop) => {
      const path = fresh();
      const boughtAtMs = stopClock();
      const proof = await payFor(lightning.pay, shop.origin, path);
      const first = await presentProof(shop.origin, path, proof);
      const runs = moody.runs();
      stillMs = boughtAtMs + 15 * MINUTE_MS - 5000;
      const again = await presentProof(shop.origin, path, proof);
      expect([again.status, again.body]).toEqual([200, first.body]);
      expect(again.headers['payment-response']).toBe(first.headers['payment-response']);
      expect(moody.runs()).toBe(runs);
      stillMs = boughtAtMs + 15 * MINUTE_MS + 5000;
      const late = await presentProof(shop.origin, path, proof);
      expect([late.status, refusal(late)]).toEqual([402, 'duplicate_settlement']);
    }));

  test('is refused for any other request, claimed or not, and the refusal does not use up the proof', async () => {
    const path = fresh();
    const proof = await buy(path);
    const early = await present(fresh(other.path), proof);
    expect([early.status, refusal(early)]).toEqual([402, 'invalid_exact_lnbtc_request_mismatch']);
    expect((await present(path, proof)).status).toBe(200);
    const spent = await present(fresh(other.path), proof);
    expect([spent.status, refusal(spent)]).toEqual([402, 'duplicate_settlement']);
    expect(decoded(spent, 'payment-response')).toEqual({
      success: false,
      errorReason: 'duplicate_settlement',
      transaction: '',
      network: lightning.network,
    });
  });

  test('with a quote of 1 sat is honoured after the rate has made it 2', async () => {
    const path = fresh();
    const proof = await buy(path);
    lightning.exchanges.set('32000');
    shiftMs = 61_000;
    try {
      expect(offeredBy(await call(service.origin, fresh())).amount).toBe('2000');
      expect(proof.requirement.amount).toBe('1000');
      expect((await present(path, proof)).status).toBe(200);
    } finally {
      lightning.exchanges.set('64000');
      shiftMs = 122_000;
      await call(service.origin, fresh());
    }
  });

  test('without the preimage, or with another, gets the reason and a new invoice', async () => {
    const path = fresh();
    const requirement = offeredBy(await call(service.origin, path));
    for (const [preimage, reason] of [
      [undefined, 'invalid_exact_lnbtc_preimage_missing'],
      ['xyz', 'invalid_exact_lnbtc_preimage_malformed'],
      ['00', 'invalid_exact_lnbtc_preimage_length'],
      ['00'.repeat(32), 'invalid_exact_lnbtc_preimage_hash_mismatch'],
    ] as const) {
      const answer = await present(path, { header: proofHeader(requirement, preimage) });
      expect([answer.status, refusal(answer)]).toEqual([402, reason]);
      expect(offeredBy(answer).extra.invoice).not.toBe(requirement.extra.invoice);
    }
  });

  test('that changes the offer is refused with the scheme’s own reason', async () => {
    const path = fresh();
    const { requirement, preimage } = await buy(path);
    const presentAs = async (change: object) => {
      const answer = await present(path, { header: proofHeader({ ...requirement, ...change }, preimage) });
      return [answer.status, refusal(answer)];
    };
    expect(await presentAs({ amount: '999' })).toEqual([402, 'invalid_exact_lnbtc_amount_mismatch']);
    expect(await presentAs({ network: 'eip155:5042' })).toEqual([402, 'network_mismatch']);
    expect(await presentAs({ maxTimeoutSeconds: 301 })).toEqual([402, 'invalid_exact_lnbtc_max_timeout_mismatch']);
    expect(await presentAs({ payTo: `02${'11'.repeat(32)}` })).toEqual([402, 'invalid_exact_lnbtc_pay_to_mismatch']);
    expect(await presentAs({ extra: {} })).toEqual([402, expect.stringContaining('invalid_exact_lnbtc_')]);
    expect((await present(path, { header: proofHeader(requirement, preimage) })).status).toBe(200);
  });

  test('after the invoice’s expiry is refused if it was never claimed, and served for seven days if it was', () =>
    inAnotherShop(async (shop) => {
      const [unclaimed, granted] = [fresh(), fresh()];
      const boughtAtMs = stopClock();
      const [late, kept] = [
        await payFor(lightning.pay, shop.origin, unclaimed),
        await payFor(lightning.pay, shop.origin, granted),
      ];
      // Claimed, with nothing delivered: new runs fail and the kept reply is lost.
      await loseKeptReply(shop, kept.paymentHash);
      moody.fail();
      expect((await presentProof(shop.origin, granted, kept)).status).toBe(502);
      moody.recover();
      stillMs = boughtAtMs + 361_000 + MINUTE_MS;
      expect(refusal(await presentProof(shop.origin, unclaimed, late))).toBe('invalid_exact_lnbtc_invoice_expired');
      stillMs = boughtAtMs + 7 * 24 * 60 * MINUTE_MS - 5000;
      const answer = await presentProof(shop.origin, granted, kept);
      expect(answer.status).toBe(200);
    }));

  test('after seven days is refused', () =>
    inAnotherShop(async (shop) => {
      const path = fresh();
      const boughtAtMs = stopClock();
      const proof = await payFor(lightning.pay, shop.origin, path);
      await loseKeptReply(shop, proof.paymentHash);
      moody.fail();
      expect((await presentProof(shop.origin, path, proof)).status).toBe(502);
      stillMs = boughtAtMs + 7 * 24 * 60 * MINUTE_MS + 5000;
      moody.recover();
      expect(refusal(await presentProof(shop.origin, path, proof))).toBe('duplicate_settlement');
    }));
});

/** Does what a damaged disk or a restored backup would do. */
async function loseKeptReply(shop: LightningService, paymentHash: string): Promise<void> {
  const key = { network: lightning.network, paymentHash: Buffer.from(paymentHash, 'hex') };
  const { lightningStore } = shop.deps;
  expect(await lightningStore.keptReply(key)).not.toBeNull();
  shop.sql(`DELETE FROM lightning_kept_replies WHERE payment_hash = x'${paymentHash}'`);
  expect(await lightningStore.keptReply(key)).toBeNull();
}

describe('a failing handler never costs the buyer', () => {
  test('the kept reply is delivered when every paid run fails', async () => {
    const path = fresh();
    const before = moody.runs();
    const proof = await buy(path);
    moody.fail();
    const answer = await present(path, proof);
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body)).toEqual({ tag: `t${tag}`, run: before + 1 });
    const again = await present(path, proof);
    expect(again.body).toBe(answer.body);
  });

  test('without a kept reply three failures are three errors, each later than the last, and then the answer comes', async () => {
    const path = fresh();
    const proof = await buy(path);
    await loseKeptReply(service, proof.paymentHash);
    moody.fail(new UpstreamFailed('test', 'moody'), 3);
    // The first wait is a second.
    stillMs = clock.nowMs();
    for (let attempt = 0; attempt < 3; attempt++) {
      const answer = await present(path, proof);
      expect(answer.status).toBe(502);
      expect(problem(answer.body)).toMatchObject({ code: 'upstream_failed', charged: 'unknown' });
      expect(problem(answer.body).detail).toContain('7 days');
      expect(answer.headers['retry-after']).toBeDefined();
      const early = await present(path, proof);
      expect([early.status, problem(early.body).code]).toEqual([503, 'paid_run_failed']);
      expect(problem(early.body)).toMatchObject({ charged: 'unknown', detail: expect.stringContaining('7 days') });
      stillMs += Number(early.headers['retry-after']) * 1000;
    }
    const answer = await present(path, proof);
    expect(answer.status).toBe(200);
    expect((await present(path, proof)).body).toBe(answer.body);
  });

  test('64 presentations at once run the handler one at a time, and all that are served get the same bytes', async () => {
    const path = fresh();
    const proof = await buy(path);
    moody.slow(100);
    moody.mostAtOnce();
    const runs = moody.runs();
    const answers = await Promise.all(Array.from({ length: 64 }, () => present(path, proof)));
    const served = answers.filter(({ status }) => status === 200);
    const waiting = answers.filter(({ status }) => status === 409);
    expect(served.length).toBeGreaterThan(0);
    expect(served.length + waiting.length).toBe(64);
    expect(new Set(served.map(({ body }) => body)).size).toBe(1);
    expect(problem(waiting[0]!.body)).toMatchObject({ code: 'payment_in_flight' });
    expect(moody.mostAtOnce()).toBe(1);
    expect(moody.runs()).toBe(runs + 1);
  });

  test('64 presentations at once of a claim whose run fails cause one run, and the others wait', async () => {
    const path = fresh();
    const proof = await buy(path);
    await loseKeptReply(service, proof.paymentHash);
    moody.slow(20);
    moody.fail();
    moody.mostAtOnce();
    const runs = moody.runs();
    // On a busy machine 64 requests take longer than a failed run makes the others wait.
    stillMs = clock.nowMs();
    const answers = await Promise.all(Array.from({ length: 64 }, () => present(path, proof)));
    stillMs = null;
    expect(answers.every(({ status }) => [502, 409, 503].includes(status))).toBe(true);
    expect([moody.mostAtOnce(), moody.runs()]).toEqual([1, runs + 1]);
    moody.recover();
    moody.slow(0);
    shiftMs = 60_000;
    expect((await present(path, proof)).status).toBe(200);
  });

  test('a buyer who disconnects has not lost the call', async () => {
    const path = fresh();
    const proof = await buy(path);
    moody.slow(300);
    const abort = new AbortController();
    const gone = fetch(service.origin + path, {
      headers: { 'payment-signature': proof.header },
      signal: abort.signal,
    }).catch(() => null);
    await delay(100);
    abort.abort();
    await gone;
    moody.slow(0);
    let answer = await present(path, proof);
    for (let tries = 0; answer.status === 409 && tries < 500; tries++) {
      await delay(20);
      answer = await present(path, proof);
    }
    expect(answer.status).toBe(200);
    // The run that the buyer left goes on. Other tests count the runs at once.
    await expect.poll(moody.mostAtOnce, { interval: 20 }).toBe(0);
  });
});

describe('one proof buys one answer, whichever side claims it', () => {
  const settle = (payload: { header: string }, requirement: unknown) => {
    const paymentPayload = JSON.parse(Buffer.from(payload.header, 'base64').toString('utf8'));
    return call(service.origin, '/facilitator/settle', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements: requirement }),
    });
  };

  test('claimed at the facilitator, it is refused by our routes', async () => {
    const path = fresh();
    const proof = await buy(path);
    const claimed = await settle(proof, proof.requirement);
    expect(JSON.parse(claimed.body)).toEqual({
      success: true,
      transaction: proof.paymentHash,
      network: lightning.network,
    });
    const answer = await present(path, proof);
    expect([answer.status, refusal(answer)]).toEqual([402, 'duplicate_settlement']);
  });

  test('spent on our routes, it is refused at the facilitator', async () => {
    const path = fresh();
    const proof = await buy(path);
    expect((await present(path, proof)).status).toBe(200);
    expect(JSON.parse((await settle(proof, proof.requirement)).body)).toEqual({
      success: false,
      errorReason: 'duplicate_settlement',
      message: MESSAGES.duplicate_settlement,
      transaction: '',
      network: lightning.network,
    });
  });
});

describe('the public information', () => {
  test('the lookup shows claimed, then delivered, and no payer', async () => {
    const path = fresh();
    const proof = await buy(path);
    const look = () => call(service.origin, `/v1/payments/${proof.paymentHash}`);
    expect((await look()).status).toBe(404);
    await loseKeptReply(service, proof.paymentHash);
    moody.fail();
    await present(path, proof);
    const shown = {
      rail: 'lightning',
      protocol: 'x402',
      amount: '1000',
      transaction: proof.paymentHash,
      block: null,
      at: expect.any(Number),
      explorerUrl: null,
    };
    expect(JSON.parse((await look()).body)).toEqual({ payments: [{ ...shown, state: 'claimed' }] });
    moody.recover();
    shiftMs = 1000;
    await present(path, proof);
    await expect
      .poll(async () => JSON.parse((await look()).body))
      .toEqual({
        payments: [{ ...shown, state: 'delivered' }],
      });
  });

  test('the descriptor shows node, rate and its age, the three protocols, and every route with its price', async () => {
    const descriptor = JSON.parse((await call(service.origin, '/v1/lightning')).body);
    expect(descriptor).toMatchObject({
      scheme: 'exact',
      network: lightning.network,
      asset: 'BTC',
      payTo: lightning.nodeId,
      btcUsd: '64000',
      rate: { exchanges: expect.any(Array), retrievedAt: expect.any(Number), ageSeconds: expect.any(Number) },
      routes: [
        { route: `GET ${moody.path}`, priceUsd: '0.0005' },
        { route: `GET ${other.path}`, priceUsd: '0.001' },
      ],
    });
    expect(descriptor.rate.exchanges).toHaveLength(3);
    expect(descriptor.protocols.map(({ name }: { name: string }) => name)).toEqual(['x402', 'l402', 'mpp']);
    expect(descriptor.spec).toMatch(/^https:\/\/github\.com\/.*lnbtc/);
  });

  test('no preimage is in any file of the ledger, as text or as bytes', async () => {
    const path = fresh();
    const proof = await buy(path);
    expect((await present(path, proof)).status).toBe(200);
    const bytes = Buffer.from(proof.preimage, 'hex');
    const forms = [bytes, Buffer.from(proof.preimage), Buffer.from(bytes.toString('base64'))];
    const files = service.ledgerFiles();
    expect(files.length).toBeGreaterThan(0);
    // Shows that the search works: it finds the payment hash.
    const hash = createHash('sha256').update(bytes).digest();
    expect(files.some((file) => file.includes(hash))).toBe(true);
    for (const file of files) for (const form of forms) expect(file.includes(form)).toBe(false);
  });
});

describe('limits and a missing node', () => {
  test('more invoices than a client may have are refused before handler and node are asked', async () => {
    const limited = await startLightningService(lightning, {
      catalogue: [moody.endpoint],
      env: { LIGHTNING_INVOICES_PER_MINUTE: '2' },
    });
    try {
      const ask = () => call(limited.origin, fresh());
      expect([(await ask()).status, (await ask()).status]).toEqual([402, 402]);
      const runs = moody.runs();
      const denied = await ask();
      expect(denied.status).toBe(429);
      expect(problem(denied.body).code).toBe('exact_lnbtc_invoice_issuance_denied');
      expect(denied.headers['retry-after']).toBeDefined();
      expect(moody.runs()).toBe(runs);
    } finally {
      await limited.stop();
    }
  });

  test('without a node the routes answer 503, the descriptor says null and the facilitator works', async () => {
    const bare = await startLightningService(lightning, {
      catalogue: [moody.endpoint],
      env: { LIGHTNING_RECEIVER: 'none' },
    });
    try {
      const answer = await call(bare.origin, fresh());
      expect([answer.status, problem(answer.body).code]).toEqual([503, 'lightning_unavailable']);
      expect(JSON.parse((await call(bare.origin, '/v1/lightning')).body).payTo).toBeNull();
      expect((await call(bare.origin, '/facilitator/supported')).status).toBe(200);
    } finally {
      await bare.stop();
    }
  });

  test('a proof of an earlier payment settles while the node does not answer, and no new offer is made', async () => {
    const face = await startEmbeddedLightning();
    const shop = await startLightningService(face, { catalogue: [moody.endpoint] });
    try {
      const path = fresh();
      const proof = await payFor(face.pay, shop.origin, path);
      await face.stop();
      const offered = await call(shop.origin, fresh());
      expect([offered.status, problem(offered.body).code]).toEqual([503, 'lightning_unavailable']);
      expect((await presentProof(shop.origin, path, proof)).status).toBe(200);
    } finally {
      await shop.stop();
      await face.stop();
    }
  });

  test('on a shared node only recorded invoices count, and the node confirms each payment', async () => {
    const shop = await startLightningService(lightning, {
      catalogue: [moody.endpoint],
      env: { LIGHTNING_NODE_SHARED: 'true' },
    });
    try {
      const [path, forgotten] = [fresh(), fresh()];
      const proof = await payFor(lightning.pay, shop.origin, path);
      expect((await presentProof(shop.origin, path, proof)).status).toBe(200);
      const lost = await payFor(lightning.pay, shop.origin, forgotten);
      shop.sql(`DELETE FROM lightning_invoices WHERE payment_hash = x'${lost.paymentHash}'`);
      const refused = await presentProof(shop.origin, forgotten, lost);
      expect([refused.status, refusal(refused)]).toEqual([402, 'exact_lnbtc_payment_not_paid']);
    } finally {
      await shop.stop();
    }
  });

  test('without a record our node’s signature is enough, at today’s price only', async () => {
    const path = fresh();
    const proof = await buy(path);
    service.sql(`DELETE FROM lightning_invoices WHERE payment_hash = x'${proof.paymentHash}'`);
    expect((await present(path, proof)).status).toBe(200);
    const dearer = fresh();
    const cheap = await buy(dearer);
    service.sql(`DELETE FROM lightning_invoices WHERE payment_hash = x'${cheap.paymentHash}'`);
    lightning.exchanges.set('32000');
    shiftMs = 183_000;
    try {
      expect(refusal(await present(dearer, cheap))).toBe('invalid_exact_lnbtc_amount_mismatch');
    } finally {
      lightning.exchanges.set('64000');
      shiftMs = 245_000;
      await call(service.origin, fresh());
    }
  });
});
