import { newMppBuyer, nonceHex, receiptIn } from '../../support/usdc/mpp-buyer.ts';
import type { Sent } from '../../support/wire/exchange.ts';
import { headerIn } from '../../support/wire/exchange.ts';
import type { Transcript } from '../../support/wire/transcript.ts';
import { type Shop, sold } from './shop.ts';

const PATH = '/v1/mpp/test/usdc';

const presenting = (header: string, from?: string): Sent => ({
  headers: { authorization: header },
  ...(from && { from }),
});

/** The 402 of a route, a sale by MPP with its redelivery and lookup, and refusals. */
export async function recordMpp(t: Transcript, { network, origin }: Shop): Promise<void> {
  await t.ask('an unpaid request', origin, PATH);
  await t.ask('an unpaid HEAD', origin, PATH, { method: 'HEAD' });
  await t.ask('an unpaid request of a route with a parameter', origin, '/v1/mpp/chain/wallet');
  await t.ask('an x402 payment', origin, PATH, { headers: { 'payment-signature': 'e30=' } });

  const buyer = await newMppBuyer(network);
  const path = `${PATH}?tag=a`;
  const payment = await buyer.sign(origin, path);
  const first = await t.ask('a sale', origin, path, presenting(payment.header));
  await t.ask('its redelivery to another client', origin, path, presenting(payment.header, '127.0.0.2'));
  await t.ask('the same credential for another request', origin, `${PATH}?tag=b`, presenting(payment.header));
  await t.ask('the same credential for a bad parameter', origin, `${PATH}?nonsense=1`, presenting(payment.header));
  const { reference } = receiptIn({ headers: { 'payment-receipt': headerIn(first, 'payment-receipt') } });
  await t.ask('the lookup by transaction', origin, `/v1/payments/${reference}`);
  await t.ask('the lookup by nonce', origin, `/v1/payments/${nonceHex(payment)}`);

  await t.ask('a credential that cannot be read', origin, PATH, presenting('Payment !'));
  const cheap = await buyer.sign(origin, path, { value: 1n });
  await t.ask('a credential over too little', origin, path, presenting(cheap.header));
  const two = { headers: { authorization: payment.header, 'payment-signature': 'e30=' } };
  await t.ask('two payments on one request', origin, path, two);
  sold.usdc.fail();
  await t.ask('a handler whose source fails', origin, path, presenting((await buyer.sign(origin, path)).header));
  sold.usdc.recover();
}
