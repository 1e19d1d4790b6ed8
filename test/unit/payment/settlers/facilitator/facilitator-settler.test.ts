import { hashTypedData, recoverAddress } from 'viem';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../../src/lib/clock.ts';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { keccak256 } from '../../../../../src/lib/secp256k1.ts';
import { createLedger } from '../../../../../src/payment/ledger.ts';
import {
  createCircleFacilitator,
  createHttpFacilitator,
  createSellerProof,
  readReply,
  settleRequest,
} from '../../../../../src/payment/usdc/facilitator.ts';
import { createRemoteSettler } from '../../../../../src/payment/usdc/facilitator-settler.ts';
import { createUpstreams } from '../../../../../src/upstream/client/client.ts';
import { quiet } from '../../../../support/quiet.ts';
import { type Answered, type Asked, startStandIn } from '../../../../support/upstream/http-stand-in.ts';
import { newKey, plainRequirement, signAuthorization, USDC } from '../../../../support/usdc/payments.ts';
import { openSales } from '../../../../support/usdc/remote-sales.ts';
import { randomIntent } from '../../../../support/usdc/token-node.ts';

const NETWORK = 'eip155:5042';
const ID = '0123456789abcdef0123456789abcdef';
const HASH = `0x${'ab'.repeat(32)}`;
const TOKEN = 'live:token:42';
const signal = new AbortController().signal;
const seller = newKey();
const requirement = plainRequirement(seller.address);
const terms = { network: NETWORK, usdc: USDC, extra: requirement.extra, publicOrigin: 'https://a.test' } as const;
const SELLER_REQUEST = [
  { name: 'purpose', type: 'string' },
  { name: 'method', type: 'string' },
  { name: 'bodyHash', type: 'bytes32' },
  { name: 'network', type: 'string' },
  { name: 'payTo', type: 'address' },
  { name: 'nonce', type: 'bytes32' },
  { name: 'issuedAt', type: 'uint256' },
  { name: 'expiresAt', type: 'uint256' },
];
const authorize = () => signAuthorization(newKey().privateKey, requirement);

let answer: (asked: Asked) => Promise<Answered>;
let server: Awaited<ReturnType<typeof startStandIn>>;
const upstreams = createUpstreams({ clock: systemClock, userAgent: 'percall/test' });
const upstream = upstreams.open({
  name: 'facilitator',
  timeoutMs: 60_000,
  maxBytes: 65_536,
  concurrency: 8,
  retries: 0,
});
beforeAll(async () => {
  server = await startStandIn((asked) => answer(asked));
});
afterEach(() => {
  server.asked.length = 0;
});
afterAll(async () => {
  await upstreams.close();
  await server.stop();
});

describe('an answer to /settle', () => {
  const refused = (errorReason: unknown, more = {}) => ({ success: false, errorReason, ...more });
  test.each([
    [200, { success: true, transaction: HASH, network: NETWORK }, 'accepted'],
    [200, { success: true }, 'accepted'],
    [200, { success: true, transaction: HASH, network: 'eip155:1' }, 'unclear'],
    [502, { success: true, transaction: HASH, network: NETWORK }, 'unclear'],
    [200, { success: 'true', transaction: HASH }, 'unclear'],
    [200, null, 'unclear'],
    [200, [], 'unclear'],
    [200, refused('insufficient_funds'), 'refused'],
    [400, refused('invalid_exact_evm_signature', { transaction: '', network: NETWORK }), 'refused'],
    // A refusal that may have come after a broadcast, or from something that is in trouble.
    [200, refused('insufficient_funds', { transaction: HASH }), 'unclear'],
    [500, refused('insufficient_funds'), 'unclear'],
    [200, refused('invalid_exact_evm_transaction_failed'), 'unclear'],
    [200, refused('invalid_exact_evm_nonce_already_used'), 'unclear'],
    [200, refused('unexpected_settle_error'), 'unclear'],
    [200, refused(undefined), 'unclear'],
    [200, refused(42), 'unclear'],
    [429, { error: 'slow down' }, 'unclear'],
    [499, refused('insufficient_funds'), 'refused'],
    [200, refused('nonce_already_used'), 'used'],
    [500, refused('nonce_already_used'), 'unclear'],
    [200, refused('wallet_not_found'), 'refused'],
    [200, refused('insufficient_balance'), 'refused'],
    [202, refused('settlement_pending', { extensions: { 'settlement-status': { paymentId: 'p-1' } } }), 'pending'],
    [200, refused('settlement_pending'), 'pending'],
  ])('%i %j is %s', (status, body, kind) => {
    expect(readReply(status, body, NETWORK).kind).toBe(kind);
  });

  test.each<[number, unknown, boolean]>([
    [500, refused('insufficient_funds'), true],
    [200, null, true],
    [429, { error: 'slow down' }, true],
    [200, { success: true, transaction: HASH, network: 'eip155:1' }, true],
    [200, refused('insufficient_funds', { network: 'eip155:1' }), true],
    // An answer about this payment, whatever it says, is no fault of the way to the facilitator.
    [200, refused('invalid_exact_evm_transaction_failed'), false],
    [200, refused('unexpected_settle_error'), false],
    [200, refused('insufficient_funds', { transaction: HASH }), false],
    [499, refused(42), false],
  ])('%i %j is unclear, and counts as a transport fault: %s', (status, body, isTransport) => {
    expect(readReply(status, body, NETWORK)).toMatchObject({ kind: 'unclear', isTransport });
  });

  test('that is pending gives the payment’s id when the facilitator names one', () => {
    const extensions = { 'settlement-status': { paymentId: 'p-1' } };
    expect(readReply(202, refused('settlement_pending', { extensions }), NETWORK)).toEqual({
      kind: 'pending',
      paymentId: 'p-1',
    });
    for (const other of [{}, { extensions: {} }, { extensions: { 'settlement-status': { paymentId: 7 } } }])
      expect(readReply(202, refused('settlement_pending', other), NETWORK)).toMatchObject({ paymentId: null });
  });

  test('is quoted only when it has the form of a reason, so that no echoed secret is shown', () => {
    const said = readReply(200, refused(`Bearer ${TOKEN}`), NETWORK);
    expect(JSON.stringify(said)).not.toContain(TOKEN);
    expect(said).toMatchObject({ detail: 'a refusal in no known words' });
    expect(readReply(200, refused('some_reason'), NETWORK)).toMatchObject({ detail: 'some_reason' });
  });
});

