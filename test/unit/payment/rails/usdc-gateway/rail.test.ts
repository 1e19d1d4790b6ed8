import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../../src/lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import type { PurchaseRail, Verified } from '../../../../../src/payment/rail.ts';
import type { Authorization } from '../../../../../src/payment/settler.ts';
import { hashAuthorization } from '../../../../../src/payment/usdc/authorization.ts';
import { settleRequest } from '../../../../../src/payment/usdc/facilitator.ts';
import { createGatewayRail, type OpenGateway, openGateway } from '../../../../../src/payment/usdc/gateway.ts';
import type { Payment, PaymentKey } from '../../../../../src/store/ports/payments.ts';
import { createUpstreams } from '../../../../../src/upstream/client/client.ts';
import { reservation } from '../../../../support/ledger/ledger-rows.ts';
import { signForGateway } from '../../../../support/usdc/gateway-payment.ts';
import { type GatewayStandIn, startGatewayStandIn } from '../../../../support/usdc/gateway-stand-in.ts';
import { newKey, payloadOf, plainRequirement, signedPayment, USDC } from '../../../../support/usdc/payments.ts';

const NETWORK = 'eip155:5042';
const WALLET = `0x${'77'.repeat(20)}` as const;
const { signal } = new AbortController();
const seller = newKey();
const plain = plainRequirement(seller.address);
const POOR = { reason: 'insufficient_balance' };

let gateway: GatewayStandIn;
let opened: OpenGateway;
let promised: bigint;
let asked: { key: PaymentKey; id: string }[];
let rail: PurchaseRail;
let upstreams: ReturnType<typeof createUpstreams>;
beforeAll(async () => {
  gateway = await startGatewayStandIn(5042, WALLET);
});
beforeEach(() => {
  [promised, asked] = [0n, []];
  gateway.asked.length = 0;
  upstreams = createUpstreams({ clock: systemClock, userAgent: 'percall/test' });
  opened = open(gateway.url);
  rail = railOver(opened);
});
afterEach(() => upstreams.close());
afterAll(() => gateway.stop());

function open(url: string): OpenGateway {
  const network = { caip2: NETWORK, usdc: USDC } as const;
  const options = { network, publicOrigin: 'https://a.test', upstreams, clock: systemClock };
  return openGateway({ url, token: null, wallet: WALLET, timeoutMs: 60_000 }, options);
}

function railOver(over: OpenGateway): PurchaseRail {
  return createGatewayRail({
    gateway: over,
    status: { unavailable: () => 'the queue itself' },
    ledger: {
      openBefore: async (key, id) => {
        asked.push({ key, id });
        return promised;
      },
    },
    network: NETWORK,
    times: { handlerTimeoutMs: 10_000 },
    clock: systemClock,
  });
}

/** A payment of a fresh payer with this much in the Gateway. */
function paymentOf(deposit: bigint, overrides?: Parameters<typeof signForGateway>[3]): Authorization {
  const { privateKey, address } = newKey();
  if (deposit > 0n) gateway.deposit(address, deposit);
  return signForGateway(privateKey, plain, WALLET, overrides);
}
/** Both looks, as a purchase takes them: the first before the reservation, the second after. */
async function verify(
  authorization: Authorization,
  isAgain = false,
  asker = { client: 'c', hasFailed: false, signal },
): Promise<Verified> {
  const payment = signedPayment(authorization, WALLET);
  const seen = await rail.readPayer(payment, asker, { signed: null, isAgain, price: 1n });
  return rail.verify('this one', payment, seen, { asker, isAgain, price: authorization.value });
}
const review = (authorization: Authorization, mayLookUp = true) =>
  rail.review(signedPayment(authorization, WALLET), failedBefore, {
    asker: { client: 'c', hasFailed: false, signal },
    mayLookUp: () => mayLookUp,
  });
const settle = (authorization: Authorization) => {
  const terms = { network: NETWORK, usdc: USDC, extra: opened.extra, publicOrigin: 'https://a.test' } as const;
  return opened.client.settle(settleRequest(authorization, terms), 'id', signal);
};
/** How often each of the Gateway's paths was asked. */
const times = (path: string) => gateway.asked.filter((one) => one.path === path).length;
const [BALANCES, VERIFY, SEARCH] = ['/v1/balances', '/v1/x402/verify', '/v1/x402/transfers'];
const failedBefore: Payment = {
  ...reservation('before', 'before'),
  state: 'failed',
  signature: null,
  charged: null,
  payerHasCode: false,
  checkedBlock: 0,
  transaction: null,
  block: null,
  reason: 'invalid_exact_evm_transaction_failed',
  endedAt: 1,
  deliveries: 0,
  deliveredAt: null,
  channel: null,
  calldata: null,
};

test('the Gateway’s rail has the Gateway Wallet in the sale’s key and in its entry, and settles through its own settler', () => {
  expect(bytesToHex(rail.contract)).toBe(WALLET);
  expect(rail.requirement(plain as never).extra).toEqual({
    name: 'GatewayWalletBatched',
    version: '1',
    verifyingContract: WALLET,
  });
  expect(rail.status.unavailable()).toBe('the queue itself');
  const now = Math.floor(Date.now() / 1000);
  const short = paymentOf(0n, { validBefore: BigInt(now + 604_810) });
  expect(() => rail.check(signedPayment(short, WALLET), plain as never, now)).toThrow(
    'authorization_validity_too_short',
  );
});

