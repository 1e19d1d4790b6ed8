import { decodeFunctionData, parseAbi } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { hexToBytes } from '../../../src/lib/hex.ts';
import { HANDLERS_WAIT, latchedEndpoint } from '../../support/service/latch.ts';
import { type Answer, type Service, startService } from '../../support/service/service.ts';
import { decoded, newBuyer, type Payment, present, transfersOf } from '../../support/usdc/buyer.ts';
import { headerOf, payloadOf } from '../../support/usdc/payments.ts';

const OTHER_CLIENT = '127.0.0.2';
const latch = latchedEndpoint();
let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  service = await startService(network, { env: HANDLERS_WAIT, catalogue: [latch.endpoint] });
});
afterAll(async () => {
  await service.stop();
  await network.stop();
});

const buy = (payment: Payment, query = '', from?: string) => present(service.origin, latch.path + query, payment, from);
const reason = (answer: Answer) => [answer.status, decoded(answer, 'payment-required').error];

/** Resolves when so many of the calls are answered. */
async function someAre(answers: readonly Promise<Answer>[], count: number): Promise<void> {
  let answered = 0;
  for (const answer of answers) void answer.then(() => answered++);
  await expect.poll(() => answered, { interval: 5 }).toBe(count);
}

describe('one payment', () => {
  test('presented 64 times at once runs the handler once, delivers once and moves one transfer; the others get 409', async () => {
    const payment = await (await newBuyer(network)).sign(service.origin, latch.path);
    const before = latch.runs();
    latch.close();
    const answers = Array.from({ length: 64 }, () => buy(payment));
    await someAre(answers, 63);
    latch.open();
    const all = await Promise.all(answers);
    const statuses = all.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...Array.from({ length: 63 }, () => 409)]);
    const refused = all.find(({ status }) => status === 409);
    expect(refused?.headers['retry-after']).toBe('1');
    expect(JSON.parse(String(refused?.body))).toMatchObject({ code: 'payment_in_flight', charged: 'unknown' });
    expect(latch.runs()).toBe(before + 1);
    expect(await transfersOf(network, payment)).toBe(1);
  });

  test('comes again with the same bytes and receipt from the same client, five times, uncharged', async () => {
    const payment = await (await newBuyer(network)).sign(service.origin, latch.path);
    const first = await buy(payment);
    expect(first.status).toBe(200);
    const runs = latch.runs();
    for (let i = 0; i < 5; i++) {
      const again = await buy(payment);
      expect([again.status, again.body]).toEqual([200, first.body]);
      expect(again.headers['payment-response']).toBe(first.headers['payment-response']);
    }
    expect(reason(await buy(payment))).toEqual([402, 'payment_already_used']);
    expect(latch.runs()).toBe(runs);
    expect(await transfersOf(network, payment)).toBe(1);
  });

  test('buys nothing for another request, for another client, or for a client that copied it from the chain', async () => {
    const payment = await (await newBuyer(network)).sign(service.origin, latch.path);
    const first = await buy(payment);
    const runs = latch.runs();
    expect(reason(await buy(payment, '?tag=other'))).toEqual([402, 'payment_already_used']);
    expect(reason(await buy(payment, '', OTHER_CLIENT))).toEqual([402, 'payment_already_used']);

    const { transaction } = decoded(first, 'payment-response') as { transaction: string };
    const { input } = await network.rpc<{ input: `0x${string}` }>('eth_getTransactionByHash', [transaction]);
    const abi = parseAbi([
      'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
    ]);
    const { args } = decodeFunctionData({ abi, data: input });
    const [from, to, value, validAfter, validBefore, nonce, v, r, s] = args;
    const signature = Buffer.concat([hexToBytes(r), hexToBytes(s), Buffer.from([v])]);
    const terms = {
      from: hexToBytes(from),
      to: hexToBytes(to),
      value,
      validAfter,
      validBefore,
      nonce: hexToBytes(nonce),
    };
    const copied = headerOf(payloadOf({ ...terms, signature }, payment.requirement));
    expect(reason(await buy({ ...payment, header: copied }, '', OTHER_CLIENT))).toEqual([402, 'payment_already_used']);
    expect(latch.runs()).toBe(runs);
  });

  test('comes again for another client that knows the payment identifier', async () => {
    const buyer = await newBuyer(network);
    const { authorization, requirement } = await buyer.sign(service.origin, latch.path);
    const identified = (id: string) => {
      const extensions = { 'payment-identifier': { info: { required: false, id } } };
      return { authorization, requirement, header: headerOf(payloadOf(authorization, requirement, extensions)) };
    };
    const first = await buy(identified('only-the-buyer-knows-this'));
    expect(first.status).toBe(200);
    expect((await buy(identified('only-the-buyer-knows-this'), '', OTHER_CLIENT)).body).toBe(first.body);
    expect(reason(await buy(identified('somebody-elses-wild-guess'), '', OTHER_CLIENT))).toEqual([
      402,
      'payment_already_used',
    ]);
  });

  test('whose client disconnects during the handler is not charged, and may be presented again', async () => {
    const payment = await (await newBuyer(network)).sign(service.origin, latch.path);
    latch.close();
    const controller = new AbortController();
    const started = latch.started();
    const left = fetch(service.origin + latch.path, {
      headers: { 'payment-signature': payment.header },
      signal: controller.signal,
    }).catch(() => 'gone');
    await started;
    controller.abort();
    expect(await left).toBe('gone');
    await expect.poll(async () => (await service.deps.payments.ledger.countByState()).reserved).toBe(0);
    latch.open();
    expect(await transfersOf(network, payment)).toBe(0);
    expect(await buy(payment)).toMatchObject({ status: 200 });
    expect(await transfersOf(network, payment)).toBe(1);
  });

  test('spelled in another letter case is the same payment', async () => {
    const payment = await (await newBuyer(network)).sign(service.origin, latch.path);
    const first = await buy(payment);
    const payload = payloadOf(payment.authorization, payment.requirement) as {
      payload: { authorization: Record<string, string> };
    };
    const { authorization } = payload.payload;
    for (const key of ['nonce', 'from']) authorization[key] = `0x${String(authorization[key]).slice(2).toUpperCase()}`;
    const again = await buy({ ...payment, header: headerOf(payload) });
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(await transfersOf(network, payment)).toBe(1);
  });
});

