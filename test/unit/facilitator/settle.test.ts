import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { lightningProof } from '../../../scripts/lib/lightning/lightning-proofs.ts';
import { createFacilitator } from '../../../src/facilitator/facilitator.ts';
import { MESSAGES, refusal, type SettleAnswer, usedUp } from '../../../src/facilitator/settle.ts';
import { createLogger } from '../../../src/lib/common.ts';
import type { ReachedCap } from '../../../src/store/ports/lightning.ts';
import { captureLog } from '../../http/harness.ts';
import {
  LIMITS,
  makeKnown,
  type OpenFacilitator,
  openFacilitator,
  payeeKey,
} from '../../support/lightning/facilitator.ts';

const NOW = 1_700_000_000;
const NETWORK = 'lnbtc:000000000019d6689c085ae165831e93';
const DUPLICATE = {
  success: false,
  errorReason: 'duplicate_settlement',
  message: 'This proof was claimed before. If you settled it yourself and have not served it, serve; otherwise refuse.',
  transaction: '',
  network: NETWORK,
};

let opened: OpenFacilitator;
const open = (limits: Partial<typeof LIMITS> = { perMinute: 0 }) => {
  opened = openFacilitator({ startMs: NOW * 1000, limits });
};
const close = () => opened.close();

const settle = (body: unknown, client = 'a') => opened.facilitator.settle(body, client);
const fresh = () => lightningProof({ createdAt: NOW });
const rows = () => opened.db.prepare('SELECT count(*) FROM lightning_claims').pluck().get();

describe('a valid proof', () => {
  beforeEach(() => open());
  afterEach(close);

  it('is claimed once, by its payment hash, without a payer', async () => {
    const proof = fresh();
    expect(await settle(proof.body)).toEqual({
      status: 200,
      body: { success: true, transaction: proof.paymentHash, network: NETWORK },
    });
    expect(await settle(proof.body)).toEqual({ status: 200, body: DUPLICATE });
    expect(await settle(proof.body, 'another client')).toEqual({ status: 200, body: DUPLICATE });
    expect(rows()).toBe(1);
  });

  it('is claimed by exactly one of many at once', async () => {
    const { body } = fresh();
    const answers = await Promise.all(Array.from({ length: 50 }, () => settle(body)));
    expect(answers.filter((answer) => answer.body.success)).toHaveLength(1);
    expect(answers.filter((answer) => !answer.body.success).map((answer) => answer.body)).toEqual(
      Array(49).fill(DUPLICATE),
    );
  });

  it('is kept for longer than our own routes honour a late proof, and grants nothing here', async () => {
    const proof = fresh();
    await settle(proof.body);
    const row = opened.db.prepare('SELECT * FROM lightning_claims').get() as Record<string, unknown>;
    expect(row).toMatchObject({ network: NETWORK, amount_msat: '25000', claimed_at: NOW * 1000, request_hash: null });
    // The invoice's lifetime, the allowed clock difference, the hour that the scheme requires, and a day in addition.
    expect(row.keep_until).toBe((NOW + 300 + 60 + 3600 + 8 * 86_400) * 1000);
    opened.clock.now = (NOW + 300 + 60 + 3600) * 1000;
    await opened.store.prune(opened.clock.now);
    expect(rows()).toBe(1);
  });

  it('is used up when our own routes have claimed it, and their claims are not counted', async () => {
    const proof = fresh();
    const key = { network: NETWORK, paymentHash: Buffer.from(proof.paymentHash, 'hex'), payTo: Buffer.alloc(33, 2) };
    const grant = {
      requestHash: Buffer.alloc(32),
      redeemUntil: NOW * 1000 + 1,
      route: '/v1/lightning/a',
      protocol: 'x402',
    };
    const times = { claimedAt: NOW * 1000, keepUntil: NOW * 1000 + 1 };
    await opened.store.claim({ ...key, ...times, amountMsat: 1n, grant, account: null });
    expect((await settle(proof.body)).body).toEqual(DUPLICATE);
    expect(await opened.facilitator.descriptor()).toMatchObject({
      limits: { settledToday: 0 },
      settled: { total: 0, today: 0, nodes: 0, forOurOwnNode: 0 },
    });
  });
});

