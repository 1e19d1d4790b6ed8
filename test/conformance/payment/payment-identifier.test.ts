import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { HANDLERS_WAIT, latchedEndpoint } from '../../support/service/latch.ts';
import { type Answer, type Service, startService } from '../../support/service/service.ts';
import { balanceOf, decoded, newBuyer, type Payment, present, transfersOf } from '../../support/usdc/buyer.ts';
import { cancelCalldata, newOutsider } from '../../support/usdc/outsider.ts';
import { headerOf, newKey, payloadOf, signAuthorization } from '../../support/usdc/payments.ts';

const OTHER_CLIENT = '127.0.0.2';
const latch = latchedEndpoint();
let network: EmbeddedNetwork;
let service: Service;
let id: string;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  service = await startService(network, { env: HANDLERS_WAIT, catalogue: [latch.endpoint] });
});
afterAll(async () => {
  // The seller's balance agrees with the ledger's sales after every test above.
  const { settled } = await service.deps.payments.ledger.countByState();
  expect(await balanceOf(network, network.seller)).toBe(1000n * BigInt(settled));
  await service.stop();
  await network.stop();
});
beforeEach(() => {
  id = `id-${randomUUID()}`;
  latch.open();
});

/** The same payment, presented under an identifier. */
function under(identifier: unknown, payment: Payment): Payment {
  const extensions = { 'payment-identifier': { info: { required: false, id: identifier } } };
  return { ...payment, header: headerOf(payloadOf(payment.authorization, payment.requirement, extensions)) };
}
const newPayment = async (units?: bigint) => (await newBuyer(network, units)).sign(service.origin, latch.path);
const buy = (payment: Payment, query = '', from?: string) => present(service.origin, latch.path + query, payment, from);
const codeOf = ({ status, body }: Answer) => [status, JSON.parse(body).code, JSON.parse(body).charged];
const CONFLICT = [409, 'payment_identifier_conflict', false];
/** For a payment that the ledger knows, because its money may have moved. */
const KNOWN_CONFLICT = [409, 'payment_identifier_conflict', 'unknown'];

test('a payment identifier with the same payload brings the same answer again, to another client too, and charges once', async () => {
  const payment = under(id, await newPayment());
  const first = await buy(payment);
  expect(first.status).toBe(200);
  for (const from of [undefined, OTHER_CLIENT]) {
    const again = await buy(payment, '', from);
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(again.headers['payment-response']).toBe(first.headers['payment-response']);
  }
  expect(await transfersOf(network, payment)).toBe(1);
});

test('a payment identifier with another authorization gets 409, for the same payer or another, and nothing runs or moves', async () => {
  const buyer = await newBuyer(network);
  const [first, second] = [await buyer.sign(service.origin, latch.path), await buyer.sign(service.origin, latch.path)];
  const foreign = await newPayment();
  expect(await buy(under(id, first))).toMatchObject({ status: 200 });
  const runs = latch.runs();
  expect(codeOf(await buy(under(id, second)))).toEqual(CONFLICT);
  expect(codeOf(await buy(under(id, foreign)))).toEqual(CONFLICT);
  expect(latch.runs()).toBe(runs);
  expect(await transfersOf(network, first)).toBe(1);
  expect(await transfersOf(network, foreign)).toBe(0);
  // The authorization is still valid.
  expect(await buy(under(`${id}-next`, second))).toMatchObject({ status: 200 });
  expect(await transfersOf(network, first)).toBe(2);
});

test('a payment identifier with the same authorization for another request gets 409, and for the same request it is served', async () => {
  const payment = under(id, await newPayment());
  const first = await buy(payment, '?tag=one');
  expect(codeOf(await buy(payment, '?tag=two'))).toEqual(KNOWN_CONFLICT);
  expect(await buy(payment, '?tag=one')).toMatchObject({ status: 200, body: first.body });
});

test('a payment identifier of another payment, presented with one that is being served or is paid, does not say that nothing was charged', async () => {
  expect(await buy(under(id, await newPayment()))).toMatchObject({ status: 200 });
  const payment = await newPayment();
  latch.close();
  const started = latch.started();
  const answer = buy(payment);
  await started;
  expect(codeOf(await buy(under(id, payment)))).toEqual(KNOWN_CONFLICT);
  latch.open();
  expect(await answer).toMatchObject({ status: 200 });
  expect(codeOf(await buy(under(id, payment)))).toEqual(KNOWN_CONFLICT);
  expect(await transfersOf(network, payment)).toBe(1);
});

