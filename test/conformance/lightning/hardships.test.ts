import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { type EmbeddedLightning, startEmbeddedLightning } from '../../../dev/lightning/lightning.ts';
import { startJsonServer } from '../../../dev/lightning/lnd-rest.ts';
import { lightningProof } from '../../../scripts/lib/lightning/lightning-proofs.ts';
import { defineEndpoint, type Endpoint } from '../../../src/catalogue/endpoint.ts';
import type { Sources } from '../../../src/endpoints/sources.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { decodeInvoice } from '../../../src/payment/lightning/bolt11.ts';
import { createAheadClock } from '../../support/ahead-clock.ts';
import {
  type LightningProof,
  offeredBy,
  payFor,
  presentProof,
  proofHeader,
} from '../../support/lightning/lightning-buyer.ts';
import { type LightningService, startLightningService } from '../../support/lightning/lightning-service.ts';
import { HANDLERS_WAIT, latchedEndpoint } from '../../support/service/latch.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { call } from '../../support/service/service.ts';
import { decoded } from '../../support/usdc/buyer.ts';

/** Faults after a buyer has paid, and attempts of a buyer who has not. */
const moody = moodyEndpoint();
/** Its handler continues after the buyer has disconnected. */
const latch = latchedEndpoint('/test/latch', '0.0005');
const LATCHED = '/v1/lightning/test/latch';
const large = largeEndpoint(400_000);

/** Its answers have this many bytes each. */
function largeEndpoint(bytes: number) {
  let runs = 0;
  const path = '/test/large';
  const endpoint: Endpoint<Sources> = defineEndpoint({
    path,
    access: 'paid',
    priceUsd: '0.0005',
    label: 'Large',
    summary: 'Answers with many bytes.',
    notFor: null,
    tags: '',
    ofChain: false,
    params: z.object({ tag: z.string().default('none') }),
    result: z.strictObject({ text: z.string() }),
    example: { params: {}, result: { text: 'x' } },
    run: async () => {
      runs += 1;
      return { text: 'x'.repeat(bytes) };
    },
  });
  return { endpoint, path: `/v1/lightning${path}`, runs: () => runs };
}

const ahead = createAheadClock();
let lightning: EmbeddedLightning;
let service: LightningService;

const buy = (path: string, shop = service) => payFor(lightning.pay, shop.origin, path);
const present = (path: string, proof: { header: string }, shop = service) => presentProof(shop.origin, path, proof);
const problem = (body: string) => JSON.parse(body) as { code: string; charged: unknown; detail: string };
const refusal = (answer: Awaited<ReturnType<typeof call>>) => String(decoded(answer, 'payment-required').error);
const keyOf = ({ paymentHash }: LightningProof) => ({
  network: lightning.network,
  paymentHash: Buffer.from(paymentHash, 'hex'),
});
const claimOf = (proof: LightningProof, shop = service) => shop.deps.lightningStore.findClaim(keyOf(proof));
const loseKeptReply = ({ paymentHash }: LightningProof, shop = service) =>
  shop.sql(`DELETE FROM lightning_kept_replies WHERE payment_hash = x'${paymentHash}'`);

let tag = 0;
/** A request that was never made before. */
const fresh = (path = moody.path) => `${path}?tag=h${++tag}`;

/** Another service over the same node, for one test. */
async function withShop(
  run: (shop: LightningService) => Promise<void>,
  options: Parameters<typeof startLightningService>[1] = {},
  node = lightning,
): Promise<void> {
  const shop = await startLightningService(node, { catalogue: [moody.endpoint], ...options });
  try {
    await run(shop);
  } finally {
    await shop.stop();
  }
}

beforeAll(async () => {
  lightning = await startEmbeddedLightning();
  const catalogue = [moody.endpoint, latch.endpoint];
  service = await startLightningService(lightning, { catalogue, clock: ahead, env: HANDLERS_WAIT });
});
afterAll(async () => {
  await service?.stop();
  await lightning?.stop();
});
beforeEach(() => {
  moody.recover();
  moody.slow(0);
  ahead.aheadMs = 0;
});

