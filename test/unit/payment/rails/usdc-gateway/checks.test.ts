import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../../src/lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import { PaymentRefused } from '../../../../../src/payment/refusal.ts';
import { type Authorization, transactionText, transferIdBytes } from '../../../../../src/payment/settler.ts';
import { settleRequest } from '../../../../../src/payment/usdc/facilitator.ts';
import { createRemoteSettler } from '../../../../../src/payment/usdc/facilitator-settler.ts';
import {
  createGatewayCheck,
  createGatewaySignatureCheck,
  gatewayExtra,
  gatewayRequirement,
} from '../../../../../src/payment/usdc/gateway.ts';
import {
  createGatewayBatches,
  createGatewayClient,
  createGatewayEvidence,
  type GatewayTransfer,
} from '../../../../../src/payment/usdc/gateway-client.ts';
import { createUpstreams } from '../../../../../src/upstream/client/client.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { type Answered, startStandIn } from '../../../../support/upstream/http-stand-in.ts';
import { signForGateway } from '../../../../support/usdc/gateway-payment.ts';
import { type GatewayStandIn, startGatewayStandIn } from '../../../../support/usdc/gateway-stand-in.ts';
import { newKey, plainRequirement, signAuthorization, USDC } from '../../../../support/usdc/payments.ts';
import { openSales } from '../../../../support/usdc/remote-sales.ts';

const NETWORK = 'eip155:5042';
const WALLET = `0x${'77'.repeat(20)}` as const;
const signal = new AbortController().signal;
const seller = newKey();
const plain = plainRequirement(seller.address);
const requirement = gatewayRequirement(plain, WALLET);
const terms = { network: NETWORK, usdc: USDC, extra: gatewayExtra(WALLET), publicOrigin: 'https://a.test' } as const;
const now = () => Math.floor(Date.now() / 1000);
const pay = (key = newKey(), overrides: Parameters<typeof signForGateway>[3] = {}) =>
  signForGateway(key.privateKey, plain, WALLET, overrides);
const reasonOf = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error: unknown) => (error instanceof PaymentRefused ? error.reason : error),
  );

let gateway: GatewayStandIn;
const upstreams = createUpstreams({ clock: systemClock, userAgent: 'percall/test' });
const upstream = upstreams.open({
  name: 'gateway',
  timeoutMs: 60_000,
  maxBytes: 65_536,
  concurrency: 8,
  retries: 0,
});
const client = () => createGatewayClient({ upstream, url: gateway.url, token: 'gw-token', network: NETWORK });
beforeAll(async () => {
  gateway = await startGatewayStandIn(5042, WALLET);
});
afterAll(async () => {
  await upstreams.close();
  await gateway.stop();
});

