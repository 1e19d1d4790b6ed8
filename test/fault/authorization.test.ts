import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { latchedEndpoint } from '../support/service/latch.ts';
import { type Answer, type Service, startService } from '../support/service/service.ts';
import { balanceOf, decoded, newBuyer, type Payment, present, transfersOf } from '../support/usdc/buyer.ts';
import { cancelCalldata, newOutsider } from '../support/usdc/outsider.ts';
import { headerOf, payloadOf, signAuthorization } from '../support/usdc/payments.ts';

const latch = latchedEndpoint();
let network: EmbeddedNetwork;
let service: Service;
let outsider: Awaited<ReturnType<typeof newOutsider>>;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  service = await startService(network, { catalogue: [latch.endpoint] });
  outsider = await newOutsider(network);
});
afterAll(async () => {
  // The seller's balance agrees with the ledger's sales after every test above.
  const { settled } = await service.deps.payments.ledger.countByState();
  expect(await balanceOf(network, network.seller)).toBe(1000n * BigInt(settled));
  await service.stop();
  await network.stop();
});

const buy = (payment: Payment, from?: string) => present(service.origin, latch.path, payment, from);
const settlement = (answer: Answer) => [answer.status, decoded(answer, 'payment-response').errorReason];

/** Presents a payment, and runs `act` after the payment's checks, while its handler runs. */
async function whileServed(payment: Payment, act: () => Promise<unknown>): Promise<Answer> {
  latch.close();
  const started = latch.started();
  const answer = buy(payment);
  await started;
  await act();
  latch.open();
  return answer;
}

test('a malleated signature is refused, and the original signature stays valid', async () => {
  const payment = await (await newBuyer(network)).sign(service.origin, latch.path);
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const { signature } = payment.authorization;
  const s = order - BigInt(`0x${Buffer.from(signature.subarray(32, 64)).toString('hex')}`);
  const high = Buffer.from(s.toString(16).padStart(64, '0'), 'hex');
  const twin = Buffer.concat([signature.subarray(0, 32), high, Buffer.from([signature[64] === 27 ? 28 : 27])]);
  const header = headerOf(payloadOf({ ...payment.authorization, signature: twin }, payment.requirement));
  const refused = await buy({ ...payment, header });
  expect([refused.status, decoded(refused, 'payment-required').error]).toEqual([402, 'invalid_exact_evm_signature']);
  expect(await buy(payment)).toMatchObject({ status: 200 });
});

test('the signature of another account is refused', async () => {
  const [buyer, thief] = [await newBuyer(network), await newBuyer(network)];
  const payment = await buyer.sign(service.origin, latch.path);
  const stolen = { ...signAuthorization(thief.privateKey, payment.requirement), from: payment.authorization.from };
  const refused = await buy({ ...payment, header: headerOf(payloadOf(stolen, payment.requirement)) });
  expect([refused.status, decoded(refused, 'payment-required').error]).toEqual([402, 'invalid_exact_evm_signature']);
});

test('an authorization cancelled between check and settle is not delivered and not charged', async () => {
  const buyer = await newBuyer(network);
  const payment = await buyer.sign(service.origin, latch.path);
  const cancel = cancelCalldata(network, buyer.privateKey, payment.authorization);
  const answer = await whileServed(payment, () => outsider.send(cancel));
  expect(settlement(answer)).toEqual([402, 'invalid_exact_evm_nonce_already_used']);
  expect(Object.keys(JSON.parse(answer.body))).toEqual(['hint']);
  expect(await transfersOf(network, payment)).toBe(0);
  expect(settlement(await buy(payment))).toEqual([402, 'invalid_exact_evm_nonce_already_used']);
});

test('an authorization whose nonce its owner used elsewhere is not delivered', async () => {
  const buyer = await newBuyer(network);
  const payment = await buyer.sign(service.origin, latch.path);
  const { nonce } = payment.authorization;
  const elsewhere = signAuthorization(buyer.privateKey, payment.requirement, { nonce, to: `0x${'ee'.repeat(20)}` });
  const answer = await whileServed(payment, () => outsider.submit(elsewhere));
  expect(settlement(answer)).toEqual([402, 'invalid_exact_evm_nonce_already_used']);
  expect(await transfersOf(network, payment)).toBe(0);
});