describe('a buyer who disconnects', () => {
  /** Presents a proof and disconnects once the source has been asked, which answers after that. */
  async function leave(path: string, proof: LightningProof): Promise<void> {
    latch.close();
    onTestFinished(latch.open);
    const started = latch.started();
    const control = new AbortController();
    const headers = { 'payment-signature': proof.header };
    const gone = fetch(service.origin + path, { headers, signal: control.signal }).catch(() => null);
    await started;
    control.abort();
    expect(await gone).toBeNull();
    // The service has noticed it by the time that it answers a later request.
    expect((await present(path, proof)).status).toBe(409);
  }

  test('before the source answers gets the kept reply, and calls the source once', async () => {
    const path = fresh(LATCHED);
    const proof = await buy(path);
    const runs = latch.runs();
    await leave(path, proof);
    latch.open();
    const answers = [];
    while (answers.length < 3) {
      const answer = await present(path, proof);
      if (answer.status === 200) answers.push(answer.body);
      else expect(answer.status).toBe(409);
    }
    expect(new Set(answers).size).toBe(1);
    expect(latch.runs()).toBe(runs + 1);
  });

  test('before anything was sent has had no delivery', async () => {
    const path = fresh(LATCHED);
    const proof = await buy(path);
    await leave(path, proof);
    latch.open();
    await expect.poll(async () => (await claimOf(proof))?.grant?.answered).toBe(true);
    expect((await claimOf(proof))?.grant).toMatchObject({ state: 'claimed', deliveredAt: null });
    expect((await present(path, proof)).status).toBe(200);
    await expect.poll(async () => (await claimOf(proof))?.grant?.state).toBe('delivered');
  });
});

describe('a claim stays valid', () => {
  test('when the invoice expired between the check and the claim', async () => {
    const times: number[] = [];
    let aheadMs = 0;
    const clock: Clock = { ...systemClock, nowMs: () => times.shift() ?? Date.now() + aheadMs };
    await withShop(
      async (shop) => {
        const path = fresh();
        const proof = await payFor(lightning.pay, shop.origin, path);
        loseKeptReply(proof, shop);
        moody.fail(undefined, 1);
        const invoice = decodeInvoice(proof.requirement.extra.invoice);
        const last = (invoice!.createdAt + 300 + 60) * 1000 + 999;
        // The wait of the answer is measured from the first reading.
        times.push(last, last, last + 1);
        expect((await present(path, proof, shop)).status).toBe(502);
        expect(times).toEqual([]);
        expect((await claimOf(proof, shop))?.claimedAt).toBe(last + 1);
        aheadMs = 362_000;
        expect((await present(path, proof, shop)).status).toBe(200);
      },
      { clock },
    );
  });

  test('when the node is replaced, moves to another network, or is gone', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'percall-hardships-'));
    const env = { PUBLIC_ORIGIN: 'http://shop.example' };
    const [granted, paid, later, unpaid] = [fresh(), fresh(), fresh(), fresh()];
    const elsewhere = await startEmbeddedLightning();
    const testnet = await startEmbeddedLightning({ network: 'testnet' });
    try {
      const proofs = new Map<string, LightningProof>();
      await withShop(
        async (shop) => {
          for (const path of [granted, paid, later]) proofs.set(path, await buy(path, shop));
          loseKeptReply(proofs.get(granted)!, shop);
          moody.fail(undefined, 1);
          expect((await present(granted, proofs.get(granted)!, shop)).status).toBe(502);
        },
        { dataDir, env },
      );
      await withShop(
        async (shop) => {
          expect(offeredBy(await call(shop.origin, unpaid)).payTo).toBe(elsewhere.nodeId);
          expect((await present(granted, proofs.get(granted)!, shop)).status).toBe(200);
        },
        { dataDir, env },
        elsewhere,
      );
      await withShop(
        async (shop) => {
          expect(offeredBy(await call(shop.origin, unpaid)).network).toBe(testnet.network);
          const answers = [granted, later].map((path) => present(path, proofs.get(path)!, shop));
          for (const answer of await Promise.all(answers)) {
            expect(answer.status).toBe(200);
            expect(decoded(answer, 'payment-response').network).toBe(lightning.network);
          }
          const other = await present(fresh(), proofs.get(paid)!, shop);
          expect([other.status, refusal(other)]).toEqual([402, 'invalid_exact_lnbtc_request_mismatch']);
          shop.sql(`DELETE FROM lightning_invoices WHERE payment_hash = x'${proofs.get(paid)!.paymentHash}'`);
          expect(refusal(await present(paid, proofs.get(paid)!, shop))).toBe('network_mismatch');
        },
        { dataDir, env },
        testnet,
      );
      await withShop(
        async (shop) => {
          expect((await present(later, proofs.get(later)!, shop)).status).toBe(200);
          const used = await present(unpaid, proofs.get(later)!, shop);
          expect([used.status, refusal(used)]).toEqual([402, 'duplicate_settlement']);
          expect(decoded(used, 'payment-required').accepts).toEqual([]);
        },
        { dataDir, env: { ...env, LIGHTNING_RECEIVER: 'none' } },
      );
    } finally {
      await elsewhere.stop();
      await testnet.stop();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});

