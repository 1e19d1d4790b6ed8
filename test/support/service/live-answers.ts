import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { entriesOn, pathOn } from '../../../src/catalogue/paths.ts';
import { buyOnce } from '../usdc/buyer.ts';
import { type Answer, call } from './service.ts';

/** One answer of the running service, and the operation of the OpenAPI document that it belongs to. */
export interface LiveAnswer {
  readonly path: string;
  readonly method: 'get' | 'post';
  readonly status: number;
  readonly type: string;
  readonly body: unknown;
}

/** Asked without a payment. Those after the first have parameters that are good or bad. */
const FREE = [
  ...['/v1/network', '/v1/fees', '/v1/fees/estimate', '/v1/activity', '/v1/deploys', '/v1/rpc', '/v1/fx', '/v1/token'],
  ...[
    '/v1/selftest',
    '/v1/health',
    '/v1/paid',
    '/v1/lightning',
    '/v1/market',
    '/v1/market/search',
    '/livez',
    '/readyz',
  ],
  ...['/facilitator', '/v1/facilitator/lightning', '/facilitator/supported', '/.well-known/x402'],
  ...['/v1/fees/estimate?gas=50000', '/v1/deploys?limit=3', '/v1/fx?window=30', '/v1/market/search?q=dns'],
  ...['/v1/fees/estimate?gas=x', '/v1/deploys?limit=0', '/v1/fx?symbol=NOPE', '/v1/network?x=1', '/v1/market?limit=0'],
];
const POSTED = ['/facilitator/settle', '/facilitator/verify'];

/** Refused before a route looks at them: 405, 414 and 431. */
const UNREAD: readonly (readonly [url: string, options: Parameters<typeof call>[2]])[] = [
  ['/v1/fees', { method: 'DELETE' }],
  [`/v1/fees?${'x'.repeat(9000)}`, {}],
  ['/v1/mpp/chain/wallet', { headers: { padding: 'x'.repeat(17_000) } }],
];

/** Calls every free route, every priced one unpaid (by x402 and by MPP), and buys `paid`. Each bought payment is looked up too. */
export async function gatherAnswers(
  network: EmbeddedNetwork,
  origin: string,
  paid: readonly string[],
): Promise<LiveAnswer[]> {
  const priced = entriesOn(catalogue, 'paid');
  const unpaid = (['paid', 'mpp'] as const).flatMap((mount) => priced.map((endpoint) => pathOn(endpoint, mount)));
  const answers: LiveAnswer[] = [];
  for (const url of [...FREE, ...unpaid]) answers.push(answerOf(url, await call(origin, url)));
  for (const [url, options] of UNREAD) answers.push(answerOf(url, await call(origin, url, options)));
  for (const url of POSTED) {
    const headers = { 'content-type': 'application/json' };
    answers.push({
      ...answerOf(url, await call(origin, url, { method: 'POST', headers, body: '{}' })),
      method: 'post',
    });
  }
  for (const url of paid) {
    const answer = await buy(network, origin, url);
    if (answer.status !== 200) throw new Error(`${url} was not sold: ${answer.status} ${answer.body}`);
    answers.push(answerOf(url, answer));
    const receipt = JSON.parse(Buffer.from(String(answer.headers['payment-response']), 'base64').toString());
    const found = await call(origin, `/v1/payments/${receipt.transaction}`);
    answers.push({ ...answerOf('', found), path: '/v1/payments/{id}' });
  }
  return answers;
}

/** On a busy machine the thread that reads pages may start too slowly. The service then charges nothing, and asks the buyer to come again. */
async function buy(network: EmbeddedNetwork, origin: string, url: string): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    const { answer, paid } = await buyOnce(network, origin, url);
    const isBusy = answer.status === 503 && JSON.parse(answer.body).code === 'pages_busy' && paid === 0n;
    if (!isBusy || tries === 10) return answer;
  }
}

function answerOf(url: string, { status, headers, body }: Answer): LiveAnswer {
  const [path = ''] = url.split('?');
  const type = String(headers['content-type']).split(';')[0] ?? '';
  return { path, method: 'get', status, type, body: JSON.parse(body) };
}
