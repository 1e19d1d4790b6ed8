import type { Transcript } from '../../support/wire/transcript.ts';
import type { Shop } from './shop.ts';

const ADDRESS = `0x${'ab'.repeat(20)}`;

/** Titles and targets: routes without parameters, with optional ones, with a required one, with a free summary. */
const TARGETS: readonly (readonly [title: string, path: string])[] = [
  ['fees/forecast, a route without parameters', '/v1/paid/fees/forecast'],
  ['fees/estimate', '/v1/paid/fees/estimate'],
  ['fees/estimate with its parameter', '/v1/paid/fees/estimate?gas=50000'],
  ['fees/estimate with a bad parameter: an unpaid request is not judged', '/v1/paid/fees/estimate?gas=-1&nonsense=1'],
  ['chain/wallet without its required parameter', '/v1/paid/chain/wallet'],
  ['chain/wallet with it', `/v1/paid/chain/wallet?address=${ADDRESS}`],
  ['chain/wallet in the network’s own spelling', `/v1/paid/arc/wallet?address=${ADDRESS}`],
  ['packages/vulns, a route with three parameters', '/v1/paid/packages/vulns?version=1.0.0'],
  ['a query that the challenge leaves out because it is too long', `/v1/paid/web/check?url=${'x'.repeat(1100)}`],
];

/** The challenges of two routes, where there are several ways to pay. */
export async function recordChallenges(t: Transcript, { origin }: Shop): Promise<void> {
  await t.ask('fees/estimate', origin, '/v1/paid/fees/estimate');
  await t.ask('fees/estimate, HEAD', origin, '/v1/paid/fees/estimate', { method: 'HEAD' });
  await t.ask('chain/wallet', origin, `/v1/paid/chain/wallet?address=${ADDRESS}`);
}

/** Answers to unpaid requests, with GET and with HEAD, and to requests that are never sold. */
export async function recordUsdcUnpaid(t: Transcript, { origin }: Shop): Promise<void> {
  for (const [title, path] of TARGETS) {
    await t.ask(title, origin, path);
    await t.ask(`${title}, HEAD`, origin, path, { method: 'HEAD' });
  }
  const path = '/v1/paid/fees/estimate';
  await t.ask('a payment of x402 version 1', origin, path, { headers: { 'x-payment': 'e30=' } });
  await t.ask('a payment with HEAD', origin, path, { method: 'HEAD', headers: { 'payment-signature': 'e30=' } });
  await t.ask('another method', origin, path, { method: 'POST', body: '{}' });
  await t.ask('a preflight', origin, path, { method: 'OPTIONS' });
  await t.ask('no such route', origin, '/v1/paid/fees/nothing');
}
