import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { createAheadClock } from '../../support/ahead-clock.ts';
import { HANDLERS_WAIT, latchedEndpoint } from '../../support/service/latch.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { call, type Service, startService } from '../../support/service/service.ts';
import { balanceOf, errorOf, newBuyer, transfersOf } from '../../support/usdc/buyer.ts';
import {
  answerTo,
  challengeIn,
  credentialOf,
  newMppBuyer,
  nonceHex,
  presentMpp,
  problemIn as problem,
  receiptIn,
  refusalIn as refusal,
} from '../../support/usdc/mpp-buyer.ts';
import { headerOf, payloadOf } from '../../support/usdc/payments.ts';

const [PATH, OTHER_CLIENT, MINUTE_MS] = ['/v1/mpp/test/moody', '127.0.0.2', 60_000];
const moody = moodyEndpoint();
const latch = latchedEndpoint();
const catalogue = [moody.endpoint, latch.endpoint];

let network: EmbeddedNetwork;
let service: Service;
const clock = createAheadClock();
let tag = 0;
const fresh = () => `${PATH}?tag=m${++tag}`;

beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  service = await startService(network, { env: { MPP: 'on', ...HANDLERS_WAIT }, catalogue, clock });
});
afterAll(async () => {
  await service.stop();
  await network.stop();
});
beforeEach(() => {
  moody.recover();
  clock.aheadMs = 0;
});

const present = (path: string, payment: { header: string }, from?: string) =>
  presentMpp(service.origin, path, payment, from);

/** A service that soon answers that a settlement is unknown. It alone has a short wait, because a pause would end other sales with the same answer. */
async function openHasty(): Promise<Service> {
  const hasty = await startService(network, { env: { MPP: 'on', SETTLE_WAIT_MS: '1000' }, catalogue, clock });
  onTestFinished(hasty.stop);
  return hasty;
}

describe('the 402 under /v1/mpp', () => {
  test('has one challenge with the terms of the route, no PAYMENT-REQUIRED, and a problem as its body', async () => {
    const answer = await call(service.origin, PATH);
    const challenge = challengeIn(answer);
    expect([answer.status, answer.headers['cache-control']]).toEqual([402, 'no-store']);
    expect(answer.headers['payment-required']).toBeUndefined();
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(challenge).toMatchObject({ method: 'evm', intent: 'charge', realm: new URL(service.origin).host });
    expect(JSON.parse(Buffer.from(challenge.request ?? '', 'base64url').toString())).toEqual({
      amount: '500',
      currency: network.usdc.toLowerCase(),
      recipient: network.seller,
      methodDetails: { chainId: network.chainId, credentialTypes: ['authorization'], decimals: 6 },
    });
    expect(problem(answer)).toEqual({
      type: 'https://paymentauth.org/problems/payment-required',
      title: 'Payment required',
      status: 402,
      detail: expect.stringContaining('MPP'),
      code: 'payment_required',
      challengeId: challenge.id,
    });
  });

  test('has another challenge each time, and HEAD gets one too', async () => {
    const answers = [await call(service.origin, PATH), await call(service.origin, PATH)];
    const head = await call(service.origin, PATH, { method: 'HEAD' });
    const ids = [...answers, head].map((answer) => challengeIn(answer).id);
    expect(new Set(ids).size).toBe(3);
    expect([head.status, head.body]).toEqual([402, '']);
  });

  test('to a HEAD has a challenge that buys the GET of the same URL, and a HEAD with its payment takes nothing', async () => {
    const buyer = await newMppBuyer(network);
    const path = fresh();
    const challenge = challengeIn(await call(service.origin, path, { method: 'HEAD' }));
    const payment = answerTo(challenge, buyer.privateKey);
    const head = await call(service.origin, path, { method: 'HEAD', headers: { authorization: payment.header } });
    expect([head.status, await balanceOf(network, buyer.address)]).toEqual([402, 1_000_000n]);
    expect((await present(path, payment)).status).toBe(200);
  });

  test('stays within 8 KiB with a URL of 1,024 characters', async () => {
    const answer = await call(service.origin, `${PATH}?tag=`.padEnd(1024, 'x'));
    const size = Object.entries(answer.headers).reduce(
      (sum, [name, value]) => sum + name.length + String(value).length,
      0,
    );
    expect(answer.status).toBe(402);
    expect(size).toBeLessThan(2048);
  });

  test('is answered to an x402 payment too, which is taken under /v1/paid alone', async () => {
    const { header } = await (await newBuyer(network)).sign(service.origin, '/v1/paid/test/moody');
    const answer = await call(service.origin, PATH, { headers: { 'payment-signature': header } });
    expect(refusal(answer)).toEqual([402, 'payment-required', 'x402_not_here']);
    const paid = await call(service.origin, '/v1/paid/test/moody', { headers: { 'payment-signature': header } });
    expect(paid.status).toBe(200);
  });
});