describe('an error to a buyer who has paid says what is true', () => {
  const SEVEN_DAYS = '7 days';

  test('before the claim, where the proof must be presented again before the invoice expires', async () => {
    await withShop(async (shop) => {
      const path = fresh();
      const proof = await buy(path, shop);
      shop.sql("CREATE TRIGGER full BEFORE INSERT ON lightning_claims BEGIN SELECT RAISE(ABORT, 'full'); END");
      const answer = await present(path, proof, shop);
      expect(answer.status).toBeGreaterThanOrEqual(500);
      expect(problem(answer.body).charged).toBe('unknown');
      expect(problem(answer.body).detail).not.toContain(SEVEN_DAYS);
      expect(problem(answer.body).detail).toContain('360 seconds');
      expect(await claimOf(proof, shop)).toBeNull();
      shop.sql('DROP TRIGGER full');
      expect((await present(path, proof, shop)).status).toBe(200);
    });
  });

  test("after a bug of ours, with the code of every bug and without the bug's message", async () => {
    const path = fresh();
    const proof = await buy(path);
    loseKeptReply(proof);
    moody.fail(new Error('a secret of the house') as never, 1);
    const answer = await present(path, proof);
    expect(answer.status).toBe(500);
    expect(answer.body).not.toContain('secret');
    expect(problem(answer.body)).toMatchObject({ code: 'internal', charged: 'unknown' });
    expect(problem(answer.body).detail).toContain(SEVEN_DAYS);
    ahead.aheadMs = 1000;
    expect((await present(path, proof)).status).toBe(200);
  });

  test('while a shared node cannot confirm, where the proof is kept for seven days and served once the node can', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'percall-hardships-'));
    const env = { PUBLIC_ORIGIN: 'http://shop.example', LIGHTNING_NODE_SHARED: 'true' };
    let shiftMs = 0;
    const clock: Clock = { ...systemClock, nowMs: () => Date.now() + shiftMs };
    const path = fresh();
    try {
      let proof: LightningProof | null = null;
      await withShop(
        async (shop) => {
          proof = await buy(path, shop);
        },
        { dataDir, env },
      );
      const away = { ...env, LIGHTNING_NODE_URL: 'http://127.0.0.1:9' };
      await withShop(
        async (shop) => {
          const answer = await present(path, proof!, shop);
          expect([answer.status, problem(answer.body).code]).toEqual([503, 'lightning_unavailable']);
          expect(problem(answer.body).detail).toContain(SEVEN_DAYS);
        },
        { dataDir, env: away, clock },
      );
      shiftMs = 6 * 24 * 3600_000;
      const runs = moody.runs();
      await withShop(
        async (shop) => {
          expect((await present(path, proof!, shop)).status).toBe(503);
        },
        { dataDir, env: away, clock },
      );
      expect(moody.runs()).toBe(runs);
      await withShop(async (shop) => expect((await present(path, proof!, shop)).status).toBe(200), {
        dataDir,
        env,
        clock,
      });
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});

