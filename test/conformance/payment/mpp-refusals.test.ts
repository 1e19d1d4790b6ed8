import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { createAheadClock } from '../../support/ahead-clock.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { call, type Service, startService } from '../../support/service/service.ts';
import { newBuyer } from '../../support/usdc/buyer.ts';
import {
  answerTo,
  credentialOf,
  type MppPayment,
  newMppBuyer,
  presentMpp,
  problemIn as problem,
  refusalIn as refusal,
} from '../../support/usdc/mpp-buyer.ts';

const [PATH, MINUTE_MS] = ['/v1/mpp/test/moody', 60_000];
const moody = moodyEndpoint();
const dear = moodyEndpoint('/test/dear', '0.002');
const latch = latchedEndpoint();

let network: EmbeddedNetwork;
let service: Service;
const clock = createAheadClock();
let tag = 0;
const fresh = () => `${PATH}?tag=m${++tag}`;

beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  const catalogue = [moody.endpoint, dear.endpoint, latch.endpoint];
  service = await startService(network, { env: { MPP: 'on' }, catalogue, clock });
});
afterAll(async () => {
  await service.stop();
  await network.stop();
});
beforeEach(() => {
  clock.aheadMs = 0;
});

const present = (path: string, payment: { header: string }, from?: string) =>
  presentMpp(service.origin, path, payment, from);

describe('a credential is refused with a new challenge, and nothing is charged', () => {
  let buyer: Awaited<ReturnType<typeof newMppBuyer>>;
  beforeAll(async () => {
    buyer = await newMppBuyer(network);
  });
  const changed = (payment: MppPayment, challenge: object, payload: object = {}) => ({
    header: credentialOf({ ...payment.challenge, ...challenge }, { ...payment.payload, ...payload }),
  });

  test.each<[string, (payment: MppPayment) => { header: string }, string, string]>([
    ['is not base64url', () => ({ header: 'Payment !' }), 'malformed-credential', 'invalid_payload'],
    [
      'lacks its parts',
      () => ({ header: `Payment ${Buffer.from('{}').toString('base64url')}` }),
      'malformed-credential',
      'invalid_payload',
    ],
    [
      'has another kind of payment',
      (own) => changed(own, {}, { type: 'permit2' }),
      'malformed-credential',
      'unsupported_payload_type',
    ],
    ['answers another challenge', (own) => changed(own, { id: 'x' }), 'verification-failed', 'invalid_challenge_nonce'],
    ['has changed terms', (own) => changed(own, { request: 'e30' }), 'invalid-challenge', 'invalid_challenge'],
    [
      'has another expiry',
      (own) => changed(own, { expires: '2999-01-01T00:00:00Z' }),
      'invalid-challenge',
      'invalid_challenge',
    ],
    ['lacks its opaque part', (own) => changed(own, { opaque: undefined }), 'invalid-challenge', 'invalid_challenge'],
    [
      'has a digest that was not asked for',
      (own) => changed(own, { digest: 'x' }),
      'invalid-challenge',
      'invalid_challenge',
    ],
    [
      'pays another recipient',
      ({ challenge }) => answerTo(challenge, buyer.privateKey, { to: buyer.address }),
      'verification-failed',
      'invalid_exact_evm_recipient_mismatch',
    ],
    [
      'pays less',
      ({ challenge }) => answerTo(challenge, buyer.privateKey, { value: 1n }),
      'payment-insufficient',
      'invalid_exact_evm_payload_authorization_value_mismatch',
    ],
    [
      'is valid for too short',
      ({ challenge }) => answerTo(challenge, buyer.privateKey, { validBefore: 1n }),
      'payment-expired',
      'invalid_exact_evm_payload_authorization_valid_before',
    ],
    [
      'is signed by another key',
      (own) => changed(own, {}, { from: `0x${'ab'.repeat(20)}` }),
      'verification-failed',
      'invalid_exact_evm_signature',
    ],
  ])('when it %s', async (_name, make, type, code) => {
    const path = fresh();
    const own = await buyer.sign(service.origin, path);
    expect(refusal(await present(path, make(own)))).toEqual([402, type, code]);
    expect((await present(path, own)).status).toBe(200);
  });

  test('when its challenge has expired', async () => {
    const path = fresh();
    const own = await buyer.sign(service.origin, path, { validBefore: BigInt(Math.floor(Date.now() / 1000) + 3600) });
    clock.aheadMs = 11 * MINUTE_MS;
    expect(refusal(await present(path, own))).toEqual([402, 'invalid-challenge', 'challenge_expired']);
  });

  test('when it was made for another request, another spelling of it, or another route of the same price', async () => {
    const path = fresh();
    const own = await buyer.sign(service.origin, path);
    const elsewhere = [fresh(), PATH, `${PATH}?tag=%6d${tag - 1}`, '/v1/mpp/test/dear', '/v1/mpp/test/latch'];
    for (const target of elsewhere) {
      expect(refusal(await present(target, own)), target).toEqual([402, 'invalid-challenge', 'invalid_challenge']);
    }
    expect((await present(path, own)).status).toBe(200);
    for (const target of elsewhere.filter((one) => !one.includes('%6d'))) {
      const answer = refusal(await present(target, own));
      expect(answer, target).toEqual([402, 'invalid-challenge', 'payment_already_used']);
    }
  });

  test('when another payer has answered its challenge before', async () => {
    const path = fresh();
    const own = await buyer.sign(service.origin, path);
    expect((await present(path, own)).status).toBe(200);
    const second = answerTo(own.challenge, (await newMppBuyer(network)).privateKey);
    expect(refusal(await present(path, second))).toEqual([402, 'invalid-challenge', 'payment_already_used']);
  });

  test('by 400 when its method is not offered, or when two payments stand on the request', async () => {
    const path = fresh();
    const own = await buyer.sign(service.origin, path);
    const unknown = await present(path, changed(own, { method: 'lightning' }));
    expect([unknown.status, problem(unknown).code, problem(unknown).charged]).toEqual([
      ...[400, 'method_unsupported', 'unknown'],
    ]);
    const x402 = await (await newBuyer(network)).sign(service.origin, '/v1/paid/test/moody');
    for (const target of [path, '/v1/paid/test/moody']) {
      const headers = { authorization: own.header, 'payment-signature': x402.header };
      const answer = await call(service.origin, target, { headers });
      expect([answer.status, problem(answer).code, problem(answer).charged]).toEqual([400, 'two_payments', 'unknown']);
    }
    expect((await present(path, own)).status).toBe(200);
  });
});

test('bad parameters are 400 before anything is verified, and the same credential buys nothing else', async () => {
  const path = `${PATH}?unknown=1`;
  const payment = await (await newMppBuyer(network)).sign(service.origin, path);
  const answer = await present(path, payment);
  expect([answer.status, problem(answer).charged, answer.headers['www-authenticate']]).toEqual([400, false, undefined]);
});

test('credentials of other schemes of authentication are ignored', async () => {
  for (const header of ['Basic abc', 'Bearer abc', 'L402 token:preimage']) {
    expect(refusal(await present(fresh(), { header }))).toEqual([402, 'payment-required', 'payment_required']);
  }
});
