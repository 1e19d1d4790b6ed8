import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { balanceOf, decoded, errorOf, newBuyer, type Payment, present } from '../../support/usdc/buyer.ts';
import { GATEWAY_WALLET, withGatewayNetwork } from '../../support/usdc/gateway-network.ts';
import { signForGateway } from '../../support/usdc/gateway-payment.ts';
import { headerOf, payloadOf, type Requirement, signAuthorization } from '../../support/usdc/payments.ts';

const REVERTED = 'invalid_exact_evm_transaction_failed';
const { network, gateway, gatewayEnv } = withGatewayNetwork();

describeServices('an authorization that has failed once', (ledgerEnv) => {
  const cheap = latchedEndpoint('/test/cheap', '0.0005');
  const dear = moodyEndpoint('/test/dear', '0.002');
  const dearPath = '/v1/paid/test/dear';
  let service: Service;
  beforeAll(async () => {
    const env = { ...gatewayEnv(), ...(await ledgerEnv()) };
    service = await startService(network, { env, catalogue: [cheap.endpoint, dear.endpoint] });
  });
  afterAll(() => service.stop());

  const transactionsSent = async () =>
    Number(await network.rpc('eth_getTransactionCount', [network.relayer.address, 'latest']));

  /** An entry in `accepts` of a route: the plain one or the Gateway's. */
  async function requirementAt(path: string, rail: 'plain' | 'gateway'): Promise<Requirement> {
    const accepts = decoded(await service.get(path), 'payment-required').accepts as Requirement[];
    return accepts[rail === 'plain' ? 0 : 1] as Requirement;
  }

  /** A payment for the cheap route whose settlement fails, because the balance is moved away while the handler runs. */
  async function failOnChain() {
    const buyer = await newBuyer(network, 500n);
    const payment = await buyer.sign(service.origin, cheap.path);
    cheap.close();
    const answer = present(service.origin, cheap.path, payment);
    await cheap.started();
    await network.fundUsdc(buyer.address, -500n);
    cheap.open();
    expect(errorOf(await answer)).toEqual([402, REVERTED]);
    // A balance that arrives within a block would count as present at that block.
    await network.mine();
    await network.fundUsdc(buyer.address, 10_000n);
    return { ...buyer, payment };
  }

  async function failAtGateway() {
    const buyer = await newBuyer(network, 0n);
    gateway.deposit(buyer.address, 10_000n);
    gateway.fault('refuses');
    const requirement = await requirementAt(cheap.path, 'gateway');
    const authorization = signForGateway(buyer.privateKey, requirement, GATEWAY_WALLET);
    const payment = { authorization, requirement, header: headerOf(payloadOf(authorization, requirement)) };
    expect((await present(service.origin, cheap.path, payment)).status).toBe(402);
    gateway.fault(null);
    return { ...buyer, payment };
  }

  const presentAs = (path: string, authorization: Payment['authorization'], requirement: Requirement) =>
    present(service.origin, path, { header: headerOf(payloadOf(authorization, requirement)) });

  test('cannot pay for a more expensive call with the same nonce', async () => {
    const { address, privateKey, payment } = await failOnChain();
    const sent = await transactionsSent();
    const requirement = await requirementAt(dearPath, 'plain');
    const { nonce } = payment.authorization;
    const changed = signAuthorization(privateKey, requirement, { nonce });
    const runs = dear.runs();
    expect(errorOf(await presentAs(dearPath, changed, requirement))).toEqual([402, 'payment_already_used']);
    expect([dear.runs(), await transactionsSent(), await balanceOf(network, address)]).toEqual([runs, sent, 10_000n]);
  });

  test('cannot be replaced by a payment with the same nonce and another time or signature', async () => {
    const { address, privateKey, payment } = await failOnChain();
    const sent = await transactionsSent();
    const { authorization, requirement } = payment;
    const { nonce, validBefore, signature } = authorization;
    const mirrored = Buffer.concat([signature.subarray(0, 64), Buffer.from([signature[64] === 27 ? 0 : 1])]);
    const others = [
      signAuthorization(privateKey, requirement, { nonce, validBefore: validBefore - 1n }),
      signAuthorization(privateKey, requirement, { nonce, validBefore, validAfter: 1n }),
      { ...authorization, signature: mirrored },
    ];
    for (const other of others) {
      expect(errorOf(await presentAs(cheap.path, other, requirement))).toEqual([402, 'payment_already_used']);
    }
    expect([await transactionsSent(), await balanceOf(network, address)]).toEqual([sent, 10_000n]);
  });

  test('still buys what it was signed for, once, when its first presenter presents it again', async () => {
    const { address, payment } = await failOnChain();
    const answer = await present(service.origin, cheap.path, payment);
    expect([answer.status, await balanceOf(network, address)]).toEqual([200, 9500n]);
  });

  test('buys nothing for another request of its price, which a third party behind the same address may ask for', async () => {
    const { address, payment } = await failOnChain();
    const runs = cheap.runs();
    const sent = await transactionsSent();
    expect(errorOf(await present(service.origin, `${cheap.path}?tag=other`, payment))).toEqual([
      402,
      'payment_already_used',
    ]);
    expect([cheap.runs(), await transactionsSent(), await balanceOf(network, address)]).toEqual([runs, sent, 10_000n]);
    expect((await present(service.origin, cheap.path, payment)).status).toBe(200);
  });

  test('cannot pay for a more expensive call over the Gateway either', async () => {
    const { address, privateKey, payment } = await failAtGateway();
    const requirement = await requirementAt(dearPath, 'gateway');
    const changed = signForGateway(privateKey, requirement, GATEWAY_WALLET, { nonce: payment.authorization.nonce });
    expect(errorOf(await presentAs(dearPath, changed, requirement))).toEqual([402, 'payment_already_used']);
    expect(gateway.depositOf(address)).toBe(10_000n);
    const answer = await present(service.origin, cheap.path, payment);
    expect([answer.status, gateway.depositOf(address)]).toEqual([200, 9500n]);
  });
});
