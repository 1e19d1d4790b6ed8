import { NWCClient, NWCWalletService, NWCWalletServiceKeyPair } from '@getalby/sdk/nwc';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { payerFrom } from '../../../cli/keys.ts';
import type { LightningPayer } from '../../../cli/payers/payer.ts';
import { NotPaid } from '../../../cli/payers/payer.ts';
import { type JsonAnswer, type JsonRequest, startJsonServer } from '../../../dev/lightning/lnd-rest.ts';
import { type LndRouter, startLndRouter } from '../../support/lightning/lnd-router.ts';
import { type NostrRelay, startNostrRelay } from '../../support/lightning/nostr-relay.ts';

const preimage = 'ab'.repeat(32);
const hash = 'cd'.repeat(32);
const terms = { feeLimitMsat: 7000n };

/** A server with the answers that the test sets. It records the requests. */
let answer: JsonAnswer;
const asked: JsonRequest[] = [];
let server: Awaited<ReturnType<typeof startJsonServer>>;
beforeAll(async () => {
  server = await startJsonServer(async (request) => {
    asked.push(request);
    return answer;
  });
});
afterAll(() => server.stop());
afterEach(() => asked.splice(0));

const payer = async (env: Record<string, string>): Promise<LightningPayer> => {
  const found = await payerFrom(env);
  if (!found) throw new Error('no payer');
  return found;
};
const outcomeOf = (paying: Promise<unknown>) =>
  paying.catch((error: Error) => [error instanceof NotPaid ? 'not paid' : 'open', error.message]);

describe('a URL that pays', () => {
  test('gets the invoice and returns the preimage, when it pays and when it is asked again', async () => {
    answer = { status: 200, body: { preimage } };
    const url = await payer({ PAYER_URL: `${server.url}/pay` });
    expect(await url.pay('lnbc1', terms)).toBe(preimage);
    expect(await url.find('lnbc1', hash)).toBe(preimage);
    expect(asked.map(({ line, body }) => [line, body])).toEqual(Array(2).fill(['POST /pay', { invoice: 'lnbc1' }]));
  });

  test.each([
    ['not paid', 402],
    ['open', 500],
  ])('%s: status %i', async (outcome, status) => {
    answer = { status, body: { error: 'route\u001b not found' } };
    const url = await payer({ PAYER_URL: server.url });
    expect(await outcomeOf(url.pay('lnbc1', terms))).toEqual([outcome, 'route  not found']);
  });
});

describe('an LND node', () => {
  const lnd = () => payer({ LND_PAYER_URL: `${server.url}/`, LND_PAYER_MACAROON: '0201' });
  const settled = { result: { status: 'SUCCEEDED', payment_preimage: preimage } };

  test('is asked to pay within a fee, by its router, and returns the preimage', async () => {
    answer = { status: 200, body: settled };
    expect(await (await lnd()).pay('lnbc1', terms)).toBe(preimage);
    expect(asked[0]).toMatchObject({
      line: 'POST /v2/router/send',
      headers: { 'grpc-metadata-macaroon': '0201' },
      body: { payment_request: 'lnbc1', fee_limit_msat: '7000', no_inflight_updates: true },
    });
  });

  test.each([
    [
      'not paid',
      'FAILURE_REASON_NO_ROUTE',
      200,
      { result: { status: 'FAILED', failure_reason: 'FAILURE_REASON_NO_ROUTE' } },
    ],
    ['not paid', 'permission denied', 500, { code: 2, message: 'permission denied' }],
    ['not paid', 'invoice expired', 400, { error: { code: 3, message: 'invoice expired' } }],
    ['open', 'invoice is already paid', 409, { error: { code: 6, message: 'invoice is already paid' } }],
    ['open', 'payment is in transition', 500, { error: { code: 2, message: 'payment is in transition' } }],
    ['open', 'no final answer (status 200)', 200, { result: { status: 'IN_FLIGHT' } }],
    ['open', 'context canceled', 499, { error: { code: 1, message: 'context canceled' } }],
    ['open', 'try again', 429, { code: 8, message: 'try again' }],
    ['open', 'payment is in flight', 400, { code: 9, message: 'payment is in flight' }],
    // Not from the node: a proxy before it may answer so while the payment is in flight.
    ['open', 'no final answer (status 408)', 408, { message: 'timed out' }],
    ['open', 'no final answer (status 404)', 404, {}],
    ['not paid', 'Not Found', 404, { code: 5, message: 'Not Found' }],
    ['not paid', 'unknown caller', 401, { code: 16, message: 'unknown caller' }],
    ['not paid', 'permission denied', 403, { code: 7, message: 'permission denied' }],
    ['not paid', 'router is starting', 400, { code: 9, message: 'router is starting' }],
  ])('%s: %s', async (outcome, reason, status, body) => {
    answer = { status, body };
    expect(await outcomeOf((await lnd()).pay('lnbc1', terms))).toEqual([outcome, reason]);
  });
});