test('an authorization that was cancelled or used before is refused before the handler runs', async () => {
  const buyer = await newBuyer(network);
  const payment = await buyer.sign(service.origin, latch.path);
  await outsider.send(cancelCalldata(network, buyer.privateKey, payment.authorization));
  const runs = latch.runs();
  const answer = await buy(payment);
  expect([answer.status, decoded(answer, 'payment-required').error]).toEqual([
    402,
    'invalid_exact_evm_nonce_already_used',
  ]);
  expect(latch.runs()).toBe(runs);
});

test("a transfer that a third party's transaction made counts as paid, once", async () => {
  const payment = await (await newBuyer(network)).sign(service.origin, latch.path);
  let hash = '';
  const answer = await whileServed(payment, async () => {
    hash = await outsider.submit(payment.authorization);
  });
  expect(answer.status).toBe(200);
  expect(decoded(answer, 'payment-response')).toMatchObject({ success: true, transaction: hash });
  expect(await transfersOf(network, payment)).toBe(1);
});

test('ten authorizations whose balance moves away are not delivered; after the balance is back the same ones are delivered', async () => {
  const buyer = await newBuyer(network, 10_000n);
  const payments = await Promise.all(Array.from({ length: 10 }, () => buyer.sign(service.origin, latch.path)));
  const away = signAuthorization(buyer.privateKey, payments[0]!.requirement, {
    to: `0x${'ee'.repeat(20)}`,
    value: 10_000n,
  });
  latch.close();
  const answers = payments.map((payment) => buy(payment));
  await expect.poll(latch.waiting).toBe(10);
  await outsider.submit(away);
  latch.open();
  for (const answer of await Promise.all(answers)) {
    expect(settlement(answer)).toEqual([402, 'invalid_exact_evm_transaction_failed']);
  }
  expect(await Promise.all(payments.map((payment) => transfersOf(network, payment)))).toEqual(Array(10).fill(0));
  // The balance comes back in a later block than the settlement's, as on a real chain.
  await network.mine();
  await network.fundUsdc(buyer.address, 10_000n);
  for (const answer of await Promise.all(payments.map((payment) => buy(payment)))) expect(answer.status).toBe(200);
  expect(await balanceOf(network, buyer.address)).toBe(0n);
});

test('of ten authorizations over a balance for five, five are served and five refused before their handler', async () => {
  const buyer = await newBuyer(network, 5000n);
  const payments = await Promise.all(Array.from({ length: 10 }, () => buyer.sign(service.origin, latch.path)));
  const runs = latch.runs();
  const statuses = (await Promise.all(payments.map((payment) => buy(payment)))).map(({ status }) => status).sort();
  expect(statuses).toEqual([200, 200, 200, 200, 200, 402, 402, 402, 402, 402]);
  expect(latch.runs()).toBe(runs + 5);
});

test('a reverted authorization that a third party sends later is answered to its first presenter, and to no other client', async () => {
  const buyer = await newBuyer(network, 1000n);
  const payment = await buyer.sign(service.origin, latch.path);
  const away = signAuthorization(buyer.privateKey, payment.requirement, { to: `0x${'ee'.repeat(20)}` });
  const refused = await whileServed(payment, () => outsider.submit(away));
  expect(settlement(refused)).toEqual([402, 'invalid_exact_evm_transaction_failed']);
  await network.mine();
  await network.fundUsdc(buyer.address, 1000n);
  const hash = await outsider.submit(payment.authorization);
  expect((await buy(payment, '127.0.0.2')).status).toBe(402);
  const answer = await buy(payment);
  expect(answer.status).toBe(200);
  expect(decoded(answer, 'payment-response')).toMatchObject({ success: true, transaction: hash });
});