test('the Gateway’s rail reads what the payer signed for the wallet, and accepts no other signature', async () => {
  const authorization = paymentOf(0n);
  const { payload } = payloadOf(authorization, plain);
  expect(rail.read(payload as never)).toEqual({
    kind: 'signed',
    authorization,
    authorizationHash: hashAuthorization(authorization, rail.contract),
  });
  const check = (one: Authorization) =>
    rail.checkSignature(signedPayment(one, WALLET), { client: 'c', hasFailed: false, signal });
  expect(await check(authorization)).toBeNull();
  await expect(check({ ...authorization, value: 1n })).rejects.toMatchObject({ reason: 'invalid_exact_evm_signature' });
});

describe('a payment through the Gateway', () => {
  test('of a payer whose deposit covers it is looked at as a whole, and needs no block', async () => {
    expect(await verify(paymentOf(1000n))).toEqual({ checkedBlock: 0, hasCode: false });
    expect([times(BALANCES), times(VERIFY), times(SEARCH)]).toEqual([1, 1, 1]);
  });

  test.each([
    ['exactly the price', 1000n, 0n, true],
    ['a unit less than the price', 999n, 0n, false],
    ['nothing at all', 0n, 0n, false],
    ['the price and what was promised before', 1700n, 700n, true],
    ['a unit less than that', 1699n, 700n, false],
  ])('of a payer with a deposit of %s is judged before anything else is asked', async (_, deposit, before, isTaken) => {
    promised = before;
    const authorization = paymentOf(deposit);
    const end = verify(authorization);
    if (isTaken) await end;
    else await expect(end).rejects.toMatchObject(POOR);
    expect([times(VERIFY), times(SEARCH)]).toEqual(isTaken ? [1, 1] : [0, 0]);
    const { from: payer, nonce } = authorization;
    const key = { network: NETWORK, contract: hexToBytes(WALLET), payer, nonce };
    // What has not even the price alone is refused before the ledger is asked for anything.
    expect(asked).toEqual(deposit < 1000n ? [] : [{ key, id: 'this one' }]);
  });

  test('that the Gateway refuses is refused with the Gateway’s reason', async () => {
    const forged = { ...paymentOf(1000n), signature: paymentOf(1000n).signature };
    await expect(verify(forged)).rejects.toMatchObject({ reason: 'invalid_signature' });
  });

  test('that was used before it was ever presented here was sold by another ledger', async () => {
    const authorization = paymentOf(5000n);
    await settle(authorization);
    await expect(verify(authorization)).rejects.toMatchObject({ reason: 'payment_already_used' });
  });

  test('buys nothing while the Gateway does not answer', async () => {
    await upstreams.close();
    upstreams = createUpstreams({ clock: systemClock, userAgent: 'percall/test' });
    rail = railOver(open('http://127.0.0.1:1'));
    await expect(verify(paymentOf(1000n))).rejects.toMatchObject({
      status: 502,
      charged: false,
      message: expect.stringMatching(/^gateway: /),
    });
  });
});

describe('a payment that had failed before', () => {
  test('and was transferred after all counts as paid, which its review finds without the deposit', async () => {
    const authorization = paymentOf(1000n);
    await settle(authorization);
    expect(await review(authorization)).toMatchObject({ kind: 'settled', paid: 1000n });
    expect([times(BALANCES), times(VERIFY)]).toEqual([0, 0]);
  });

  test('and is still unused is checked like a new one, except for the trace that our own request left', async () => {
    const authorization = paymentOf(1000n);
    expect(await review(authorization)).toEqual({ kind: 'open' });
    expect(await verify(authorization, true)).toEqual({ checkedBlock: 0, hasCode: false });
    expect([times(BALANCES), times(VERIFY), times(SEARCH)]).toEqual([1, 1, 1]);
    await expect(verify(paymentOf(999n), true)).rejects.toMatchObject(POOR);
  });

  test('is not reviewed where that may cost nothing now', async () => {
    expect(await review(paymentOf(1000n), false)).toEqual({ kind: 'unknown' });
    expect(times(SEARCH)).toBe(0);
  });
});

describe('deposits at the Gateway', () => {
  test('of many payers at once are asked for together, twenty in a request', async () => {
    const payments = Array.from({ length: 50 }, (_, at) => paymentOf(1000n + BigInt(at)));
    await Promise.all(
      payments.map((payment, at) => verify(payment, false, { client: `client ${at}`, hasFailed: false, signal })),
    );
    expect(times(BALANCES)).toBe(3);
    const sizes = gateway.asked.filter(({ path }) => path === BALANCES).map(({ body }) => body.sources.length);
    expect(sizes.sort((a, b) => a - b)).toEqual([10, 20, 20]);
  });

  test('are read for each payer as its own', async () => {
    const [rich, poor] = [paymentOf(1000n), paymentOf(999n)];
    const ends = await Promise.allSettled([verify(rich), verify(poor)]);
    expect(ends).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: POOR }]);
    expect(times(BALANCES)).toBe(1);
  });

  test('are asked for in turns: a client that would hold more than is left for others is refused at once', async () => {
    const crowd = Array.from({ length: 201 }, () =>
      verify(paymentOf(0n), false, { client: 'greedy', hasFailed: false, signal }),
    );
    const asker = { client: 'other', hasFailed: false, signal };
    // Awaited later, and it may come first.
    const refused = expect(verify(paymentOf(0n), false, asker)).rejects.toMatchObject(POOR);
    const ends = await Promise.allSettled(crowd);
    expect(ends.filter((end) => end.status === 'rejected' && end.reason.reason === POOR.reason)).toHaveLength(200);
    expect(ends.at(-1)).toMatchObject({ reason: { status: 503, code: 'gateway_busy', retryAfterSeconds: 1 } });
    await refused;
  });

  test('are not waited for by a buyer who has gone', async () => {
    const leaver = new AbortController();
    const end = verify(paymentOf(1000n), false, { client: 'c', hasFailed: false, signal: leaver.signal });
    leaver.abort(new Error('gone'));
    await expect(end).rejects.toThrow('gone');
  });
});
