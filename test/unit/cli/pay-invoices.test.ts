import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Credential } from 'mppx';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openBuyer, settingsFrom } from '../../../cli/buyer.ts';
import { type LoopbackServer, startJsonServer } from '../../../dev/lightning/lnd-rest.ts';
import { invoiceOf } from '../../../scripts/lib/lightning/encode-invoice.ts';
import { SCHEME_KEY } from '../../support/lightning/invoice.ts';
import { payHere } from '../../support/service/pay-here.ts';
import { type StandIn, startSellerStandIn } from '../../support/service/seller-stand-in.ts';

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest();
const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

let seller: StandIn;
let discovery: StandIn;
let payer: LoopbackServer;
let folder: string;
let preimage: Buffer;
/** The invoices that the buyer's wallet has paid. */
let paid: string[];

beforeAll(async () => {
  seller = await startSellerStandIn();
  discovery = await startSellerStandIn();
  payer = await startJsonServer(async ({ body }) => {
    paid.push(String(body.invoice));
    return { status: 200, body: { preimage: preimage.toString('hex') } };
  });
});
afterAll(async () => {
  await Promise.all([seller?.stop(), discovery?.stop(), payer?.stop()]);
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-invoices-'));
  preimage = randomBytes(32);
  paid = [];
  seller.reset();
  discovery.reset();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const invoice = (parts: Partial<Parameters<typeof invoiceOf>[0]> = {}) =>
  invoiceOf({
    privateKey: SCHEME_KEY,
    amountMsat: 10_000n,
    createdAt: Math.floor(Date.now() / 1000),
    paymentHash: sha256(preimage),
    description: 'one call',
    ...parts,
  });
const l402 = (text = invoice()) => `L402 macaroon="b3BhcXVl", invoice="${text}"`;

function mpp(request: object = {}, details: object = {}): string {
  const methodDetails = { invoice: invoice(), network: 'mainnet', ...details };
  const encoded = base64url({ amount: '10', currency: 'sat', methodDetails, ...request });
  return `Payment id="a", realm="r", method="lightning", intent="charge", request="${encoded}"`;
}

/** The payments that wait for their answers. */
function open() {
  const buyer = openBuyer({ ...settingsFrom({}), dataDir: join(folder, '.percall') });
  try {
    return buyer.open();
  } finally {
    buyer.close();
  }
}

async function pay(flags: string[] = [], env: Record<string, string> = {}, path = '/thing') {
  const output = await payHere([`${seller.origin}${path}`, ...flags], {
    env: { PAYER_URL: payer.url, ...env },
    folder,
  });
  expect(output.stdout + output.stderr).not.toContain(preimage.toString('hex'));
  return output;
}

describe('npm run pay buys from a seller', () => {
  test('that speaks L402 alone, with the token and the preimage', async () => {
    seller.ask = () => ({ 'www-authenticate': l402() });
    const { code, stdout, stderr } = await pay();
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: '{"answer":42}' });
    expect(stderr).toMatch(/asked: +10 sat on mainnet to [0-9a-f]{66}, over L402/);
    const [presented] = seller.presented;
    expect(presented?.authorization).toBe(`L402 b3BhcXVl:${preimage.toString('hex')}`);
    expect([paid.length, open()]).toEqual([1, []]);
  });

  test('that speaks MPP alone, with its challenge unchanged', async () => {
    const challenge = mpp();
    seller.ask = () => ({ 'www-authenticate': challenge });
    const reference = sha256(preimage).toString('hex');
    const receipt = { method: 'lightning', reference, status: 'success', timestamp: new Date().toISOString() };
    seller.answer = () => ({ status: 200, headers: { 'payment-receipt': base64url(receipt) }, body: '{"answer":42}' });
    const { code, stdout, stderr } = await pay();
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: '{"answer":42}' });
    expect(stderr).not.toContain('without a receipt');
    const credential = Credential.deserialize(String(seller.presented[0]?.authorization));
    expect(credential).toMatchObject({
      payload: { preimage: preimage.toString('hex') },
      challenge: { id: 'a', realm: 'r' },
    });
    expect(credential.challenge).not.toHaveProperty('description');
  });

  test('that speaks both by MPP, because MPP states what the invoice must be', async () => {
    seller.ask = () => ({ 'www-authenticate': [l402(), mpp()] });
    expect((await pay(['--dry-run'])).stderr).toContain('over MPP');
    expect((await pay(['--dry-run', '--protocol', 'l402'])).stderr).toContain('over L402');
  });

  test('by L402 where its Payment challenge cannot be read', async () => {
    seller.ask = () => ({ 'www-authenticate': ['Payment id="", realm="r"', l402()] });
    expect((await pay()).code).toBe(0);
    expect(paid).toHaveLength(1);
  });
});

