import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedLightning, startEmbeddedLightning } from '../../../dev/lightning/lightning.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { buyOverLightning } from '../../../scripts/lib/demo/buy-over-lightning.ts';
import { decodeInvoice } from '../../../src/payment/lightning/bolt11.ts';
import { countRunningTime } from '../../support/running-time.ts';
import { type Service, startService } from '../../support/service/service.ts';

/** Payments at once. */
const MANY = process.env.SLOW ? 30 : 8;
/** Twice as many as fit into LDK's memory if each node had a network graph of its own. */
const NETWORKS = process.env.SLOW ? 20 : 14;

countRunningTime();

let network: EmbeddedNetwork;
let lightning: EmbeddedLightning;
let service: Service;

beforeAll(async () => {
  network = await startEmbeddedNetwork({ lightning: true });
  lightning = network.lightning!;
  // The demonstration prints the price in sats.
  service = await startService(network, { env: { PRICES: 'chain/wallet=0.002' } });
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

/** One request to the LND interface, by default with its macaroon. */
async function lnd(
  method: string,
  path: string,
  body?: object,
  macaroon: string | null = lightning.macaroon,
  url = lightning.lndUrl,
) {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: macaroon === null ? {} : { 'Grpc-Metadata-macaroon': macaroon },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

async function pay(body: unknown, path = '') {
  const answer = await fetch(`${lightning.payUrl}${path}`, { method: 'POST', body: JSON.stringify(body) });
  return { status: answer.status, body: (await answer.json()) as { preimage?: string; error?: string } };
}

const order = (changes: object = {}) => ({
  value_msat: '5000',
  description_hash: randomBytes(32).toString('base64'),
  expiry: '300',
  ...changes,
});

async function issue(changes: object = {}, node = lightning): Promise<string> {
  const { body } = await lnd('POST', '/v1/invoices', order(changes), node.macaroon, node.lndUrl);
  return String(body.payment_request);
}

const hashOf = (invoice: string) => Buffer.from(decodeInvoice(invoice)!.paymentHash).toString('hex');
const stateOf = async (invoice: string) => (await lnd('GET', `/v1/invoice/${hashOf(invoice)}`)).body;

describe('the seller’s node behaves like LND', () => {
  test('states its identity, and makes invoices with the ordered contents', async () => {
    expect((await lnd('GET', '/v1/getinfo')).body).toMatchObject({ identity_pubkey: lightning.nodeId });
    const { body } = await lnd('POST', '/v1/invoices', order());
    const invoice = decodeInvoice(body.payment_request)!;
    expect(invoice).toMatchObject({ currency: 'bc', amountMsat: 5000n, expirySeconds: 300 });
    expect(Buffer.from(String(body.r_hash), 'base64').equals(invoice.paymentHash)).toBe(true);
  });

  test.each([
    ['without', null],
    ['with another', 'ab'.repeat(32)],
  ])('accepts no request %s macaroon', async (_name, macaroon) => {
    for (const [method, path] of [
      ['GET', '/v1/getinfo'],
      ['POST', '/v1/invoices'],
      ['GET', `/v1/invoice/${'00'.repeat(32)}`],
    ] as const) {
      const answer = await lnd(method, path, method === 'POST' ? order() : undefined, macaroon);
      expect(answer.status).toBe(500);
      expect(answer.body).not.toHaveProperty('payment_request');
    }
  });

  test.each([
    ['no amount', { value_msat: '0' }],
    ['an amount that is none', { value_msat: '1e3' }],
    ['no description hash', { description_hash: '' }],
    ['a short description hash', { description_hash: 'AAAA' }],
    ['no time', { expiry: '0' }],
  ])('makes no invoice for %s', async (_name, changes) => {
    expect((await lnd('POST', '/v1/invoices', order(changes))).status).toBe(400);
  });

  test('reports that its macaroon cannot spend', async () => {
    const check = async (entity: string, action: string) =>
      (await lnd('POST', '/v1/macaroon/checkpermissions', { permissions: [{ entity, action }] })).body;
    expect(await check('invoices', 'write')).toEqual({ valid: true });
    expect(await check('offchain', 'write')).toEqual({ valid: false });
    expect(await check('onchain', 'write')).toEqual({ valid: false });
    expect((await lnd('POST', '/v1/macaroon/checkpermissions')).body).toEqual({ valid: false });
  });

  test('knows which of its invoices are paid, and no invoices of other nodes', async () => {
    const invoice = await issue();
    const open = await stateOf(invoice);
    expect(open).toMatchObject({ state: 'OPEN', amt_paid_msat: '0' });
    expect(open).not.toHaveProperty('r_preimage');
    const r_preimage = Buffer.from(await lightning.pay(invoice), 'hex').toString('base64');
    expect(await stateOf(invoice)).toMatchObject({ state: 'SETTLED', amt_paid_msat: '5000', r_preimage });
    expect((await lnd('GET', `/v1/invoice/${'00'.repeat(32)}`)).status).toBe(404);
    expect((await lnd('GET', '/v1/channels')).status).toBe(404);
  });
});

describe('the buyer’s node', () => {
  test('pays an invoice once: a second or simultaneous request returns the same preimage', async () => {
    const invoice = await issue({ value_msat: '1' });
    const answers = await Promise.all([pay({ invoice }), pay({ invoice })]);
    answers.push(await pay({ invoice }));
    for (const { status, body } of answers) {
      expect(status).toBe(200);
      expect(createHash('sha256').update(String(body.preimage), 'hex').digest('hex')).toBe(hashOf(invoice));
    }
    expect((await stateOf(invoice)).amt_paid_msat).toBe('1');
  });

  test('pays many invoices at once, each with its own preimage', async () => {
    const invoices = await Promise.all(Array.from({ length: MANY }, (_, i) => issue({ value_msat: `${1000 + i}` })));
    const preimages = await Promise.all(invoices.map((invoice) => lightning.pay(invoice)));
    const hashes = preimages.map((preimage) => createHash('sha256').update(preimage, 'hex').digest('hex'));
    expect(hashes).toEqual(invoices.map(hashOf));
  });

  test('refuses an invoice that cannot be paid, and says why', async () => {
    expect(await pay({ invoice: 'lnbc1' })).toEqual({ status: 402, body: { error: 'not a BOLT11 invoice' } });
    // More than the channel holds.
    const large = await issue({ value_msat: '2000000000000' });
    expect(await pay({ invoice: large })).toMatchObject({
      status: 402,
      body: { error: expect.stringContaining('route not found') },
    });
    expect(await stateOf(large)).toMatchObject({ state: 'OPEN' });
    expect((await pay({})).status).toBe(400);
    expect((await pay([])).status).toBe(400);
    expect((await pay({}, '/elsewhere')).status).toBe(404);
  });
});

test('the service sells through the embedded Lightning network: the demonstration’s purchase succeeds, and shows no preimage', async () => {
  const lines: string[] = [];
  const wallet = (address: string) => `/v1/lightning/chain/wallet?address=${address}`;
  await buyOverLightning({
    lightning,
    origin: service.origin,
    calls: { paid: wallet(network.buyer.address), other: wallet(network.seller) },
    say: (line) => lines.push(line),
    stopping: new AbortController().signal,
  });
  const output = lines.join('\n');
  expect(output).toContain('4 sat through the channel');
  expect(output).toContain('duplicate_settlement');
  const [invoice] = /lnbc[0-9a-z]{100,}/.exec(output) ?? [];
  expect(output).not.toContain(await lightning.pay(String(invoice)));
});

test('one process has room for many embedded Lightning networks, of which each takes payments', async () => {
  for (let started = 0; started < NETWORKS; started++) {
    const node = await startEmbeddedLightning({ network: started % 2 ? 'testnet' : 'mainnet' });
    const invoice = await issue({}, node);
    const preimage = Buffer.from(await node.pay(invoice), 'hex');
    expect(createHash('sha256').update(preimage).digest('hex')).toBe(hashOf(invoice));
    await node.stop();
  }
});

test('the embedded bitcoin price can be set', async () => {
  const shown = async () => {
    const answer = await fetch(`${lightning.exchanges.urls.coinbase}/products/BTC-USD/ticker`);
    return ((await answer.json()) as { price: string }).price;
  };
  const before = await shown();
  expect(before).not.toBe('32000');
  lightning.exchanges.set('32000');
  try {
    expect(await shown()).toBe('32000');
  } finally {
    lightning.exchanges.set(before);
  }
});

test('the embedded network has no Lightning unless it is asked for', async () => {
  const plain = await startEmbeddedNetwork();
  expect(plain.lightning).toBeNull();
  await plain.stop();
});

test('the embedded Lightning network moves its time on demand, pays no expired invoice, and answers nothing after its stop', async () => {
  const own = await startEmbeddedLightning({ network: 'testnet' });
  const face = { headers: { 'Grpc-Metadata-macaroon': own.macaroon }, method: 'POST', body: JSON.stringify(order()) };
  const make = async () => {
    const answer = await fetch(`${own.lndUrl}/v1/invoices`, face);
    return String(((await answer.json()) as { payment_request: string }).payment_request);
  };
  const early = await make();
  const { createdAt } = decodeInvoice(early)!;
  own.setTime(createdAt + 301);
  await expect(own.pay(early)).rejects.toThrow('expired');
  const late = await make();
  expect(decodeInvoice(late)).toMatchObject({ currency: 'tb', createdAt: createdAt + 301 });
  own.setTime(createdAt);
  expect(decodeInvoice(await make())!.createdAt).toBe(createdAt + 301);
  await own.pay(late);
  await Promise.all([own.stop(), own.stop()]);
  for (const url of [own.lndUrl, own.payUrl, own.exchanges.urls.kraken])
    await expect(fetch(url)).rejects.toThrow('fetch failed');
});