describe('the client of any facilitator', () => {
  const client = (token: string | null = TOKEN, timeoutMs = 10_000) =>
    createHttpFacilitator({ url: server.url, token, timeoutMs, network: NETWORK, userAgent: 'percall/test' });

  test('sends the authorization, our terms, the API token and our name, and nothing about the call', async () => {
    answer = async () => ({ json: { success: true, transaction: HASH, network: NETWORK } });
    const authorization = authorize();
    const reply = await client().settle(settleRequest(authorization, terms), ID, signal);
    expect(reply).toEqual({ kind: 'accepted', transaction: HASH });
    const [asked] = server.asked;
    expect(asked?.path).toBe('/settle');
    expect(asked?.headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, 'user-agent': 'percall/test' });
    expect(asked?.body).toMatchObject({
      x402Version: 2,
      paymentRequirements: { amount: '1000', asset: USDC, payTo: seller.address, network: NETWORK },
      paymentPayload: {
        x402Version: 2,
        accepted: asked?.body.paymentRequirements,
        resource: { url: 'https://a.test/v1/paid' },
        payload: { authorization: { nonce: bytesToHex(authorization.nonce), value: '1000' } },
      },
    });
  });

  test('sends no API token when none is configured', async () => {
    answer = async () => ({ json: { success: true, transaction: HASH, network: NETWORK } });
    await client(null).settle(settleRequest(authorize(), terms), ID, signal);
    expect(server.asked[0]?.headers.authorization).toBeUndefined();
  });

  test.each([
    ['repeats our token', async ({ headers }: Asked) => ({ status: 500, text: String(headers.authorization) })],
    ['repeats it as JSON', async ({ headers }: Asked) => ({ json: { echo: headers.authorization } })],
    ['hangs', async () => null],
  ])('gets an unclear reply from one that %s, and shows the API token in no error', async (_, faulty) => {
    answer = faulty;
    const reply = await client(TOKEN, 200).settle(settleRequest(authorize(), terms), ID, signal);
    expect(reply).toMatchObject({ kind: 'unclear', isTransport: true });
    const failure = await client(TOKEN, 200)
      .supported()
      .catch((error: unknown) => error);
    expect(failure).toEqual(new Error('/supported gave no readable answer'));
    expect(JSON.stringify(reply) + (failure as Error).stack + (failure as Error).cause).not.toContain(TOKEN);
  });

  test('reads a refusal with a status of its own', async () => {
    answer = async () => ({ status: 402, json: { success: false, errorReason: 'insufficient_funds' } });
    const reply = await client().settle(settleRequest(authorize(), terms), ID, signal);
    expect(reply).toEqual({ kind: 'refused', reason: 'insufficient_funds' });
  });
});

