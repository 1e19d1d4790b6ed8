import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { untilReady } from '../../support/service/workers.ts';
import { balanceOf, decoded, newBuyer, type Payment, present, transfersOf } from '../../support/usdc/buyer.ts';
import { cancelCalldata, newOutsider } from '../../support/usdc/outsider.ts';

let network: EmbeddedNetwork;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
});
afterAll(async () => {
  await network.stop();
});

describeServices('what an answer says of the money', (ledgerEnv) => {
  const latch = latchedEndpoint('/test/latch', '0.001');
  // The latch's own route fails while this is set, because a reverted payment buys only the call that it was made for.
  let isBroken = false;
  const run: typeof latch.endpoint.run = async (...given) => {
    if (isBroken) throw new UpstreamFailed('test', 'broken');
    return latch.endpoint.run(...given);
  };
  const failing = moodyEndpoint('/test/failing', '0.001');
  const failingPath = '/v1/paid/test/failing';
  let service: Service;
  beforeAll(async () => {
    const env = { RECEIPT_POLL_MS: '50', ...(await ledgerEnv()) };
    service = await startService(network, { env, catalogue: [{ ...latch.endpoint, run }, failing.endpoint] });
    await untilReady(service);
  });
  afterAll(() => service.stop());

  const buy = (payment: Payment, path = latch.path) => present(service.origin, path, payment);

  /** A payment that reverted, because its buyer had moved the balance away for a while. */
  async function reverted() {
    const buyer = await newBuyer(network, 1000n);
    const payment = await buyer.sign(service.origin, latch.path);
    latch.close();
    const answer = buy(payment);
    await latch.started();
    await network.fundUsdc(buyer.address, -1000n);
    latch.open();
    expect(decoded(await answer, 'payment-response').success).toBe(false);
    await network.mine();
    await network.fundUsdc(buyer.address, 1000n);
    return { ...buyer, payment };
  }

  test('is "unknown" while the payment is served on another connection, which may take it at any moment', async () => {
    const payment = await (await newBuyer(network)).sign(service.origin, latch.path);
    latch.close();
    const first = buy(payment);
    await latch.started();
    const second = await buy(payment);
    expect(second.status).toBe(409);
    expect(JSON.parse(second.body)).toMatchObject({ code: 'payment_in_flight', charged: 'unknown' });
    latch.open();
    expect((await first).status).toBe(200);
  });

  test('is "unknown" when a call fails for a reverted payment that a third party has sent since, and the buyer still gets an answer', async () => {
    const { address, payment } = await reverted();
    await (await newOutsider(network)).submit(payment.authorization);
    expect(await balanceOf(network, address)).toBe(0n);
    isBroken = true;
    for (let tries = 0; tries < 3; tries++) {
      const answer = await buy(payment);
      expect([answer.status, JSON.parse(answer.body).charged]).toEqual([502, 'unknown']);
    }
    isBroken = false;
    const served = await buy(payment);
    expect([served.status, await transfersOf(network, payment)]).toEqual([200, 1]);
    expect((await buy(payment, failingPath)).status).toBe(402);
  });

  test('at another address, a reverted payment that a third party has sent since is refused as used, not as failed', async () => {
    const { payment } = await reverted();
    await (await newOutsider(network)).submit(payment.authorization);
    const answer = await present(service.origin, latch.path, payment, '127.0.0.2');
    expect([answer.status, decoded(answer, 'payment-required').error]).toEqual([402, 'payment_already_used']);
    expect((await buy(payment)).status).toBe(200);
    expect(await transfersOf(network, payment)).toBe(1);
  });

  test('after the payer has cancelled a reverted payment, it ends as one that nothing can take any more, whichever client presents it', async () => {
    const { privateKey, payment } = await reverted();
    const outsider = await newOutsider(network);
    await outsider.send(cancelCalldata(network, privateKey, payment.authorization));
    for (let tries = 0; tries < 3; tries++) {
      const { success, errorReason } = decoded(await buy(payment), 'payment-response');
      expect([success, errorReason]).toEqual([false, 'invalid_exact_evm_nonce_already_used']);
    }
    expect(await transfersOf(network, payment)).toBe(0);
  });

  test('is "unknown" when a call fails for a reverted payment that a third party could send, and nothing is charged', async () => {
    const { address, payment } = await reverted();
    isBroken = true;
    const answer = await buy(payment);
    expect([answer.status, JSON.parse(answer.body).charged]).toEqual([502, 'unknown']);
    isBroken = false;
    expect(await balanceOf(network, address)).toBe(1000n);
    expect((await buy(payment)).status).toBe(200);
    expect(await balanceOf(network, address)).toBe(0n);
  });

  test('is "false" for a call that fails before the payment could be taken', async () => {
    const buyer = await newBuyer(network);
    failing.fail();
    const answer = await buy(await buyer.sign(service.origin, failingPath), failingPath);
    failing.recover();
    expect([answer.status, JSON.parse(answer.body).charged]).toEqual([502, false]);
    expect(await balanceOf(network, buyer.address)).toBe(1_000_000n);
  });
});
