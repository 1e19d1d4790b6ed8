import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';

// Sells one route over Lightning, with percall's facilitator. docs/selling.md explains it.

const { LND_URL, LND_MACAROON, ORIGIN, SELLER_ORIGIN = 'http://127.0.0.1:4999' } = process.env;
if (!LND_URL || !LND_MACAROON || !ORIGIN) throw new Error('LND_URL, LND_MACAROON and ORIGIN must be set');

const ask = async (url: string, body?: object, headers = {}) => {
  const init = body ? { method: 'POST', body: JSON.stringify(body) } : {};
  const answer = await fetch(url, { ...init, headers: { 'content-type': 'application/json', ...headers } });
  if (answer.ok) return (await answer.json()) as Record<string, string>;
  throw Object.assign(new Error(`${url}: ${answer.status}`), { wait: answer.headers.get('retry-after') });
};
const lnd = (path: string, body?: object) => ask(LND_URL + path, body, { 'Grpc-Metadata-macaroon': LND_MACAROON });
const sha256 = (of: string | Buffer) => createHash('sha256').update(of).digest();
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64');

const network = 'lnbtc:000000000019d6689c085ae165831e93';
const { identity_pubkey: payTo } = await lnd('/v1/getinfo');
const terms = (requestHash: string, invoice: unknown) => {
  const binding = { requestHash, requestBindingProfile: 'http:1', requestBindingParams: { headers: [] } };
  const extra = { assetTransferMethod: 'bolt11', paymentFlow: 'upfront', invoice, ...binding };
  return { scheme: 'exact', network, asset: 'BTC', amount: '4000', payTo, maxTimeoutSeconds: 300, extra };
};
// Buyers compare an offer with this price.
const price = { 'x-payment-info': { intent: 'charge', method: 'lightning', amount: '4', currency: 'sat' } };
const openapi = {
  openapi: '3.1.0',
  info: { title: 'Weather', version: '1' },
  paths: { '/v1/weather': { get: price } },
};

/** What the buyer's header is read for, and nothing else. The facilitator says what is missing. */
function proofIn(header: string) {
  try {
    const { accepted, payload } = JSON.parse(Buffer.from(header, 'base64').toString());
    return { invoice: accepted.extra.invoice, preimage: payload.preimage };
  } catch {
    return {};
  }
}

/** Status, body and headers for a request. */
async function answer({ method, url: path = '', headers }: IncomingMessage): Promise<[number, object, object?]> {
  if (path === '/openapi.json') return [200, openapi];
  if (method !== 'GET' || !/^\/v1\/weather(\?|$)/.test(path)) return [404, { error: 'not found' }];

  // The request that is asked now, at the public origin. A GET has no body, so bodyHash is the hash of nothing.
  const url = SELLER_ORIGIN + path;
  const bodyHash = sha256('').toString('hex');
  const hash = sha256(JSON.stringify({ bodyHash, domain: 'x402:exact:lnbtc:bolt11:http:1', headers: [], method, url }));
  const requestHash = hash.toString('hex');

  let error = 'Payment required';
  if (headers['payment-signature']) {
    const { invoice, preimage } = proofIn(String(headers['payment-signature']));
    const transaction = sha256(Buffer.from(String(preimage), 'hex')).toString('hex');
    const receipt = { 'payment-response': encode({ success: true, transaction, network }) };
    const file = `sold/${transaction}-${requestHash}.json`;
    if (!existsSync(file)) {
      const paymentRequirements = terms(requestHash, invoice);
      const paymentPayload = { x402Version: 2, accepted: paymentRequirements, payload: { preimage } };
      const proof = { x402Version: 2, paymentPayload, paymentRequirements };
      const { success, errorReason } = await ask(`${ORIGIN}/facilitator/settle`, proof);
      error = errorReason ?? error;
      // Claimed before, without a stored answer: the buyer is owed it if the node was paid.
      const isOwed = error === 'duplicate_settlement' && (await lnd(`/v1/invoice/${transaction}`)).state === 'SETTLED';
      if ((success || isOwed) && !existsSync(file)) {
        writeFileSync(`${file}.new`, JSON.stringify({ url, celsius: 7 }), { flush: true });
        renameSync(`${file}.new`, file);
      }
    }
    if (existsSync(file)) return [200, JSON.parse(readFileSync(file, 'utf8')), receipt];
  }

  const order = { value_msat: '4000', expiry: '300', description_hash: hash.toString('base64') };
  const { payment_request: invoice } = await lnd('/v1/invoices', order);
  const resource = { url, description: 'The weather of a city', mimeType: 'application/json' };
  const required = { x402Version: 2, error, resource, accepts: [terms(requestHash, invoice)] };
  return [402, { error }, { 'payment-required': encode(required) }];
}

mkdirSync('sold', { recursive: true });
const server = createServer(async (request, response) => {
  const [status, body, headers] = await answer(request).catch((cause): [number, object, object] => {
    console.error(cause.message);
    return [503, { error: 'Send the same request again' }, { 'retry-after': cause.wait ?? '5' }];
  });
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
});
server.listen(Number(new URL(SELLER_ORIGIN).port || 8080), '127.0.0.1', () => {
  console.log(`export SELLER_ORIGIN=${SELLER_ORIGIN}`);
});
