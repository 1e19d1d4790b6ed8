import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { lightningProof } from '../../../scripts/lib/lightning/lightning-proofs.ts';
import { createFacilitator } from '../../../src/facilitator/facilitator.ts';
import { MESSAGES } from '../../../src/facilitator/messages.ts';
import { refusal } from '../../../src/facilitator/settle.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { captureLog } from '../../http/harness.ts';
import { LIMITS, type OpenFacilitator, openFacilitator } from '../../support/lightning/facilitator.ts';

const NOW = 1_700_000_000;
const NETWORK = 'lnbtc:000000000019d6689c085ae165831e93';
const DUPLICATE = {
  success: false,
  errorReason: 'duplicate_settlement',
  message: MESSAGES.duplicate_settlement,
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
  beforeEach(async () => {
    open({ dailyCap: 20, perMinute: 0 });
    // The payee of all proofs here was seen on an earlier day; new ones may have half of the cap.
    opened.clock.now -= 86_400_000;
    await settle(lightningProof({ createdAt: opened.clock.now / 1000 }).body);
    opened.clock.now += 86_400_000;
  });
  afterEach(close);
  const CAPPED = {
    success: false,
    errorReason: 'daily_cap_reached',
    message: MESSAGES.daily_cap_reached,
    transaction: '',
    network: NETWORK,
  };

  it('hold exactly among simultaneous calls', async () => {
    const bodies = Array.from({ length: 60 }, () => fresh().body);
    const answers = await Promise.all(bodies.map((body, n) => settle(body, `client ${n}`)));
    expect(answers.filter((answer) => answer.body.success)).toHaveLength(20);
    const capped = answers.filter((answer) => !answer.body.success);
    expect(capped).toEqual(Array(40).fill({ status: 503, body: CAPPED, retryAfterSeconds: expect.any(Number) }));
    expect(rows()).toBe(1 + 20);
  });

  it('of new payees hold exactly among simultaneous calls, and take nothing from a payee of an earlier day', async () => {
    const sellers = Array.from({ length: 30 }, (_, n) =>
      lightningProof({ createdAt: NOW, privateKey: Buffer.alloc(32, n + 1) }),
    );
    const answers = await Promise.all(sellers.map(({ body }, n) => settle(body, `client ${n}`)));
    expect(answers.filter((answer) => answer.body.success)).toHaveLength(10);
    const capped = answers.filter((answer) => !answer.body.success);
    const untilMidnight = 86_400 - (NOW % 86_400);
    expect(capped).toEqual(Array(20).fill({ status: 503, body: CAPPED, retryAfterSeconds: untilMidnight }));
    expect((await settle(fresh().body)).body.success).toBe(true);
  });

  it("hold exactly among one client's simultaneous calls", async () => {
    const answers = await Promise.all(Array.from({ length: 9 }, () => settle(fresh().body)));
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 200, ...Array(7).fill(503)]);
    expect((await settle(fresh().body, 'b')).status).toBe(200);
  });

  it('refuse before a proof is checked, and end with the day', async () => {
    for (let n = 0; n < 20; n++) expect((await settle(fresh().body, `client ${n}`)).status).toBe(200);
    expect((await settle({ paymentRequirements: { network: NETWORK } }, 'new')).body).toEqual(CAPPED);
    opened.clock.now = Date.parse('2023-11-15T00:00:00Z');
    const proof = lightningProof({ createdAt: opened.clock.now / 1000 });
    expect((await settle(proof.body, 'new')).body.success).toBe(true);
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