describe('a payment for the Gateway', () => {
  test('must be signed under the Gateway Wallet’s domain, and no other signature passes', async () => {
    const check = createGatewaySignatureCheck(5042, WALLET);
    const key = newKey();
    expect(await reasonOf(check(pay(key)))).toBeNull();
    const others: Authorization[] = [
      signAuthorization(key.privateKey, plain),
      signForGateway(key.privateKey, plain, `0x${'78'.repeat(20)}`),
      signForGateway(key.privateKey, { ...plain, network: 'eip155:5042002' }, WALLET),
      { ...pay(key), value: 999n },
    ];
    for (const other of others) expect(await reasonOf(check(other))).toBe('invalid_exact_evm_signature');
  });

  test.each<[string, Parameters<typeof signForGateway>[3]]>([
    ['invalid_exact_evm_payload_authorization_value_mismatch', { value: 999n }],
    ['authorization_validity_too_short', { validBefore: BigInt(now() + 604_700) }],
  ])('is refused with %s before the Gateway is asked', async (reason, overrides) => {
    const check = createGatewayCheck({ handlerTimeoutMs: 10_000 });
    const judged = async (authorization: Authorization) => check(authorization, requirement, now());
    expect(await reasonOf(judged(pay(newKey(), overrides)))).toBe(reason);
    expect(await reasonOf(judged(pay()))).toBeNull();
    expect(await reasonOf(judged(pay(seller)))).toBe('self_transfer');
  });

  test.each([
    [10_000, 604_815],
    [10_001, 604_816],
    [0, 604_805],
  ])('must be valid for a week, a handler’s %i ms and five seconds', async (handlerTimeoutMs, least) => {
    const check = createGatewayCheck({ handlerTimeoutMs });
    const at = now();
    const judged = async (seconds: number) =>
      check(pay(newKey(), { validBefore: BigInt(at + seconds) }), requirement, at);
    expect(await reasonOf(judged(least - 1))).toBe('authorization_validity_too_short');
    expect(await reasonOf(judged(least))).toBeNull();
  });

  test('must not be valid for longer than clients sign for and ten minutes, because until then it may stay unknown', async () => {
    const check = createGatewayCheck({ handlerTimeoutMs: 10_000 });
    const at = now();
    const judged = async (seconds: number) =>
      check(pay(newKey(), { validBefore: BigInt(at + seconds) }), requirement, at);
    expect(await reasonOf(judged(605_500))).toBeNull();
    expect(await reasonOf(judged(605_501))).toBe('invalid_exact_evm_payload_authorization_valid_before');
    expect(await reasonOf(judged(-1))).toBe('invalid_exact_evm_payload_authorization_valid_before');
  });
});

describe('the Gateway’s client', () => {
  test('sends what the API wants, and the token where one is configured', async () => {
    const authorization = pay();
    expect(await client().verify(settleRequest(authorization, terms), signal)).toBeNull();
    const asked = gateway.asked.at(-1);
    expect(asked?.headers.authorization).toBe('Bearer gw-token');
    expect(asked?.body.paymentPayload).toMatchObject({ x402Version: 2, accepted: requirement });
    const forged = { ...authorization, signature: pay().signature };
    expect(await client().verify(settleRequest(forged, terms), signal)).toBe('invalid_signature');
    const { kinds, signers } = await client().supported();
    expect([kinds.map(({ network }) => network), signers]).toEqual([[NETWORK], {}]);
  });
});

describe('the balances that the Gateway reports', () => {
  test('are in base units, in the order of the question, and 0 for a payer that never deposited', async () => {
    const [rich, poor, withoutDeposit] = [newKey().address, newKey().address, newKey().address];
    gateway.deposit(rich, 12_345_678n);
    gateway.deposit(poor, 1n);
    expect(await client().balances([withoutDeposit, poor, rich, poor])).toEqual([0n, 1n, 12_345_678n, 1n]);
    const asked = gateway.asked.at(-1);
    expect([asked?.method, asked?.path]).toEqual(['POST', '/v1/balances']);
    expect(asked?.headers.authorization).toBe('Bearer gw-token');
    expect(asked?.body).toEqual({
      token: 'USDC',
      sources: [withoutDeposit, poor, rich, poor].map((depositor) => ({ domain: 26, depositor })),
    });
  });

  /** What we read out of an answer of this service. */
  async function read(answered: Answered, depositor = `0x${'ab'.repeat(20)}`): Promise<bigint | string> {
    const service = await startStandIn(async () => answered);
    const other = createGatewayClient({ upstream, url: service.url, token: null, network: NETWORK });
    const [balance] = await other.balances([depositor]).catch((error: Error) => [error.message]);
    await service.stop();
    return balance ?? 'none';
  }
  const reported = (...balances: object[]) => ({ json: { balances: balances.map((one) => ({ domain: 26, ...one })) } });
  const depositor = `0x${'ab'.repeat(20)}`;

  test.each([
    ['7', 7_000_000n],
    ['7.5', 7_500_000n],
    ['0.000001', 1n],
    ['0.00000100', 1n],
    ['0', 0n],
    ['123456789012.123456', 123_456_789_012_123_456n],
  ])('%s USDC are %i base units', async (balance, units) => {
    expect(await read(reported({ depositor, balance }))).toBe(units);
  });

  test('count for an address however it is written, and not on another chain', async () => {
    expect(await read(reported({ depositor: depositor.toUpperCase().replace('0X', '0x'), balance: '1' }))).toBe(
      1_000_000n,
    );
    expect(await read(reported({ depositor, balance: '1', domain: 0 }))).toBe(0n);
    expect(await read(reported({ depositor: `0x${'cd'.repeat(20)}`, balance: '1' }))).toBe(0n);
  });

  test.each<[string, Answered]>([
    ['has no such service', { status: 404, json: {} }],
    ['fails', { status: 500, json: {} }],
    ['answers without balances', { json: { token: 'USDC' } }],
    ['reports a negative balance', reported({ depositor, balance: '-1' })],
    ['reports a balance past six places', reported({ depositor, balance: '0.0000001' })],
    ['reports no number', reported({ depositor, balance: 'much' })],
  ])('are an upstream failure where it %s', async (_, answered) => {
    expect(typeof (await read(answered))).toBe('string');
  });
});

