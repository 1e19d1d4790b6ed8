import { NWCClient, NWCWalletService, NWCWalletServiceKeyPair } from '@getalby/sdk/nwc';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type JsonAnswer, type JsonRequest, startJsonServer } from '../../../scripts/embedded/lightning/json-server.ts';
import { NotPaid } from '../../../scripts/lib/lightning-not-paid.ts';
import { type LightningPayer, payerFrom } from '../../../scripts/lib/lightning-payer.ts';
import { type NostrRelay, startNostrRelay } from '../../support/nostr-relay.ts';

const preimage = 'ab'.repeat(32);
const hash = 'cd'.repeat(32);
const terms = { feeLimitMsat: 7000n };

/** A server that answers as told and keeps what it was asked. */
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
  test('is given the invoice and tells the preimage, when it pays and when it is asked again', async () => {
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

  test('is asked to pay within a fee, by its router, and tells the preimage', async () => {
    answer = { status: 200, body: settled };
    expect(await (await lnd()).pay('lnbc1', terms)).toBe(preimage);
    expect(asked[0]).toMatchObject({
      line: 'POST /v2/router/send',
      headers: { 'grpc-metadata-macaroon': '0201' },
      body: { payment_request: 'lnbc1', fee_limit_msat: '7000', no_inflight_updates: true },
    });
  });

  test('tells of a payment made before without paying', async () => {
    answer = { status: 200, body: settled };
    expect(await (await lnd()).find('lnbc1', hash)).toBe(preimage);
    expect(asked[0]?.line).toBe(`GET /v2/router/track/${Buffer.from(hash, 'hex').toString('base64url')}`);
    answer = { status: 404, body: { error: { code: 5, message: "payment isn't initiated" } } };
    expect(await (await lnd()).find('lnbc1', hash)).toBeNull();
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
    ['open', 'the node does not say why', 200, { result: { status: 'IN_FLIGHT' } }],
  ])('%s: %s', async (outcome, reason, status, body) => {
    answer = { status, body };
    expect(await outcomeOf((await lnd()).pay('lnbc1', terms))).toEqual([outcome, reason]);
  });
});

describe('a wallet over Nostr', () => {
  let relay: NostrRelay;
  let wallet: NWCWalletService;
  let connection: string;
  let careless = false;
  let refusal: { code: string; message: string } | null = null;

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
        // A careless wallet leaves the invoice out: the client cannot use such an answer.
        result: { invoice: careless ? '' : 'lnbc1', preimage: payment_hash === hash ? preimage : '' } as never,
        error: undefined,
      }),
    });
    connection = `nostr+walletconnect://${pair.walletPubkey}?relay=${encodeURIComponent(relay.url)}&secret=${clientSecret}`;
  });
  afterAll(async () => {
    wallet.close();
    await relay.stop();
  });

  test('pays, tells of what it has paid, and says what it has not', async () => {
    const nwc = await payer({ NWC_PAYER: connection });
    expect(await nwc.pay('lnbc1', terms)).toBe(preimage);
    expect(await nwc.find('lnbc1', hash)).toBe(preimage);
    expect(await nwc.find('lnbc1', 'ef'.repeat(32))).toBeNull();
    refusal = { code: 'INSUFFICIENT_BALANCE', message: 'empty' };
    expect(await outcomeOf(nwc.pay('lnbc1', terms))).toEqual(['not paid', 'INSUFFICIENT_BALANCE']);
    // NIP-47 says it of a time-out too, after which the payment may still arrive.
    for (const code of ['INTERNAL', 'PAYMENT_FAILED']) {
      refusal = { code, message: 'lost' };
      expect(await outcomeOf(nwc.pay('lnbc1', terms))).toEqual(['open', `the wallet says ${code}`]);
    }
    nwc.close();
  });

  test('never lets an answer that cannot be used be printed, preimage and all', async () => {
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

test('the environment names one payer, whole, or none', async () => {
  expect(await payerFrom({})).toBeNull();
  await expect(payerFrom({ PAYER_URL: 'http://x', LND_PAYER_URL: 'http://y' })).rejects.toThrow('set one of');
  await expect(payerFrom({ LND_PAYER_URL: 'http://y' })).rejects.toThrow('LND_PAYER_MACAROON');
});