test('the 402 of the same route under /v1/paid has no WWW-Authenticate', async () => {
  const answer = await call(service.origin, '/v1/paid/test/moody');
  expect([answer.status, answer.headers['www-authenticate']]).toEqual([402, undefined]);
});

describe('a sale by MPP', () => {
  test('takes the price once, and its receipt names the transaction and the challenge', async () => {
    const buyer = await newMppBuyer(network);
    const path = fresh();
    const payment = await buyer.sign(service.origin, path);
    const before = await balanceOf(network, buyer.address);
    const answer = await present(path, payment);
    expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'private, no-store']);
    expect(answer.headers['payment-response']).toBeUndefined();
    expect(before - (await balanceOf(network, buyer.address))).toBe(500n);
    expect(await transfersOf(network, payment)).toBe(1);
    const receipt = receiptIn(answer);
    expect(receipt).toMatchObject({ status: 'success', method: 'evm', chainId: network.chainId });
    expect(receipt.challengeId).toBe(payment.challenge.id);
    expect(await network.rpc('eth_getTransactionReceipt', [receipt.reference])).toMatchObject({ status: '0x1' });
    const found = JSON.parse((await call(service.origin, `/v1/payments/${nonceHex(payment)}`)).body);
    expect(found.payments).toMatchObject([{ rail: 'usdc', protocol: 'mpp', state: 'settled', amount: '500' }]);
  });

  test('is delivered again with the same bytes and receipt, from any address and after the challenge has expired', async () => {
    const path = fresh();
    const payment = await (await newMppBuyer(network)).sign(service.origin, path);
    const runs = moody.runs();
    const first = await present(path, payment);
    clock.aheadMs = 11 * MINUTE_MS;
    const again = [await present(path, payment), await present(path, payment, OTHER_CLIENT)];
    for (const { status, body, headers } of again) {
      expect([status, body, headers['payment-receipt']]).toEqual([200, first.body, first.headers['payment-receipt']]);
    }
    expect(moody.runs()).toBe(runs + 1);
    expect(await transfersOf(network, payment)).toBe(1);
  });

  test('cannot be fetched by another client that copied the authorization from the chain', async () => {
    const path = fresh();
    const payment = await (await newMppBuyer(network)).sign(service.origin, path);
    expect((await present(path, payment)).status).toBe(200);
    const { requirement } = await (await newBuyer(network)).sign(service.origin, '/v1/paid/test/moody');
    const header = headerOf(payloadOf(payment.authorization, requirement));
    // Neither from another address nor from the buyer's own, which others may share.
    for (const from of [OTHER_CLIENT, '127.0.0.1']) {
      const options = { headers: { 'payment-signature': header }, from };
      const copied = await call(service.origin, path.replace('/mpp/', '/paid/'), options);
      expect(errorOf(copied), from).toEqual([402, 'payment_already_used']);
    }
    // Without the challenge's id a credential cannot be made: another challenge has another nonce.
    const challenge = challengeIn(await call(service.origin, path, { from: OTHER_CLIENT }));
    const forged = await present(path, { header: credentialOf(challenge, payment.payload) }, OTHER_CLIENT);
    expect(refusal(forged)).toEqual([402, 'verification-failed', 'invalid_challenge_nonce']);
  });

  test('costs nothing when the handler fails, and the same credential buys later', async () => {
    const buyer = await newMppBuyer(network);
    const path = fresh();
    const payment = await buyer.sign(service.origin, path);
    moody.fail();
    const failed = await present(path, payment);
    expect([failed.status, problem(failed).charged, failed.headers['www-authenticate']]).toEqual([
      502,
      false,
      undefined,
    ]);
    expect(await balanceOf(network, buyer.address)).toBe(1_000_000n);
    moody.recover();
    expect((await present(path, payment)).status).toBe(200);
  });

  test('of 64 presentations at once, one runs; the others are told so, and one transfer moves', async () => {
    const path = '/v1/mpp/test/latch';
    const payment = await (await newMppBuyer(network)).sign(service.origin, path);
    latch.close();
    const runs = latch.runs();
    const answers = Array.from({ length: 64 }, () => present(path, payment));
    let answered = 0;
    for (const answer of answers) void answer.then(() => answered++);
    await expect.poll(() => answered, { interval: 5 }).toBe(63);
    latch.open();
    const all = await Promise.all(answers);
    expect(all.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 63 }, () => 409)]);
    for (const { headers } of all) expect(headers['www-authenticate']).toBeUndefined();
    expect(latch.runs()).toBe(runs + 1);
    expect(await transfersOf(network, payment)).toBe(1);
  });

  test('whose settlement is unknown is 503 and never asks for another payment; the same credential gets the answer', async () => {
    const path = fresh();
    const { origin } = await openHasty();
    const payment = await (await newMppBuyer(network)).sign(origin, path);
    await network.pauseMining();
    const unknown = await presentMpp(origin, path, payment);
    const { code, charged } = problem(unknown);
    expect([unknown.status, code, charged]).toEqual([503, 'settlement_unknown', 'unknown']);
    expect(unknown.headers['www-authenticate']).toBeUndefined();
    await network.resumeMining();
    await expect.poll(async () => (await presentMpp(origin, path, payment)).status).toBe(200);
    expect(await transfersOf(network, payment)).toBe(1);
  });

  test('that was never delivered says after seven days that it was charged', async () => {
    const path = fresh();
    const { origin, deps } = await openHasty();
    const payment = await (await newMppBuyer(network)).sign(origin, path);
    await network.pauseMining();
    expect((await presentMpp(origin, path, payment)).status).toBe(503);
    await network.resumeMining();
    const stateOf = async () =>
      JSON.parse((await call(origin, `/v1/payments/${nonceHex(payment)}`)).body).payments[0].state;
    await expect.poll(stateOf).toBe('settled');
    clock.aheadMs = 8 * 24 * 60 * MINUTE_MS;
    await deps.payments.ledger.purge();
    const gone = await presentMpp(origin, path, payment);
    expect([gone.status, problem(gone).code, problem(gone).charged]).toEqual([410, 'answer_gone', true]);
    expect(gone.headers['www-authenticate']).toBeUndefined();
  });
});

