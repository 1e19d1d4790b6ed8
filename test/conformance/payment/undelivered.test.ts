import { request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { createAheadClock } from '../../support/ahead-clock.ts';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { elapse } from '../../support/service/elapse.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { type Answer, type Service, startService } from '../../support/service/service.ts';
import { presentUntilServed, until } from '../../support/service/workers.ts';
import { decoded, newBuyer, type Payment, present, transfersOf } from '../../support/usdc/buyer.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
let network: EmbeddedNetwork;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
});
afterAll(() => network.stop());

describeServices('an answer that was paid', (ledgerEnv) => {
  const latch = latchedEndpoint();
  let service: Service;
  const clock = createAheadClock();
  beforeAll(async () => {
    const env = { RECEIPT_POLL_MS: '50', RECONCILE_INTERVAL_MS: '100', COLLECTOR: 'off', ...(await ledgerEnv()) };
    service = await startService(network, { env, catalogue: [latch.endpoint], clock });
    await until('it sells', async () => (await service.get(latch.path)).status === 402);
  });
  afterAll(() => service.stop());

  /** A payment that is valid for an hour by the service's clock. */
  const sign = async () => {
    const validBefore = BigInt(Math.floor(clock.nowMs() / 1000) + 3600);
    return (await newBuyer(network)).sign(service.origin, latch.path, { validBefore });
  };
  const buy = (payment: Payment) => presentUntilServed(service.origin, latch.path, payment);

  /** The answer to a payment that is not served. A 503, by which a late database asks the buyer to come again, is none. */
  async function refuse(payment: Payment, from?: string): Promise<Answer> {
    const ask = () => present(service.origin, latch.path, payment, from);
    let answer = await ask();
    await until('it is decided', async () => {
      if (answer.status === 503) answer = await ask();
      return answer.status !== 503;
    });
    return answer;
  }

  const stateOf = async ({ authorization }: Payment) => {
    const { status, body } = await service.get(`/v1/payments/${bytesToHex(authorization.nonce)}`);
    return status === 200 ? JSON.parse(body).payments[0].state : null;
  };

  /** Presents a payment, and keeps the connection open until the buyer leaves. */
  function stayWith({ header }: Payment) {
    const sent = request(`${service.origin}${latch.path}`, { headers: { 'payment-signature': header } });
    const presented = { isAnswered: false, leave: () => sent.destroy() };
    sent.on('error', () => {});
    sent.on('response', () => {
      presented.isAnswered = true;
    });
    sent.end();
    return presented;
  }

  /** Pays, and leaves while the payment is being settled. */
  async function payAndLeave(): Promise<Payment> {
    const payment = await sign();
    await network.pauseMining();
    let presented = stayWith(payment);
    try {
      await until('it is being settled', async () => {
        const { isAnswered, leave } = presented;
        // On a busy machine the buyer's wait may be over before this sees it. Then the row is `unknown`, and its payment is still under way.
        if (['settling', 'unknown'].includes(await stateOf(payment))) return true;
        // A late database has refused it before its answer was stored.
        if (isAnswered) {
          leave();
          presented = stayWith(payment);
        }
        return false;
      });
    } finally {
      presented.leave();
      await network.resumeMining();
    }
    await until('it is settled', async () => (await stateOf(payment)) === 'settled');
    return payment;
  }

  test('and never reached its buyer is delivered days later, and then kept for the redelivery time', async () => {
    const payment = await payAndLeave();
    await elapse(service, clock, 6 * DAY_MS);
    const first = await buy(payment);
    await elapse(service, clock, 14 * MINUTE_MS);
    expect((await buy(payment)).body).toBe(first.body);
    await elapse(service, clock, 2 * MINUTE_MS);
    const late = await refuse(payment);
    expect([late.status, decoded(late, 'payment-required').error]).toEqual([402, 'payment_already_used']);
    expect(await transfersOf(network, payment)).toBe(1);
  });

  test('and was not fetched for a week is gone: its buyer gets 410, and is not asked to pay again', async () => {
    const payment = await payAndLeave();
    await elapse(service, clock, 7 * DAY_MS + MINUTE_MS);
    const answer = await refuse(payment);
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([410, { code: 'answer_gone', charged: true }]);
    const elsewhere = await refuse(payment, '127.0.0.2');
    expect([elsewhere.status, decoded(elsewhere, 'payment-required').error]).toEqual([402, 'payment_already_used']);
  });

  test('and was delivered at once is kept for the redelivery time alone', async () => {
    const payment = await sign();
    const first = await buy(payment);
    expect((await buy(payment)).body).toBe(first.body);
    await elapse(service, clock, 16 * MINUTE_MS);
    expect((await refuse(payment)).status).toBe(402);
  });
});