describe('npm run pay pays nothing', () => {
  test.each<[string, () => string | string[], string[], string]>([
    [
      'when the invoice is over more than the amount',
      () => mpp({ amount: '1' }),
      [],
      'the invoice is over 10 sat, but the offer says 1 sat; nothing was paid',
    ],
    [
      'when the invoice is over more than the amount, although L402 asks for the same',
      () => [l402(), mpp({ amount: '1' })],
      [],
      'the invoice is over 10 sat',
    ],
    [
      'when the invoice is on another network',
      () => mpp({}, { network: 'signet' }),
      [],
      'the invoice is on mainnet, but the offer says signet',
    ],
    ['when the invoice has expired', () => l402(invoice({ createdAt: 1_700_000_000 })), [], 'expired'],
    [
      'when the invoice has no amount',
      () => l402(invoice({ amountMsat: null })),
      [],
      'cannot be read, or has no amount',
    ],
    ['above the ceiling', () => l402(), ['--max-sats', '9'], '10 sat is above the ceiling of 9 sat (--max-sats)'],
    [
      'above the ceiling in the interface’s spelling',
      () => l402(),
      ['maxSats=9'],
      '10 sat is above the ceiling of 9 sat',
    ],
    ['where nothing can be read', () => 'Payment id="", realm="r"', [], 'a Payment challenge has no id'],
    [
      'where only another scheme is asked for',
      () => 'Bearer realm="r"',
      [],
      'nothing on offer is paid in a way that is known here',
    ],
    ['in USDC where only sats are taken', () => l402(), ['--rail', 'usdc'], 'nothing on offer is paid in USDC'],
  ])('%s', async (_how, header, flags, reason) => {
    seller.ask = () => ({ 'www-authenticate': header() });
    const { code, stdout, stderr } = await pay(flags);
    expect({ code, stdout, paid, presented: seller.presented }, stderr).toEqual({
      code: 3,
      stdout: '',
      paid: [],
      presented: [],
    });
    expect(stderr).toContain(reason);
    expect(open()).toEqual([]);
  });

  test.each([401, 403, 200])('for an invoice on an answer %s', async (status) => {
    seller.ask = () => ({ 'www-authenticate': l402() });
    seller.status = status;
    await pay();
    expect({ paid, presented: seller.presented }).toEqual({ paid: [], presented: [] });
  });
});

describe('npm run pay pays once for one call', () => {
  test.each([
    ['L402', () => l402()],
    ['MPP', () => mpp()],
  ])('over %s, also when the seller asks again after the payment and the command runs again', async (_name, header) => {
    const asked = header();
    seller.ask = () => ({ 'www-authenticate': asked });
    seller.answer = () => ({
      status: 402,
      headers: { 'www-authenticate': header() },
      body: '{"detail":"not that one"}',
    });
    const failed = await pay();
    expect({ code: failed.code, paid: paid.length }).toEqual({ code: 4, paid: 1 });
    expect(failed.stderr).toContain('it is paid');
    expect(open()).toMatchObject([{ state: 'signed', reference: sha256(preimage).toString('hex') }]);

    const again = await pay();
    expect([again.code, again.stderr, paid.length]).toEqual([4, expect.stringContaining('it is paid'), 1]);
    expect(seller.presented[1]).toMatchObject({ authorization: seller.presented[0]?.authorization });
    const sameInvoice = await pay([], {}, '/another');
    expect([sameInvoice.code, paid.length]).toEqual([3, 1]);
    expect(sameInvoice.stderr).toContain('an earlier payment of this invoice waits for its answer');

    seller.answer = () => ({ status: 200, headers: {}, body: '{"answer":42}' });
    // No payer is needed: nothing is paid.
    const redeemed = await payHere([`${seller.origin}/thing`], { env: {}, folder });
    expect(redeemed).toMatchObject({ code: 0, stdout: '{"answer":42}' });
    expect([paid.length, open()]).toEqual([1, []]);
  });
});

describe('npm run pay compares sats with a listed price', () => {
  const listed = (info: object) => {
    seller.documents = () => ({ paths: { '/thing': { get: { 'x-payment-info': info } } } });
  };
  const inUsd = (amount: string) => listed({ price: { mode: 'fixed', currency: 'USD', amount } });
  const atRate = (btcUsd: string | null) => {
    discovery.documents = (target) => (target === '/v1/lightning' ? { btcUsd } : { results: [] });
  };
  const flags = () => ['--discovery', discovery.origin];
  beforeEach(() => {
    seller.ask = () => ({ 'www-authenticate': l402() });
  });

  test('in sats as the seller lists it', async () => {
    listed({ offers: [{ intent: 'charge', method: 'lightning', amount: '9', currency: 'sat' }] });
    const { code, stderr } = await pay();
    expect({ code, paid }, stderr).toEqual({ code: 3, paid: [] });
    expect(stderr).toContain("10 sat is above 9 sat, the most by the seller's own listed price; nothing was paid");
  });

  test('in dollars at the rate of the discovery service, with room for two exchanges that disagree', async () => {
    atRate('100000');
    // 10 sat are 0.01 USD. 5 % more than 0.0095 USD are 9.975 sat, which no invoice in whole sats can be.
    inUsd('0.0095');
    expect((await pay(flags())).code).toBe(0);
    inUsd('0.008');
    const { code, stderr } = await pay(flags());
    expect([code, paid.length]).toEqual([3, 1]);
    expect(stderr).toContain("10 sat is above 9 sat, the most by the seller's own listed price");
  });

  test('in dollars as the search lists the route', async () => {
    discovery.documents = (target) =>
      target === '/v1/lightning'
        ? { btcUsd: '100000' }
        : { results: [{ url: `${seller.origin}/thing`, method: 'GET', priceUsd: '0.001' }] };
    const { code, stderr } = await pay(flags());
    expect({ code, paid }, stderr).toEqual({ code: 3, paid: [] });
    expect(stderr).toMatch(/10 sat is above \d+ sat, the most by the price in the search of/);
  });

  test('and says so when it cannot, and applies the ceiling alone', async () => {
    inUsd('0.008');
    const bare = await pay(['--dry-run']);
    expect([bare.code, bare.stderr]).toEqual([0, expect.stringContaining('0.008 USD, without a rate to compare with')]);
    atRate(null);
    const rateless = await pay([...flags(), '--dry-run']);
    expect([rateless.code, rateless.stderr]).toEqual([0, expect.stringContaining('without a rate to compare with')]);
    seller.documents = () => null;
    expect((await pay(['--dry-run'])).stderr).toContain('no price could be read from the listing');
  });
});
