import { afterAll, beforeAll, expect, test } from 'vitest';
import { settleRequest } from '../../../src/payment/usdc/facilitator.ts';
import { gatewayExtra } from '../../../src/payment/usdc/gateway.ts';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';
import { decoded, errorOf, newBuyer, type Payment, present } from '../../support/usdc/buyer.ts';
import { GATEWAY_WALLET, withGatewayNetwork } from '../../support/usdc/gateway-network.ts';
import { signForGateway } from '../../support/usdc/gateway-payment.ts';
import { headerOf, payloadOf, type Requirement } from '../../support/usdc/payments.ts';

const ELSEWHERE = `0x${'5e'.repeat(20)}` as const;
const { network, gateway, gatewayEnv } = withGatewayNetwork();

describeServices('the Gateway’s rail', (ledgerEnv) => {
  const latch = latchedEndpoint();
  const other = latchedEndpoint();
  let service: Service;
  let sameSeller: Service;
  beforeAll(async () => {
    const env = { ...gatewayEnv(), SETTLE_WAIT_MS: '10000', RECONCILE_INTERVAL_MS: '100' };
    service = await startService(network, { env: { ...env, ...(await ledgerEnv()) }, catalogue: [latch.endpoint] });
    sameSeller = await startService(network, { env, catalogue: [other.endpoint] });
  });
  afterAll(async () => {
    await service.stop();
    await sameSeller.stop();
  });

  /** A payment by a payer with this deposit in the Gateway and nothing on the chain. */
  async function batched(units: bigint) {
    const { privateKey, address } = await newBuyer(network, 0n);
    if (units > 0n) gateway.deposit(address, units);
    const accepts = decoded(await service.get(latch.path), 'payment-required').accepts as Requirement[];
    const requirement = accepts[1] as Requirement;
    const authorization = signForGateway(privateKey, requirement, GATEWAY_WALLET);
    const payment = { authorization, requirement, header: headerOf(payloadOf(authorization, requirement)) };
    return { ...payment, address, privateKey };
  }

  /** Spends a payment's nonce at another seller for the smallest amount. */
  async function spendElsewhere({
    privateKey,
    requirement,
    authorization: { nonce },
  }: Payment & { privateKey: Buffer }) {
    const cheap = signForGateway(privateKey, requirement, GATEWAY_WALLET, { nonce, to: ELSEWHERE, value: 1n });
    const { chainId, usdc } = network;
    const terms = {
      network: `eip155:${chainId}` as const,
      usdc,
      extra: gatewayExtra(GATEWAY_WALLET),
      publicOrigin: 'http://b',
    };
    const sent = { method: 'POST', body: JSON.stringify(settleRequest(cheap, terms)) };
    expect(await (await fetch(`${gateway.url}/v1/x402/settle`, sent)).json()).toMatchObject({ success: true });
  }

  const buy = (payment: Payment, at = service) => present(at.origin, latch.path, payment);

  test('sells nothing for a payment for which another ledger of the same seller has sold', async () => {
    const payment = await batched(5000n);
    expect((await buy(payment, sameSeller)).status).toBe(200);
    const runs = latch.runs();
    expect(errorOf(await buy(payment))).toEqual([402, 'payment_already_used']);
    expect([latch.runs(), gateway.depositOf(payment.address)]).toEqual([runs, 4000n]);
  });

  test('sells nothing for a payment for which another ledger sells while the call is served here', async () => {
    const payment = await batched(5000n);
    latch.close();
    const late = buy(payment);
    await until('it is served', () => latch.waiting() === 1);
    expect((await buy(payment, sameSeller)).status).toBe(200);
    latch.open();
    const answer = await late;
    expect([...errorOf(answer), decoded(answer, 'payment-response').success]).toEqual([
      ...[402, 'payment_already_used'],
      false,
    ]);
    expect(gateway.depositOf(payment.address)).toBe(4000n);
  });

  test('runs no handler for a payer without a deposit, nor for one whose deposit is already promised', async () => {
    const runs = latch.runs();
    for (let key = 0; key < 10; key++)
      expect(errorOf(await buy(await batched(0n)))).toEqual([402, 'insufficient_balance']);
    expect(errorOf(await buy(await batched(999n)))).toEqual([402, 'insufficient_balance']);
    expect(latch.runs()).toBe(runs);
    const first = await batched(1500n);
    const second = signForGateway(first.privateKey, first.requirement, GATEWAY_WALLET);
    latch.close();
    const served = buy(first);
    await until('it is served', () => latch.waiting() === 1);
    const header = headerOf(payloadOf(second, first.requirement));
    expect(errorOf(await buy({ ...first, header }))).toEqual([402, 'insufficient_balance']);
    latch.open();
    expect((await served).status).toBe(200);
  });

  test('keeps selling while payers spend their nonces elsewhere, before they present them and while they are served', async () => {
    const spent = await Promise.all(Array.from({ length: 4 }, () => batched(5000n)));
    for (const payment of spent) await spendElsewhere(payment);
    for (const payment of spent) expect(errorOf(await buy(payment))).toEqual([402, 'payment_already_used']);
    const late = await Promise.all(Array.from({ length: 4 }, () => batched(5000n)));
    latch.close();
    const answers = late.map((payment) => buy(payment));
    await until('all are served', () => latch.waiting() === late.length);
    for (const payment of late) await spendElsewhere(payment);
    latch.open();
    for (const answer of await Promise.all(answers)) expect(answer.status).toBe(402);
    expect((await buy(await batched(5000n))).status).toBe(200);
  });
});