describe('the client of Circle’s Facilitator Service', () => {
  const pendingAnswer = (paymentId: string | undefined) => ({
    json: {
      success: false,
      errorReason: 'settlement_pending',
      extensions: {
        'settlement-status': { status: 'pending', paymentId, statusUrl: 'http://127.0.0.1:1/steal' },
      },
    },
  });
  const options = { upstream, network: NETWORK };
  const client = (
    clock = systemClock,
    auth: Parameters<typeof createCircleFacilitator>[0]['auth'] = { token: TOKEN },
  ) => createCircleFacilitator({ ...options, url: server.url, auth, clock, pendingMs: 10_000 });
  /** A clock whose sleeps end at once and move its time by their length. */
  const quick = () => {
    let now = 0;
    const sleep = async (ms: number) => {
      now += ms;
    };
    return { clock: { nowMs: () => now, sleep }, now: () => now };
  };

  test('names the payment, so that a repeated request for it gets the same answer', async () => {
    answer = async () => ({ json: { success: false, errorReason: 'insufficient_funds' } });
    const authorization = authorize();
    expect(await client().settle(settleRequest(authorization, terms), ID, signal)).toEqual({
      kind: 'refused',
      reason: 'insufficient_funds',
    });
    await client().settle(settleRequest(authorization, terms), ID, signal);
    const [first, second] = server.asked;
    const id = first?.body.paymentPayload.extensions['payment-identifier'].info.id;
    expect(id).toMatch(/^[\w-]{16,128}$/);
    expect(second?.text).toBe(first?.text);
    expect(first?.headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' });
    expect(first?.headers['facilitator-seller-proof']).toBeUndefined();
    // A service that does not know the extension must settle all the same.
    expect(first?.body.paymentPayload.extensions['payment-identifier'].info.required).toBe(false);
  });

  test.each([
    ['completed', { kind: 'accepted', transaction: HASH }],
    // It may have been sent before it failed.
    ['failed', { kind: 'unclear', detail: 'failed after it was pending', isTransport: false }],
  ])('asks after a pending settlement, under our own base URL, until it is %s', async (end, expected) => {
    let looks = 0;
    answer = async ({ path }) => {
      if (path === '/settle') return pendingAnswer('pay_1-x');
      looks += 1;
      // One look that fails says nothing of the settlement.
      if (looks === 2) return { status: 500, text: 'in trouble' };
      return { json: { status: looks < 3 ? 'pending' : end, transaction: HASH, reason: 'outcome_unknown' } };
    };
    const clock = { nowMs: () => Date.now(), sleep: async () => {} };
    expect(await client(clock).settle(settleRequest(authorize(), terms), ID, signal)).toEqual(expected);
    expect(server.asked.map(({ path }) => path)).toEqual(['/settle', ...Array(3).fill('/status/pay_1-x')]);
  });

  test('reads a completed settlement without a transaction as accepted, which only makes the settler read the evidence', async () => {
    answer = async ({ path }) => (path === '/settle' ? pendingAnswer('p') : { json: { status: 'completed' } });
    const reply = await client(quick().clock).settle(settleRequest(authorize(), terms), ID, signal);
    expect(reply).toEqual({ kind: 'accepted', transaction: '' });
  });

  test.each([
    ['its time is over', 10_000, [500, 1500, 3500, 7500]],
    ['its time would be over at the next question', 7500, [500, 1500, 3500]],
    ['four seconds are the longest pause', 16_000, [500, 1500, 3500, 7500, 11_500, 15_500]],
  ])('asks after pauses that double, until %s', async (_, pendingMs, expected) => {
    const { clock, now } = quick();
    const times: number[] = [];
    answer = async ({ path }) => {
      if (path === '/settle') return pendingAnswer('p');
      times.push(now());
      return { json: { status: 'pending' } };
    };
    const circle = createCircleFacilitator({ ...options, auth: { token: TOKEN }, url: server.url, clock, pendingMs });
    expect(await circle.settle(settleRequest(authorize(), terms), ID, signal)).toEqual({
      kind: 'pending',
      paymentId: 'p',
    });
    expect(times).toEqual(expected);
  });

  test.each([['../../v1/secrets'], [undefined]])(
    'sends no poll where the payment’s id is %s: no third party’s text comes into a path',
    async (paymentId) => {
      answer = async () => pendingAnswer(paymentId);
      const reply = await client(quick().clock).settle(settleRequest(authorize(), terms), ID, signal);
      expect(reply).toEqual({ kind: 'pending', paymentId: paymentId ?? null });
      expect(server.asked).toHaveLength(1);
    },
  );

  test('that cannot be reached gives an unclear reply', async () => {
    const gone = await startStandIn(async () => null);
    await gone.stop();
    const circle = createCircleFacilitator({
      ...options,
      auth: { token: TOKEN },
      url: gone.url,
      clock: systemClock,
      pendingMs: 10_000,
    });
    expect(await circle.settle(settleRequest(authorize(), terms), ID, signal)).toEqual({
      kind: 'unclear',
      detail: 'no readable answer',
      isTransport: true,
    });
  });

  test('reports the kinds that it settles, and their senders when it names them', async () => {
    const kind = { x402Version: 2, scheme: 'exact', network: NETWORK };
    const signers = { 'eip155:*': [seller.address] };
    answer = async () => ({ json: { kinds: [{ ...kind, extra: { name: 'USDC' } }, kind], signers, extensions: [] } });
    expect(await client().supported()).toEqual({ kinds: [{ ...kind, extra: { name: 'USDC' } }, kind], signers });
    expect(server.asked.map(({ path }) => path)).toEqual(['/supported']);
    answer = async () => ({ json: { kinds: [kind] } });
    expect(await client().supported()).toEqual({ kinds: [kind], signers: {} });
  });

  test('without a list of kinds fails with the name of the missing page', async () => {
    answer = async () => ({ status: 404, text: 'nothing here' });
    await expect(client().supported()).rejects.toThrow('/supported is not there');
  });

  test.each([
    ['a settlement', 'settle', 'POST', '/settle'],
    ['what became of one', 'status', 'GET', '/status/p'],
  ])(
    'proves without a key to the API that the seller asks for %s: his signature over these very bytes, for minutes',
    async (_, purpose, method, path) => {
      answer = async (asked) => (asked.path === '/settle' ? pendingAnswer('p') : { json: { status: 'completed' } });
      const key = bytesToHex(seller.privateKey);
      const proof = createSellerProof(systemClock, key, NETWORK);
      await client(quick().clock, { proof }).settle(settleRequest(authorize(), terms), ID, signal);
      const asked = server.asked.find((one) => one.path === path);
      expect(asked?.method).toBe(method);
      expect(asked?.headers.authorization).toBeUndefined();
      const header = Buffer.from(String(asked?.headers['facilitator-seller-proof']), 'base64url').toString();
      const { version, signature, network, payTo, nonce, issuedAt, expiresAt } = JSON.parse(header);
      expect([version, network, payTo]).toEqual([1, NETWORK, seller.address]);
      expect(expiresAt - issuedAt).toBeLessThanOrEqual(300);
      const signed = (text: string) => ({
        domain: { name: 'Circle Facilitator Seller Request', version: '1', chainId: 5042 },
        primaryType: 'SellerRequest' as const,
        types: { SellerRequest: SELLER_REQUEST },
        message: {
          purpose,
          method,
          bodyHash: bytesToHex(keccak256(Buffer.from(text))),
          network,
          payTo,
          nonce,
          issuedAt,
          expiresAt,
        },
      });
      const signer = (text: string) => recoverAddress({ hash: hashTypedData(signed(text)), signature });
      expect((await signer(asked?.text ?? '')).toLowerCase()).toBe(seller.address);
      expect((await signer(`${asked?.text} `)).toLowerCase()).not.toBe(seller.address);
    },
  );
});

describe('a payment that is handed over', () => {
  const client = () =>
    createHttpFacilitator({
      url: server.url,
      token: null,
      timeoutMs: 60_000,
      network: NETWORK,
      userAgent: 'percall/test',
    });
  /** No chain answers. */
  const evidence = { lookup: async (): Promise<{ kind: 'unknown' }> => ({ kind: 'unknown' }) };
  const common = { clock: systemClock, log: quiet };
  const timing = { pollMs: 10, watchMs: 50, stallMs: 1000 };
  const plain = { usedBefore: null, onUnsettled: () => {} };

  test('is noted on disk before it is sent, so that a crash loses nothing', async () => {
    const authorization = authorize();
    const sales = openSales(NETWORK, USDC, (noteBroadcast) =>
      createRemoteSettler(common, {
        isUsed: null,
        hasCode: null,
        client: client(),
        evidence,
        terms,
        noteBroadcast,
        ...plain,
        ...timing,
      }),
    );
    const noted: unknown[] = [];
    answer = async () => {
      noted.push((await sales.row(authorization))?.transaction);
      return null;
    };
    expect((await sales.sell(authorization))?.state).toBe('unknown');
    // The sale waits for less than a second, and the request may arrive later.
    await expect.poll(() => noted).toEqual([expect.anything()]);
    const limits = { storeBytes: 1e9, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
    const next = createLedger({ store: sales.store, clock: systemClock, bootId: 'next', ...limits });
    expect(await next.recover()).toEqual({ released: 0, unknown: 1 });
    await sales.close();
  });

  test('is not sent when its row no longer awaits settlement', async () => {
    const noteBroadcast = async () => new Set<string>();
    const settler = createRemoteSettler(common, {
      isUsed: null,
      hasCode: null,
      client: client(),
      evidence,
      terms,
      noteBroadcast,
      ...plain,
      ...timing,
    });
    const intent = randomIntent({ id: 'gone', authorization: authorize() });
    expect(await Promise.all(settler.settle([intent]))).toEqual([{ kind: 'unknown' }]);
    expect(server.asked).toEqual([]);
    await settler.stop();
  });
});