describe('the secret', () => {
  const [first, second] = ['a secret of more than 32 characters', 'another secret of 32 characters and more'];
  const origin = { MPP: 'on', PUBLIC_ORIGIN: 'http://percall.test' };
  const open = (env: Record<string, string>, dataDir?: string) =>
    startService(network, { env: { ...origin, ...env }, catalogue, clock, ...(dataDir && { dataDir }) });

  test('is shared by all instances, and the last one is accepted for an hour after a change', async () => {
    const [before, after] = [
      await open({ MPP_SECRET: first }),
      await open({ MPP_SECRET: second, MPP_SECRET_PREVIOUS: first }),
    ];
    const buyer = await newMppBuyer(network);
    const path = fresh();
    const early = await buyer.sign(before.origin, path);
    expect((await presentMpp(after.origin, path, early)).status).toBe(200);
    clock.aheadMs = 61 * MINUTE_MS;
    const validBefore = BigInt(Math.floor(Date.now() / 1000) + 7200);
    const late = await buyer.sign(before.origin, path, { validBefore });
    expect(refusal(await presentMpp(after.origin, path, late))).toEqual([
      402,
      'invalid-challenge',
      'invalid_challenge',
    ]);
    await before.stop();
    await after.stop();
  });

  test('may be lost: an answer that was paid is delivered all the same', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'percall-mpp-'));
    const before = await open({ MPP_SECRET: first }, folder);
    const path = fresh();
    const payment = await (await newMppBuyer(network)).sign(before.origin, path);
    const sold = await presentMpp(before.origin, path, payment);
    expect(sold.status).toBe(200);
    await before.stop();
    const after = await open({ MPP_SECRET: second }, folder);
    const again = await presentMpp(after.origin, path, payment, OTHER_CLIENT);
    expect([again.status, again.body, again.headers['payment-receipt']]).toEqual([
      200,
      sold.body,
      sold.headers['payment-receipt'],
    ]);
    await after.stop();
    rmSync(folder, { recursive: true, force: true });
  });
});

test('the mount is off by default', async () => {
  const off = await startService(network, { catalogue });
  expect((await call(off.origin, PATH)).status).toBe(404);
  await off.stop();
});