test('a payer’s open payments are limited, and the limit is free again when they end', async () => {
  const buyer = await newBuyer(network);
  latch.close();
  const cap = service.config.maxOpenPayments;
  const payments = await Promise.all(Array.from({ length: cap + 3 }, () => buyer.sign(service.origin, latch.path)));
  const answers = payments.map((payment) => buy(payment));
  await someAre(answers, 3);
  latch.open();
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(cap);
  expect(statuses.filter((status) => status === 429)).toHaveLength(3);
  expect(await buy(await buyer.sign(service.origin, latch.path))).toMatchObject({ status: 200 });
});

test('a payer’s uncharged failures per minute are limited, and another payer is served', async () => {
  const limited = await startService(network, { env: { PAYER_FAILURES_PER_MINUTE: '3' } });
  try {
    const path = '/v1/paid/selftest/fail';
    const buyer = await newBuyer(network);
    const statuses: number[] = [];
    for (let i = 0; i < 5; i++) {
      statuses.push((await present(limited.origin, path, await buyer.sign(limited.origin, path))).status);
    }
    expect(statuses).toEqual([500, 500, 500, 429, 429]);
    const other = await newBuyer(network);
    expect((await present(limited.origin, path, await other.sign(limited.origin, path))).status).toBe(500);
  } finally {
    await limited.stop();
  }
});

test('a client’s uncharged failures per minute are limited, however many payers it has, and another client is served', async () => {
  const limited = await startService(network, { env: { CLIENT_FAILURES_PER_MINUTE: '3' } });
  try {
    const path = '/v1/paid/selftest/fail';
    const answers: [number, string][] = [];
    for (let i = 0; i < 5; i++) {
      const buyer = await newBuyer(network);
      const { status, body } = await present(limited.origin, path, await buyer.sign(limited.origin, path));
      answers.push([status, JSON.parse(body).code]);
    }
    const wait = [429, 'client_failures'];
    expect(answers).toEqual([...Array(3).fill([500, expect.any(String)]), wait, wait]);
    const elsewhere = await (await newBuyer(network)).sign(limited.origin, path);
    expect((await present(limited.origin, path, elsewhere, '127.0.0.2')).status).toBe(500);
  } finally {
    await limited.stop();
  }
});