test('a payment identifier conflicts before the signature is checked', async () => {
  const [payment, forged] = [await newPayment(), await newPayment()];
  const signature = signAuthorization(newKey().privateKey, forged.requirement).signature;
  const broken = { ...forged, authorization: { ...forged.authorization, signature } };
  const answer = await buy(under(id, broken));
  expect([answer.status, decoded(answer, 'payment-required').error]).toEqual([402, 'invalid_exact_evm_signature']);
  expect(await buy(under(id, payment))).toMatchObject({ status: 200 });
  expect(codeOf(await buy(under(id, broken)))).toEqual(CONFLICT);
});

test('a payment identifier whose payment is being served answers the same payload as in flight, and another one as a conflict', async () => {
  const [payment, other] = [under(id, await newPayment()), under(id, await newPayment())];
  latch.close();
  const started = latch.started();
  const answer = buy(payment);
  await started;
  const inFlight = await buy(payment);
  expect(codeOf(inFlight)).toEqual([409, 'payment_in_flight', 'unknown']);
  expect(inFlight.headers['retry-after']).toBe('1');
  expect(codeOf(await buy(other))).toEqual(CONFLICT);
  latch.open();
  expect(await answer).toMatchObject({ status: 200 });
});

test('a payment identifier that 32 payments bring at once goes to exactly one of them', async () => {
  const payments = await Promise.all(Array.from({ length: 32 }, async () => under(id, await newPayment())));
  const runs = latch.runs();
  const answers = await Promise.all(payments.map((payment) => buy(payment)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  for (const answer of answers.filter(({ status }) => status !== 200)) expect(codeOf(answer)).toEqual(CONFLICT);
  expect(latch.runs()).toBe(runs + 1);
  const moved = await Promise.all(payments.map((payment) => transfersOf(network, payment)));
  expect(moved.reduce((sum, transfers) => sum + transfers, 0)).toBe(1);
});

test('a payment identifier is free again when its reservation was released', async () => {
  const penniless = await buy(under(id, await newPayment(0n)));
  expect([penniless.status, decoded(penniless, 'payment-required').error]).toEqual([
    402,
    'invalid_exact_evm_insufficient_balance',
  ]);
  expect(await buy(under(id, await newPayment()))).toMatchObject({ status: 200 });
});

test('a payment identifier is free again when its payment failed, because nothing was charged', async () => {
  const buyer = await newBuyer(network);
  const cancelled = await buyer.sign(service.origin, latch.path);
  const outsider = await newOutsider(network);
  latch.close();
  const started = latch.started();
  const answer = buy(under(id, cancelled));
  await started;
  await outsider.send(cancelCalldata(network, buyer.privateKey, cancelled.authorization));
  latch.open();
  expect(decoded(await answer, 'payment-response').errorReason).toBe('invalid_exact_evm_nonce_already_used');
  // Presented again it gets the same reason, until another payment has the identifier.
  const again = await buy(under(id, cancelled));
  expect([again.status, decoded(again, 'payment-response').success]).toEqual([402, false]);
  const next = await buyer.sign(service.origin, latch.path);
  expect(await buy(under(id, next))).toMatchObject({ status: 200 });
  expect(await transfersOf(network, next)).toBe(1);
  expect(codeOf(await buy(under(id, cancelled)))).toEqual(CONFLICT);
});

test.each(['too-short', 'with a space in it', 'x'.repeat(129), 7])(
  'a payment identifier that is malformed (%s) gets 400, and the payment stays valid',
  async (identifier) => {
    const payment = await newPayment();
    const answer = await buy(under(identifier, payment));
    expect(codeOf(answer)).toEqual([400, 'payment_identifier_malformed', false]);
    expect(JSON.parse(answer.body).errors).toMatchObject([{ path: 'extensions.payment-identifier.info.id' }]);
    expect(await service.deps.payments.ledger.countByState()).toMatchObject({ reserved: 0, settling: 0, unknown: 0 });
    expect(await buy(under(id, payment))).toMatchObject({ status: 200 });
  },
);
