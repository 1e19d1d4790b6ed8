import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';

// Plays a seller and its buyer, and writes the body of POST /facilitator/settle to payment.json. docs/selling.md
// explains it.

const { LND_URL, LND_MACAROON, PAYER_URL } = process.env;
if (!LND_URL || !LND_MACAROON || !PAYER_URL) throw new Error('LND_URL, LND_MACAROON and PAYER_URL must be set');
const headers = { 'Grpc-Metadata-macaroon': LND_MACAROON };
const read = async (url: string, init = {}) => (await (await fetch(url, init)).json()) as Record<string, string>;
const post = (url: string, body: object, init = {}) =>
  read(url, { method: 'POST', body: JSON.stringify(body), ...init });

// The seller binds the request that it sells: a hash over these members, in this order. Its node signs the hash into the
// invoice.
const bodyHash = createHash('sha256').digest('hex');
const request = {
  bodyHash,
  domain: 'x402:exact:lnbtc:bolt11:http:1',
  headers: [],
  method: 'GET',
  url: 'https://seller.example/v1/weather?city=Oslo',
};
const hash = createHash('sha256').update(JSON.stringify(request)).digest();
const order = { value_msat: '4000', expiry: '300', description_hash: hash.toString('base64') };
const { payment_request: invoice } = await post(`${LND_URL}/v1/invoices`, order, { headers });
const { identity_pubkey: payTo } = await read(`${LND_URL}/v1/getinfo`, { headers });
const paymentRequirements = {
  scheme: 'exact',
  network: 'lnbtc:000000000019d6689c085ae165831e93',
  asset: 'BTC',
  amount: '4000',
  payTo,
  maxTimeoutSeconds: 300,
  extra: {
    assetTransferMethod: 'bolt11',
    paymentFlow: 'upfront',
    invoice,
    requestHash: hash.toString('hex'),
    requestBindingProfile: 'http:1',
    requestBindingParams: { headers: [] },
  },
};

// The buyer pays the invoice and sends the offer back with the preimage, as PAYMENT-SIGNATURE.
const { preimage } = await post(PAYER_URL, { invoice });
const paymentPayload = { x402Version: 2, accepted: paymentRequirements, payload: { preimage } };

// The seller settles with its own terms, never with those that the buyer sent back.
writeFileSync('payment.json', JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements }), { mode: 0o600 });