describe('a refused proof', () => {
  beforeAll(() => open());
  beforeEach(() => {
    opened.clock.now = NOW * 1000;
  });
  afterAll(close);

  it("has the scheme's reason, consumes nothing, and may be corrected", async () => {
    const [proof, before] = [fresh(), rows()];
    const bad = structuredClone(proof.body);
    bad.paymentPayload.payload.preimage = '00'.repeat(32);
    expect(await settle(bad)).toEqual({
      status: 200,
      body: {
        success: false,
        errorReason: 'invalid_exact_lnbtc_preimage_hash_mismatch',
        message: MESSAGES.invalid_exact_lnbtc_preimage_hash_mismatch,
        transaction: '',
        network: NETWORK,
      },
    });
    expect(rows()).toBe(before);
    expect((await settle(proof.body)).body.success).toBe(true);
  });

  it('is refused above the longest accepted time-out, and not at it', async () => {
    const at = lightningProof({ createdAt: NOW, maxTimeoutSeconds: 3600 });
    const above = lightningProof({ createdAt: NOW, maxTimeoutSeconds: 3601 });
    expect((await settle(above.body)).body).toMatchObject({ errorReason: 'invalid_exact_lnbtc_max_timeout' });
    expect((await settle(at.body)).body.success).toBe(true);
  });

  it('is checked with sixty seconds of tolerance, at both ends', async () => {
    const [last, late] = [fresh(), fresh()];
    opened.clock.now = (NOW + 300 + 60) * 1000 + 999;
    expect((await settle(last.body)).body.success).toBe(true);
    opened.clock.now += 1;
    expect((await settle(late.body)).body).toMatchObject({ errorReason: 'invalid_exact_lnbtc_invoice_expired' });
    const seconds = Math.floor(opened.clock.now / 1000);
    expect((await settle(lightningProof({ createdAt: seconds + 60 }).body)).body.success).toBe(true);
    expect((await settle(lightningProof({ createdAt: seconds + 61 }).body)).body).toMatchObject({
      errorReason: 'invalid_exact_lnbtc_invoice_created_in_future',
    });
  });
});

describe('a body that is no request', () => {
  beforeAll(() => open());
  afterAll(close);
  const { paymentPayload, paymentRequirements } = lightningProof({ createdAt: NOW }).body;
  it.each([
    ['nothing', undefined],
    ['null', null],
    ['text', 'x402'],
    ['a list', [2]],
    ['an empty object', {}],
    ['no version', { paymentPayload, paymentRequirements }],
    ['version 1', { x402Version: 1, paymentPayload, paymentRequirements }],
    ['the version as text', { x402Version: '2', paymentPayload, paymentRequirements }],
    ['no payload', { x402Version: 2, paymentRequirements }],
    ['a payload of null', { x402Version: 2, paymentPayload: null, paymentRequirements }],
    ['a payload that is a list', { x402Version: 2, paymentPayload: [paymentPayload], paymentRequirements }],
    ['no requirement', { x402Version: 2, paymentPayload }],
    ['a requirement that is text', { x402Version: 2, paymentPayload, paymentRequirements: 'exact' }],
    ['inherited members', Object.create({ x402Version: 2, paymentPayload, paymentRequirements })],
  ])('%s is 400', async (_name, body) => {
    const hasNetwork =
      typeof body === 'object' && body !== null && !Array.isArray(body) && Object.hasOwn(body, 'paymentRequirements');
    const network = hasNetwork && body.paymentRequirements === paymentRequirements ? NETWORK : '';
    expect(await settle(body)).toEqual({
      status: 400,
      body: {
        success: false,
        errorReason: 'invalid_request',
        message: expect.stringMatching(/Send .*x402Version.*\.$/),
        transaction: '',
        network,
      },
    });
    expect(rows()).toBe(0);
  });

  it('is the only case of 400: two empty objects are a proof that fails', async () => {
    const body = { x402Version: 2, paymentPayload: {}, paymentRequirements: { network: 'lnbtc:elsewhere' } };
    expect(await settle(body)).toEqual({
      status: 200,
      body: {
        success: false,
        errorReason: 'unsupported_scheme',
        message: MESSAGES.unsupported_scheme,
        transaction: '',
        network: 'lnbtc:elsewhere',
      },
    });
  });

  it('has no network in its answer when that is no text', async () => {
    const body = { x402Version: 2, paymentPayload: {}, paymentRequirements: { network: { toString: null } } };
    expect((await settle(body)).body.network).toBe('');
  });
});

