import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../../src/lib/clock.ts';
import { settleRequest } from '../../../../../src/payment/usdc/facilitator.ts';
import { gatewayExtra } from '../../../../../src/payment/usdc/gateway.ts';
import { createGatewayClient } from '../../../../../src/payment/usdc/gateway-client.ts';
import { createUpstreams } from '../../../../../src/upstream/client/client.ts';
import { type Answered, startStandIn } from '../../../../support/upstream/http-stand-in.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { randomAuthorization } from '../../../../support/usdc/token-node.ts';

const NETWORK = 'eip155:5042';
const signal = new AbortController().signal;
const extra = gatewayExtra(`0x${'77'.repeat(20)}`);
const request = settleRequest(randomAuthorization(), {
  network: NETWORK,
  usdc: USDC,
  extra,
  publicOrigin: 'https://a.test',
} as never);
const TRANSFER = { id: 'an id', status: 'received', fromAddress: '0xa', toAddress: '0xb', amount: '1' } as const;

const upstreams = createUpstreams({ clock: systemClock, userAgent: 'percall/test' });
afterAll(() => upstreams.close());

let answered: Answered;
let service: Awaited<ReturnType<typeof startStandIn>>;
let upstream: ReturnType<typeof upstreams.open>;
let opened = 0;
beforeEach(async () => {
  service = await startStandIn(async () => answered);
  // One of its own for each test: failures of one do not close the way of the next.
  const name = `gateway ${++opened}`;
  upstream = upstreams.open({ name, timeoutMs: 60_000, maxBytes: 65_536, concurrency: 8, retries: 0 });
});
afterEach(() => service.stop());
const client = (token: string | null = null) =>
  createGatewayClient({ upstream, url: service.url, token, network: NETWORK });

/** What a call asked the service. */
async function asked(
  call: (of: ReturnType<typeof client>) => Promise<unknown>,
  answer: object,
  token: string | null = null,
) {
  answered = { json: answer };
  await call(client(token));
  const [one] = service.asked.splice(0);
  const { authorization, 'content-type': type } = one?.headers ?? {};
  return { method: one?.method, path: one?.path, authorization, type, body: one?.body, query: [...(one?.query ?? [])] };
}

describe('a question to the Gateway', () => {
  const calls: [string, (of: ReturnType<typeof client>) => Promise<unknown>, object, object][] = [
    [
      'to settle',
      (of) => of.settle(request, 'id', signal),
      { success: true },
      { method: 'POST', path: '/v1/x402/settle' },
    ],
    [
      'to verify',
      (of) => of.verify(request, signal),
      { isValid: true },
      { method: 'POST', path: '/v1/x402/verify', body: request },
    ],
    ['for balances', (of) => of.balances([]), { balances: [] }, { method: 'POST', path: '/v1/balances' }],
    ['for a transfer', (of) => of.transfer('a/b'), TRANSFER, { method: 'GET', path: '/v1/x402/transfers/a%2Fb' }],
    [
      'for the transfers of a nonce',
      (of) => of.search('0xab', '0x01'),
      { transfers: [] },
      {
        method: 'GET',
        path: '/v1/x402/transfers',
        query: [
          ['from', '0xab'],
          ['nonce', '0x01'],
        ],
      },
    ],
    ['for what it takes', (of) => of.supported(), { kinds: [] }, { method: 'GET', path: '/v1/x402/supported' }],
  ];

  test.each(calls)(
    '%s goes to its place, with the token where there is one, and as JSON',
    async (_, call, answer, wanted) => {
      const open = await asked(call, answer);
      expect(open).toMatchObject(wanted);
      expect([open.authorization, open.type]).toEqual([
        undefined,
        open.method === 'POST' ? 'application/json' : undefined,
      ]);
      const known = await asked(call, answer, 'the token');
      expect(known).toEqual({ ...open, authorization: 'Bearer the token' });
    },
  );
});

describe('a settlement', () => {
  const settle = async (answer: Answered) => {
    answered = answer;
    return client().settle(request, 'id', signal);
  };

  test('is what the Gateway answers, on our network', async () => {
    expect(await settle({ json: { success: true, transaction: 'an id', network: NETWORK } })).toEqual({
      kind: 'accepted',
      transaction: 'an id',
    });
    expect(await settle({ json: { success: true, transaction: 'an id', network: 'eip155:1' } })).toMatchObject({
      kind: 'unclear',
      isTransport: true,
    });
  });

  test('without an answer, or one that is no JSON, is unclear, and never an exception', async () => {
    expect(await settle({ text: 'busy' })).toMatchObject({ kind: 'unclear', isTransport: true });
    await service.stop();
    expect(await settle(null)).toEqual({ kind: 'unclear', detail: 'no readable answer', isTransport: true });
  });
});

describe('a verdict on a payment', () => {
  const verify = async (answer: Answered) => {
    answered = answer;
    return client().verify(request, signal);
  };

  test('has the Gateway’s own reason, whatever the status below 500', async () => {
    expect(await verify({ json: { isValid: true } })).toBeNull();
    expect(await verify({ status: 499, json: { isValid: true } })).toBeNull();
    for (const invalidReason of ['abc', 'invalid_signature', `a${'_'.repeat(63)}`])
      expect(await verify({ status: 400, json: { isValid: false, invalidReason } })).toBe(invalidReason);
  });

  test.each(['', 'ab', 'Invalid', 'invalid signature', '1abc', `a${'_'.repeat(64)}`, null, 5])(
    'is `invalid_payload` where its reason is %j: no third party’s text reaches a buyer',
    async (invalidReason) => {
      expect(await verify({ json: { isValid: false, invalidReason } })).toBe('invalid_payload');
    },
  );

  test.each<[string, Answered]>([
    ['fails with 500', { status: 500, json: { isValid: true } }],
    ['fails with 503', { status: 503, json: { isValid: false, invalidReason: 'invalid_signature' } }],
    ['answers without a verdict', { json: { invalidReason: 'invalid_signature' } }],
    ['answers what is no JSON', { text: 'true' }],
  ])('is not known where the service %s', async (_, answer) => {
    await expect(verify(answer)).rejects.toMatchObject({ code: 'upstream_failed', charged: false });
  });
});

describe('a service that lacks an address', () => {
  beforeEach(() => {
    answered = { status: 404, json: {} };
  });

  test('knows no such transfer', async () => {
    expect(await client().transfer('an id')).toBeNull();
  });

  test('gives neither balances nor the transfers of a nonce, and its 404 does not count as “none”', async () => {
    await expect(client().balances(['0xab'])).rejects.toMatchObject({ code: 'upstream_failed' });
    await expect(client().search('0xab', '0x01')).rejects.toMatchObject({ code: 'upstream_failed' });
  });
});

test('a transfer is read also where the Gateway leaves members out, and refused in another shape', async () => {
  answered = { json: { ...TRANSFER, txHash: null, more: 1 } };
  expect(await client().transfer('an id')).toEqual({ ...TRANSFER, txHash: null });
  answered = { json: { transfers: [TRANSFER] } };
  expect(await client().search('0xa', '0x01')).toEqual([TRANSFER]);
  answered = { json: { ...TRANSFER, status: 'lost' } };
  await expect(client().transfer('an id')).rejects.toMatchObject({ code: 'upstream_failed' });
});