describe('the evidence of a Gateway payment', () => {
  const evidence = (clock = systemClock) => createGatewayEvidence(client(), NETWORK, clock);

  test('is its transfer: open without one, settled with ours, used elsewhere with another’s, failed when given up', async () => {
    const buyer = newKey();
    gateway.deposit(buyer.address, 10_000n);
    const authorization = pay(buyer);
    expect(await evidence().lookup(authorization)).toEqual({ kind: 'open' });
    expect((await client().settle(settleRequest(authorization, terms), 'id', signal)).kind).toBe('accepted');
    const [transfer] = gateway.transfers().filter(({ fromAddress }) => fromAddress === buyer.address);
    const id = transfer?.id ?? '';
    expect(await evidence().lookup(authorization)).toEqual({
      kind: 'settled',
      transaction: transferIdBytes(id),
      block: 0,
      paid: 1000n,
    });
    for (const other of [{ value: 999n }, { to: hexToBytes(newKey().address) }]) {
      expect(await evidence().lookup({ ...authorization, ...other })).toEqual({
        kind: 'failed',
        reason: 'invalid_exact_evm_nonce_already_used',
      });
    }
    gateway.giveUp(id);
    expect((await evidence().lookup(authorization)).kind).toBe('failed');
  });

  test('shows whether the Gateway has any transfer with the payment’s nonce, to any recipient', async () => {
    const buyer = newKey();
    gateway.deposit(buyer.address, 10_000n);
    const [authorization, other] = [pay(buyer), pay(buyer)];
    expect(await evidence().isUsed(authorization)).toBe(false);
    await client().settle(settleRequest(authorization, terms), 'id', signal);
    expect(await evidence().isUsed({ ...authorization, to: hexToBytes(newKey().address) })).toBe(true);
    expect(await evidence().isUsed(other)).toBe(false);
  });

  test('fails a payment without a transfer only once it has run out', async () => {
    const authorization = pay();
    const at = (seconds: bigint) => evidence(createManualClock(Number(seconds) * 1000)).lookup(authorization);
    expect(await at(authorization.validBefore)).toEqual({ kind: 'open' });
    expect(await at(authorization.validBefore + 60n)).toMatchObject({ kind: 'failed' });
  });

  test.each([
    ['with a nonce that was not asked for', [{ nonce: `0x${'00'.repeat(32)}` }]],
    ['of another payer', [{ fromAddress: WALLET }]],
    ['more than one', [{}, {}]],
    ['without a readable id', [{ id: '42' }]],
  ])('is unknown for transfers %s', async (_, changes) => {
    const authorization = pay();
    const transfer: GatewayTransfer = {
      id: '0b7c4b0c-1f4e-4c5e-9d53-0d1c2b3a4f5e',
      status: 'completed',
      amount: '1000',
      fromAddress: bytesToHex(authorization.from),
      toAddress: seller.address,
    };
    const search = async () => changes.map((change) => ({ ...transfer, ...change }));
    expect(await createGatewayEvidence({ search }, NETWORK, systemClock).lookup(authorization)).toEqual({
      kind: 'unknown',
    });
    const decimal = async () => [{ ...transfer, amount: '0.001' }];
    expect((await createGatewayEvidence({ search: decimal }, NETWORK, systemClock).lookup(authorization)).kind).toBe(
      'settled',
    );
    const more = async () => [{ ...transfer, amount: '0.0010001' }];
    expect((await createGatewayEvidence({ search: more }, NETWORK, systemClock).lookup(authorization)).kind).not.toBe(
      'settled',
    );
    const abroad = async () => [{ ...transfer, recipientNetwork: 'eip155:1' }];
    expect((await createGatewayEvidence({ search: abroad }, NETWORK, systemClock).lookup(authorization)).kind).toBe(
      'failed',
    );
  });
});