describe('an LND node that is asked for a payment made before', () => {
  // Its base64 has a plus sign, a slash and padding.
  const odd = 'fbefff'.repeat(10).concat('fbef');
  const lost = (what: string) => ['open', expect.stringContaining(what)];
  let router: LndRouter;
  beforeAll(async () => {
    router = await startLndRouter(async () => Promise.reject(new Error('nothing is paid here')));
  });
  afterAll(() => router.stop());
  afterEach(() => {
    router.asked.splice(0);
    router.payments.clear();
    router.instead = null;
  });
  const find = async (paymentHash = odd) => {
    const lnd = await payer({ LND_PAYER_URL: router.url, LND_PAYER_MACAROON: router.macaroon });
    return outcomeOf(lnd.find('lnbc1', paymentHash));
  };

  test.each([hash, odd, '00'.repeat(32)])(
    'returns its preimage, for the hash %s in the node’s form',
    async (wanted) => {
      router.payments.set(wanted, [
        { status: 'IN_FLIGHT', payment_preimage: '00'.repeat(32) },
        { status: 'SUCCEEDED', payment_preimage: preimage },
      ]);
      expect(await find(wanted)).toBe(preimage);
      const spelling = Buffer.from(wanted, 'hex').toString('base64').replaceAll('+', '-').replaceAll('/', '_');
      expect(router.asked).toEqual([`GET /v2/router/track/${spelling}?no_inflight_updates=true`]);
    },
  );

  test('returns none when the payment has failed or was never started', async () => {
    expect(await find()).toBeNull();
    // The gateway may begin to answer before it knows the result.
    router.instead = { status: 200, body: '{"error":{"code":5,"message":"payment isn\'t initiated","details":[]}}' };
    expect(await find()).toBeNull();
    router.instead = null;
    router.payments.set(odd, [
      { status: 'IN_FLIGHT' },
      { status: 'FAILED', failure_reason: 'FAILURE_REASON_NO_ROUTE' },
    ]);
    expect(await find()).toBeNull();
  });

  test.each([[[{ status: 'IN_FLIGHT' }]], [[{ status: 'INITIATED' }]], [[{ status: 'UNKNOWN' }]], [[]], [[{}]]])(
    'leaves the outcome open after %j, which is not final',
    async (updates) => {
      router.payments.set(odd, updates);
      expect(await find()).toEqual(lost('no final answer'));
    },
  );

  test('leaves the outcome open when a final answer is not the last line', async () => {
    router.payments.set(odd, [{ status: 'FAILED' }, { status: 'IN_FLIGHT' }]);
    expect(await find()).toEqual(lost('no final answer'));
  });

  const error = (code: number, message: string) => ({ error: { code, message, details: [] } });
  test.each<[string, number, object | string, string]>([
    ['another hash was read', 400, { code: 3, message: 'illegal base64 data', details: [] }, 'illegal base64 data'],
    ['the route is not there', 404, { code: 5, message: 'Not Found', details: [] }, 'Not Found'],
    ['something else is not found', 404, error(5, 'unable to find the wallet'), 'unable to find the wallet'],
    ['the words come under another code', 500, error(2, "payment isn't initiated"), "payment isn't initiated"],
    ['the words come beside the stream', 404, { code: 5, message: "payment isn't initiated" }, "isn't initiated"],
    ['an end comes with a failure', 502, { result: { status: 'FAILED' } }, 'no final answer'],
    [
      'a payment comes with a failure',
      502,
      { result: { status: 'SUCCEEDED', payment_preimage: preimage } },
      'no final',
    ],
    [
      'the macaroon does not allow it',
      500,
      { code: 2, message: 'permission denied', details: [] },
      'permission denied',
    ],
    ['the node is locked', 500, error(2, 'wallet locked, unlock it'), 'wallet locked'],
    ['a proxy answers', 502, '<html>Bad Gateway</html>', 'no final answer (status 502)'],
    ['the line is cut', 200, `{"result":{"status":"SUCCEEDED","payment_preimage":"${preimage}`, 'no final answer'],
    ['nothing is said', 200, '', 'no final answer'],
  ])('leaves the outcome open when %s', async (_, status, body, reason) => {
    router.instead = { status, body: typeof body === 'string' ? body : JSON.stringify(body) };
    const outcome = await find();
    expect(outcome).toEqual(lost(reason));
    expect(JSON.stringify(outcome)).not.toContain(preimage);
  });

  test('leaves the outcome open when the node does not answer', async () => {
    const lnd = await payer({ LND_PAYER_URL: 'http://127.0.0.1:9', LND_PAYER_MACAROON: router.macaroon });
    expect(await outcomeOf(lnd.find('lnbc1', odd))).toEqual(lost(''));
  });
});