test('exchanges that give no rate fail the rail’s check in /readyz, and are not among what paid calls need', async () => {
  const away = 'http://127.0.0.1:9';
  await withShop(
    async (shop) => {
      const check = async () => {
        // This service has no chain, so it is not ready for payments in USDC.
        const { detail, checks } = JSON.parse((await shop.get('/readyz')).body);
        expect(detail).toMatch(/^Not ready: (?!.*lightning)/);
        return checks.lightning;
      };
      expect(await check()).toEqual({ ok: true });
      const refused = await shop.get(fresh());
      expect([refused.status, problem(refused.body).code]).toEqual([503, 'btc_rate_unavailable']);
      ahead.aheadMs += 1000;
      const fault = { ok: false, detail: expect.stringContaining('The bitcoin price is not known now') };
      expect(await check()).toEqual(fault);
    },
    { clock: ahead, env: { UPSTREAM_COINBASE_URL: away, UPSTREAM_KRAKEN_URL: away } },
  );
});

describe('one proof is one answer', () => {
  const settle = (body: unknown) =>
    call(service.origin, '/facilitator/settle', { method: 'POST', body: JSON.stringify(body) });

  test('even when a node that forwarded the payment has claimed its hash for another payee', async () => {
    const path = fresh();
    const proof = await buy(path);
    const preimage = Buffer.from(proof.preimage, 'hex');
    const theirs = lightningProof({ preimage, createdAt: Math.floor(Date.now() / 1000) });
    expect(JSON.parse((await settle(theirs.body)).body)).toMatchObject({
      success: true,
      transaction: proof.paymentHash,
    });
    const answers = await Promise.all(Array.from({ length: 8 }, () => present(path, proof)));
    const served = answers.filter(({ status }) => status === 200);
    expect(served.length).toBeGreaterThan(0);
    expect(new Set(served.map(({ body }) => body)).size).toBe(1);
    expect(answers.every(({ status }) => status === 200 || status === 409)).toBe(true);
    expect((await present(path, proof)).body).toBe(served[0]?.body);
    const paymentPayload = JSON.parse(Buffer.from(proof.header, 'base64').toString('utf8'));
    for (const body of [theirs.body, { x402Version: 2, paymentPayload, paymentRequirements: proof.requirement }]) {
      expect(JSON.parse((await settle(body)).body)).toMatchObject({ errorReason: 'duplicate_settlement' });
    }
    // The hash is counted once, however often both payees come.
    const metrics = (await call(service.origin, '/metrics')).body;
    expect(metrics).toMatch(/^lightning_contested_hashes_total\{payee="ours"\} 1$/m);
  });

  test('for its request in every form of the request line, and for no other request', async () => {
    const path = fresh();
    const proof = await buy(path);
    const first = await present(path, proof);
    const raw = (target: string) => rawGet(service.origin, target, proof.header);
    expect(await raw(path)).toMatchObject([{ status: 200, body: first.body }]);
    expect(await raw(`http://evil.example${path}`)).toMatchObject([{ status: 200, body: first.body }]);
    const others = [`${path}&`, `${path.replace('=h', '=%68')}`, `${path}#`, `${path}?`, path.replace('?', '?&')];
    for (const target of others) {
      const [answer] = await raw(target);
      expect([400, 402], target).toContain(answer?.status);
    }
    for (const target of [`/${path}`, path.replace('/test', '//test')]) {
      expect((await raw(target))[0]?.status, target).toBe(404);
    }
    // Its path is the landing page's, which is not for sale.
    const [page] = await raw(`http://evil.example?${path}`);
    expect([page?.status, page?.body.startsWith('<!doctype html>')]).toEqual([200, true]);
  });

  test('for pipelined requests on one connection, which cause one run and get the bytes or are asked to wait', async () => {
    const path = fresh();
    const proof = await buy(path);
    moody.slow(100);
    const runs = moody.runs();
    const answers = await rawGet(service.origin, path, proof.header, 3);
    expect(answers.map(({ status }) => status)).toEqual([200, 409, 409]);
    expect(moody.runs()).toBe(runs + 1);
  });
});