describe('the caps', () => {
  const CAP = 40;
  beforeEach(() => open({ dailyCap: CAP, perMinute: 0 }));
  afterEach(close);
  const capped = (cap: ReachedCap) => ({
    status: 503,
    body: {
      success: false,
      errorReason: 'daily_cap_reached',
      message: usedUp(cap),
      transaction: '',
      network: NETWORK,
    },
    retryAfterSeconds: 86_400 - (NOW % 86_400),
  });
  /** A proof of a payee of its own, or of one of those that `makeKnown` makes known. */
  const of = (payee: number) => lightningProof({ createdAt: NOW, privateKey: payeeKey(payee) }).body;
  const successes = (answers: readonly SettleAnswer[]) => answers.filter(({ body }) => body.success).length;
  const refusals = (answers: readonly SettleAnswer[]) => answers.filter(({ body }) => !body.success);

  it('leave half of the day to known payees, when ten addresses have used up the rest, and yesterday makes none known', async () => {
    await makeKnown(opened, 10);
    // Ten addresses with a tenth each, and forty payees of their own, each of which they have claimed for once on the day before.
    const attack = (payee: number) => settle(of(1000 + payee), `address ${payee % 10}`);
    opened.clock.now -= 86_400_000;
    for (let n = 0; n < 10; n++)
      await settle(lightningProof({ createdAt: NOW - 86_400, privateKey: payeeKey(1000 + n) }).body, `${n}`);
    opened.clock.now += 86_400_000;
    const answers = await Promise.all(Array.from({ length: CAP }, (_, n) => attack(n)));
    expect(successes(answers)).toBe(CAP / 2);
    expect(refusals(answers)).toEqual(Array(CAP / 2).fill(capped('open_cap')));
    // Each of the ten known payees still has a twentieth of the day.
    const known = await Promise.all(Array.from({ length: 30 }, (_, n) => settle(of(n % 10), `seller ${n % 10}`)));
    expect(known.slice(0, 20).map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(refusals(known)).toEqual(Array(10).fill(capped('daily_cap')));
  });

  it('hold exactly among simultaneous calls for one payee', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => settle(of(1), `client ${n}`)));
    expect(successes(answers)).toBe(2);
    expect(refusals(answers)).toEqual(Array(18).fill(capped('payee_cap')));
    expect(rows()).toBe(2);
  });

  it('divide the known half equally', async () => {
    await makeKnown(opened, 20);
    for (let n = 0; n < 20; n++) expect((await settle(of(100 + n), `client ${n}`)).status).toBe(200);
    // Twenty known payees share twenty claims. The first would otherwise have a twentieth of the day, which is two.
    expect([await settle(of(0), 'a'), await settle(of(0), 'b')]).toEqual([
      expect.objectContaining({ status: 200 }),
      capped('known_cap'),
    ]);
    for (let n = 1; n < 20; n++) expect((await settle(of(n), `seller ${n}`)).status).toBe(200);
  });

  it("hold exactly among one client's simultaneous calls", async () => {
    const answers = await Promise.all(Array.from({ length: 9 }, (_, n) => settle(of(n))));
    expect(successes(answers)).toBe(4);
    expect(refusals(answers)).toEqual(Array(5).fill(capped('client_cap')));
    expect((await settle(of(9), 'b')).status).toBe(200);
  });

  it('refuse before a proof is checked, and end with the day', async () => {
    for (let n = 0; n < 4; n++) expect((await settle(of(n))).status).toBe(200);
    expect((await settle({ paymentRequirements: { network: NETWORK } })).body).toEqual(capped('client_cap').body);
    opened.clock.now = Date.parse('2023-11-15T00:00:00Z');
    const proof = lightningProof({ createdAt: opened.clock.now / 1000 });
    expect((await settle(proof.body)).body.success).toBe(true);
  });
});