describe('a settled Gateway payment', () => {
  test('is known by its transfer, and by the batch’s transaction once there is one', async () => {
    const clock = createManualClock(Date.now());
    const errors: object[] = [];
    const log = { info: () => {}, warn: () => {}, error: (detail: object) => errors.push(detail) };
    const evidence = createGatewayEvidence(client(), NETWORK, systemClock);
    const sales = openSales(NETWORK, WALLET, (noteBroadcast) => ({
      evidence,
      ownOnly: true,
      settler: createRemoteSettler({
        isUsed: null,
        hasCode: null,
        client: client(),
        evidence,
        terms,
        noteBroadcast,
        clock: systemClock,
        log,
        usedBefore: async () => null,
        onUnsettled: () => {},
        pollMs: 10,
        watchMs: 10_000,
        stallMs: 10_000,
      }),
    }));
    const sold = [];
    for (let n = 0; n < 2; n++) {
      const buyer = newKey();
      gateway.deposit(buyer.address, 1000n);
      const authorization = pay(buyer);
      await sales.sell(authorization);
      // The sale itself waits for less than a second.
      await expect.poll(async () => (await sales.row(authorization))?.state).toBe('settled');
      sold.push(await sales.row(authorization));
    }
    const [first, second] = sold;
    const idOf = (payment = first) => transactionText(payment?.transaction ?? null) ?? '';
    expect(gateway.transfers().map(({ id }) => id)).toEqual(expect.arrayContaining([idOf(first), idOf(second)]));

    const batches = createGatewayBatches({ client: client(), store: sales.transfers, clock, log });
    await batches.round();
    expect(await sales.transfers.batchOf(first?.id ?? '')).toBeNull();
    gateway.giveUp(idOf(second));
    const hash = gateway.batch();
    // Not looked at again at once.
    await batches.round();
    expect(await sales.transfers.batchOf(first?.id ?? '')).toBeNull();
    await clock.advance(60_000);
    await batches.round();
    expect(bytesToHex((await sales.transfers.batchOf(first?.id ?? '')) ?? new Uint8Array())).toBe(hash);
    expect(await sales.transfers.paymentsIn(hexToBytes(hash), 10)).toEqual([first?.id]);
    expect(errors).toEqual([{ payment: second?.id, transfer: idOf(second) }]);
    expect(await sales.transfers.due(Number.MAX_SAFE_INTEGER, 10)).toEqual([]);
    await sales.close();
  });

  test('shows a transaction’s hash or a transfer’s id, and neither before the Gateway has made a transfer', () => {
    expect(transactionText(Buffer.alloc(32, 1))).toBe(`0x${'01'.repeat(32)}`);
    const id = '0b7c4b0c-1f4e-4c5e-9d53-0d1c2b3a4f5e';
    expect(transactionText(transferIdBytes(id.toUpperCase()))).toBe(id);
    expect([transactionText(null), transactionText(Uint8Array.of(0))]).toEqual([null, null]);
    expect(transferIdBytes(`${id}0`)).toBeNull();
  });
});