describe('a wallet over Nostr', () => {
  let relay: NostrRelay;
  let wallet: NWCWalletService;
  let connection: string;
  /** More members of an answer about a payment. */
  let found: object = {};
  let careless = false;
  let refusal: { code: string; message: string } | null = null;
  beforeEach(() => {
    careless = false;
    found = {};
    refusal = null;
  });

  beforeAll(async () => {
    relay = await startNostrRelay();
    const [walletSecret, clientSecret] = ['5a'.repeat(32), '6b'.repeat(32)];
    const key = new NWCClient({ relayUrls: [relay.url], walletPubkey: '11'.repeat(32), secret: clientSecret })
      .publicKey;
    const pair = new NWCWalletServiceKeyPair(walletSecret, key);
    wallet = new NWCWalletService({ relayUrls: [relay.url] });
    await wallet.publishWalletServiceInfoEvent(walletSecret, ['pay_invoice', 'lookup_invoice'], []);
    await wallet.subscribe(pair, {
      payInvoice: async () =>
        refusal ? { result: undefined, error: refusal } : { result: { preimage, fees_paid: 0 }, error: undefined },
      lookupInvoice: async ({ payment_hash }) => ({
        // A faulty wallet leaves the invoice out. The client cannot use such an answer.
        result: {
          invoice: careless ? '' : 'lnbc1',
          preimage: payment_hash === hash ? preimage : '',
          ...found,
        } as never,
        error: undefined,
      }),
    });
    connection = `nostr+walletconnect://${pair.walletPubkey}?relay=${encodeURIComponent(relay.url)}&secret=${clientSecret}`;
  });
  afterAll(async () => {
    wallet.close();
    await relay.stop();
  });

  test('pays, returns earlier preimages, and reports failures', async () => {
    const nwc = await payer({ NWC_PAYER: connection });
    expect(await nwc.pay('lnbc1', terms)).toBe(preimage);
    expect(await nwc.find('lnbc1', hash)).toBe(preimage);
    // Without a preimage it may be paying still, unless it says that it has failed.
    expect(await outcomeOf(nwc.find('lnbc1', 'ef'.repeat(32)))).toEqual([
      'open',
      'the wallet knows of no finished payment',
    ]);
    found = { state: 'failed' };
    expect(await nwc.find('lnbc1', 'ef'.repeat(32))).toBeNull();
    refusal = { code: 'INSUFFICIENT_BALANCE', message: 'empty' };
    expect(await outcomeOf(nwc.pay('lnbc1', terms))).toEqual(['not paid', 'INSUFFICIENT_BALANCE']);
    // NIP-47 uses the code for a time-out too, after which the payment may still arrive.
    for (const code of ['INTERNAL', 'PAYMENT_FAILED']) {
      refusal = { code, message: 'lost' };
      expect(await outcomeOf(nwc.pay('lnbc1', terms))).toEqual(['open', `the wallet says ${code}`]);
    }
    nwc.close();
  });

  test('never prints an unusable answer, which may hold a preimage', async () => {
    const nwc = await payer({ NWC_PAYER: connection });
    const printed = vi.spyOn(console, 'error');
    careless = true;
    const outcome = await outcomeOf(nwc.find('lnbc1', hash));
    expect(outcome).toEqual(['open', 'no usable answer from the wallet (Nip47ResponseValidationError)']);
    expect(JSON.stringify(printed.mock.calls)).not.toContain(preimage);
    printed.mockRestore();
    nwc.close();
  });
});

test('the environment names one complete payer, or none', async () => {
  expect(await payerFrom({})).toBeNull();
  await expect(payerFrom({ PAYER_URL: 'http://x', LND_PAYER_URL: 'http://y' })).rejects.toThrow('set one of');
  await expect(payerFrom({ LND_PAYER_URL: 'http://y' })).rejects.toThrow('LND_PAYER_MACAROON');
});