describe('a store that does not answer', () => {
  beforeEach(() => open());
  afterEach(close);
  const AWAY = {
    success: false,
    errorReason: 'replay_store_unavailable',
    message: MESSAGES.replay_store_unavailable,
    transaction: '',
    network: NETWORK,
  };

  it('settles nothing', async () => {
    opened.db.close();
    expect(await settle(fresh().body)).toEqual({ status: 503, body: AWAY, retryAfterSeconds: 5 });
    expect(JSON.stringify(opened.lines)).toContain('nothing was settled');
  });

  it('admits no call: a transport that asks before it reads the body gets 503 without a network', async () => {
    opened.db.close();
    const body = { ...AWAY, network: '' };
    expect(await opened.facilitator.admit('a')).toEqual({ status: 503, body, retryAfterSeconds: 5 });
  });

  it('is reported by the descriptor too, and logged', async () => {
    opened.db.close();
    await expect(opened.facilitator.descriptor()).rejects.toMatchObject({
      status: 503,
      code: 'replay_store_unavailable',
    });
    expect(opened.lines).toEqual([expect.objectContaining({ level: 'error', err: expect.anything() })]);
  });

  it('settles nothing when it fails at the claim; the proof stays valid', async () => {
    const proof = fresh();
    opened.db.pragma('query_only = ON');
    expect(await settle(proof.body)).toEqual({ status: 503, body: AWAY, retryAfterSeconds: 5 });
    opened.db.pragma('query_only = OFF');
    expect((await settle(proof.body)).body).toEqual({
      success: true,
      transaction: proof.paymentHash,
      network: NETWORK,
    });
  });
});

it('a refusal by a limit names no network while no body was read', async () => {
  open({ perMinute: 1 });
  expect(await opened.facilitator.admit('a')).toBeNull();
  expect(await opened.facilitator.admit('a')).toEqual({
    status: 429,
    body: { success: false, errorReason: 'rate_limited', message: MESSAGES.rate_limited, transaction: '', network: '' },
    retryAfterSeconds: 60,
  });
  close();
});

it('a refusal of a body that was not read names no network', () => {
  const body = {
    success: false,
    errorReason: 'body_too_large',
    message: MESSAGES.body_too_large,
    transaction: '',
    network: '',
  };
  expect(refusal(413, 'body_too_large')).toEqual({ status: 413, body });
});

it('a bug is logged without any part of the body', async () => {
  open();
  const { body, preimage } = fresh();
  const { store } = opened;
  const { lines, destination } = captureLog();
  const facilitator = createFacilitator({
    store,
    clock: {
      ...opened.clock,
      nowMs: () => {
        throw new TypeError(`cannot take ${preimage}`);
      },
    },
    config: LIMITS,
    publicOrigin: 'https://api.example',
    ownPayTo: () => null,
    log: createLogger('debug', destination),
  });
  expect(await facilitator.settleAdmitted(body, 'a')).toEqual({
    status: 500,
    body: {
      success: false,
      errorReason: 'unexpected_settle_error',
      message: MESSAGES.unexpected_settle_error,
      transaction: '',
      network: NETWORK,
    },
  });
  const frames = expect.arrayContaining([expect.stringContaining('settle.ts')]);
  expect(lines).toEqual([expect.objectContaining({ level: 'error', at: frames })]);
  expect(JSON.stringify(lines)).not.toContain(preimage);
  close();
});
