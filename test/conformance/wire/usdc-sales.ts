import { bytesToHex } from '../../../src/lib/hex.ts';
import { newBuyer, type Payment } from '../../support/usdc/buyer.ts';
import { headerOf, payloadOf } from '../../support/usdc/payments.ts';
import { decodedIn, type Sent } from '../../support/wire/exchange.ts';
import type { Transcript } from '../../support/wire/transcript.ts';
import { type Shop, sold } from './shop.ts';

const PATH = '/v1/paid/test/usdc';

/** The request that presents a payment, from the first client unless another is named. */
export const presenting = ({ header }: Pick<Payment, 'header'>, from?: string): Sent => ({
  headers: { 'payment-signature': header },
  ...(from && { from }),
});

/** The same payment under a payment identifier. */
function identified({ authorization, requirement }: Payment, id: string): { header: string } {
  const extensions = { 'payment-identifier': { info: { required: false, id } } };
  return { header: headerOf(payloadOf(authorization, requirement, extensions)) };
}

/** A sale, its redelivery, uses of the same payment elsewhere, and its lookup. */
export async function recordUsdcSales(t: Transcript, { network, origin }: Shop): Promise<void> {
  const buyer = await newBuyer(network);
  const payment = await buyer.sign(origin, PATH);
  const first = await t.ask('a sale', origin, `${PATH}?tag=a`, presenting(payment));
  await t.ask('its redelivery', origin, `${PATH}?tag=a`, presenting(payment));
  await t.ask('the same payment for another request', origin, `${PATH}?tag=b`, presenting(payment));
  await t.ask('the same payment for another route', origin, '/v1/paid/fees/estimate', presenting(payment));
  await t.ask('the same payment from another client', origin, `${PATH}?tag=a`, presenting(payment, '127.0.0.2'));
  await t.ask('the same payment for a bad parameter', origin, `${PATH}?nonsense=1`, presenting(payment));
  const { transaction } = decodedIn(first, 'payment-response');
  await t.ask('the lookup by transaction', origin, `/v1/payments/${transaction}`);
  await t.ask('the lookup by nonce', origin, `/v1/payments/${bytesToHex(payment.authorization.nonce)}`);
  await t.ask('the lookup of an unknown hash', origin, `/v1/payments/0x${'0'.repeat(64)}`);
  await t.ask('the lookup of what is no identifier', origin, '/v1/payments/nothing');

  const id = 'an-identifier-of-the-buyer';
  const [one, two] = [await buyer.sign(origin, PATH), await buyer.sign(origin, PATH)];
  await t.ask('a sale under a payment identifier', origin, `${PATH}?tag=c`, presenting(identified(one, id)));
  const elsewhere = presenting(identified(one, id), '127.0.0.2');
  await t.ask('its redelivery to another client', origin, `${PATH}?tag=c`, elsewhere);
  await t.ask('another payment under the same identifier', origin, `${PATH}?tag=c`, presenting(identified(two, id)));
  await t.ask('an identifier that is too short', origin, PATH, presenting(identified(two, 'short')));
}

/** A handler that fails, and a payment that another connection is serving. */
export async function recordUsdcFailures(t: Transcript, { network, origin }: Shop): Promise<void> {
  const buyer = await newBuyer(network);
  const failing = '/v1/paid/selftest/fail';
  await t.ask('the route that always fails', origin, failing, presenting(await buyer.sign(origin, failing)));
  const payment = await buyer.sign(origin, PATH);
  sold.usdc.fail();
  await t.ask('a handler whose source fails', origin, `${PATH}?tag=d`, presenting(payment));
  sold.usdc.recover();
  await t.ask('the same payment after the handler has recovered', origin, `${PATH}?tag=d`, presenting(payment));

  const { latch } = sold;
  const path = `${latch.path}?tag=held`;
  const [held, other] = [await buyer.sign(origin, path), await buyer.sign(origin, path)];
  latch.close();
  const started = latch.started();
  const served = t.ask('the payment once it is served', origin, path, presenting(held));
  await started;
  await t.ask('a payment that is being served on another connection', origin, path, presenting(held));
  await t.ask('one open payment more than the payer may have', origin, path, presenting(other));
  latch.open();
  await served;
}