/** The same GET this many times in a row, pipelined on one connection. */
function rawGet(origin: string, target: string, proof: string, times = 1) {
  const { hostname, port } = new URL(origin);
  return new Promise<{ status: number; body: string }[]>((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    const one = (last: boolean) =>
      `GET ${target} HTTP/1.1\r\nHost: evil.example\r\nPayment-Signature: ${proof}\r\n${last ? 'Connection: close\r\n' : ''}\r\n`;
    socket.write(Array.from({ length: times }, (_, at) => one(at === times - 1)).join(''));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('utf8');
    });
    socket.on('error', reject);
    socket.on('close', () => {
      const answers = text.split(/(?=HTTP\/1\.1 \d{3})/).filter(Boolean);
      const read = (answer: string) => ({
        status: Number(answer.slice(9, 12)),
        body: answer.split('\r\n\r\n')[1] ?? '',
      });
      resolve(answers.map(read));
    });
  });
}

describe('a client that has not paid', () => {
  test('and disconnects while the node makes an invoice is not logged as a failure of ours', async () => {
    const control = new AbortController();
    const left = Promise.withResolvers<void>();
    // The service makes an invoice when it starts, too.
    let isAsking = false;
    const { url, stop } = await startJsonServer(async ({ line, headers, body }) => {
      const [method, path] = line.split(' ') as [string, string];
      if (method === 'POST' && isAsking) {
        control.abort();
        await left.promise;
      }
      const macaroon = { 'Grpc-Metadata-macaroon': String(headers['grpc-metadata-macaroon']) };
      const sent = method === 'POST' ? { method, body: JSON.stringify(body) } : { method };
      const answer = await fetch(`${lightning.lndUrl}${path}`, { headers: macaroon, ...sent });
      return { status: answer.status, body: (await answer.json()) as object };
    });
    try {
      await withShop(
        async (shop) => {
          const counted = async () =>
            (await call(shop.origin, '/metrics')).body
              .split('\n')
              .filter((line) => line.startsWith('http_requests_total') && line.includes(moody.path))
              .map((line) => /status="(\d+)"/.exec(line)?.[1])
              .sort();
          isAsking = true;
          const gone = fetch(shop.origin + fresh(), { signal: control.signal }).catch(() => null);
          expect(await gone).toBeNull();
          // By the answer to a later connection the service has seen that this one is closed.
          await call(shop.origin, '/metrics');
          left.resolve();
          await expect.poll(counted).toEqual(['499']);
          expect((await call(shop.origin, fresh())).status).toBe(402);
          expect(await counted()).toEqual(['402', '499']);
        },
        { env: { LIGHTNING_NODE_URL: url } },
      );
    } finally {
      await stop();
    }
  });

  test('fills at most half of the reply quota, and a client that has paid is still served', async () => {
    await withShop(
      async (shop) => {
        const path = `${large.path}?tag=${++tag}`;
        const proof = await buy(path, shop);
        const ask = (from: string) => call(shop.origin, `${large.path}?tag=${++tag}`, { from });
        const statuses = [];
        for (const client of [1, 1, 1, 2, 2]) statuses.push((await ask(`127.0.1.${client}`)).status);
        // Of four fifths of two mebibytes, and never more than is left.
        expect(statuses).toEqual([402, 402, 503, 402, 503]);
        const full = await ask('127.0.1.3');
        expect(problem(full.body)).toMatchObject({ code: 'reply_store_full', charged: false });
        expect(full.headers['retry-after']).toBeDefined();
        expect(await shop.deps.lightningStore.bodyBytes()).toBeLessThan(2 * 1024 * 1024);
        const refused = await present(path, { header: proofHeader(proof.requirement, '00'.repeat(32)) }, shop);
        expect([refused.status, refusal(refused)]).toEqual([402, 'invalid_exact_lnbtc_preimage_hash_mismatch']);
        expect(decoded(refused, 'payment-required').accepts).toEqual([]);
        const runs = large.runs();
        expect((await present(path, proof, shop)).status).toBe(200);
        expect(large.runs()).toBe(runs + 1);
        // The reply of the paid offer has left the quota. Then the quota fills again, except for the reserve of clients that have paid.
        const after = [];
        for (const from of ['127.0.1.3', '127.0.1.4', '127.0.0.1']) after.push((await ask(from)).status);
        expect(after).toEqual([402, 503, 402]);
      },
      { catalogue: [large.endpoint], env: { REPLY_STORE_MB: '4' } },
    );
  });
});
