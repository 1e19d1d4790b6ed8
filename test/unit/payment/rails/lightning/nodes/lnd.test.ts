import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../../../src/lib/clock.ts';
import { decodeInvoice } from '../../../../../../src/payment/lightning/bolt11.ts';
import { type NodeServer, SECRETS, startNodeServer } from '../../../../../support/lightning/lightning-node-servers.ts';
import { macaroonOf } from '../../../../../support/lightning/macaroon.ts';
import { articleOrder, openReceiver, type ReceiverBench } from '../../../../../support/lightning/receiver-bench.ts';

const signal = new AbortController().signal;
let node: NodeServer;
let bench: ReceiverBench;

beforeEach(async () => {
  node = await startNodeServer('lnd', systemClock);
  bench = openReceiver(node.config);
});
afterEach(async () => {
  await bench.close();
  await node.stop();
});

/** A receiver with another macaroon; it never reaches the node unless asked to. */
const inspectWith = async (macaroon: string) => {
  const other = openReceiver({ kind: 'lnd', url: node.url, macaroon, tlsCertFile: null });
  return other.receiver.inspect(signal).finally(other.close);
};

describe('an LND node', () => {
  test('is asked for an invoice in the documented shape, whose text is passed on', async () => {
    const text = await bench.receiver.createInvoice(articleOrder(), signal);
    expect(text).toBe(node.invoices[0]?.text);
    expect(decodeInvoice(text)).toMatchObject({ amountMsat: 25_000n, expirySeconds: 300 });
    const [request] = node.received;
    expect(request).toMatchObject({ method: 'POST', url: '/v1/invoices' });
    expect(request?.headers).toMatchObject({
      'grpc-metadata-macaroon': SECRETS.lnd,
      'content-type': 'application/json',
    });
    expect(JSON.parse(request?.body ?? '')).toEqual({
      value_msat: '25000',
      description_hash: 'DWYj93XgJVAfp/CjC1TaJarWK2zP41yF2jgBZxHmwBg=',
      expiry: '300',
    });
  });

  test('names its key, and a key in another form is refused', async () => {
    expect(await bench.receiver.nodeKey(signal)).toBe(node.key);
    expect(node.received[0]).toMatchObject({ method: 'GET', url: '/v1/getinfo' });
    node.key = node.key.toUpperCase();
    await expect(bench.receiver.nodeKey(signal)).rejects.toMatchObject({ status: 502, code: 'upstream_failed' });
  });

  test('has received a payment once it is settled, not before, and none that it does not know', async () => {
    await bench.receiver.createInvoice(articleOrder(), signal);
    const hash = node.invoices[0]?.paymentHash ?? Buffer.alloc(0);
    expect(await bench.receiver.isPaid(hash, signal)).toBe(false);
    expect(node.received.at(-1)).toMatchObject({ method: 'GET', url: `/v1/invoice/${hash.toString('hex')}` });
    node.pay(hash);
    expect(await bench.receiver.isPaid(hash, signal)).toBe(true);
    expect(await bench.receiver.isPaid(Buffer.alloc(32), signal)).toBe(false);
  });

  test.each([500, 403, 401])('that denies us with %i says what the macaroon needs', async (status) => {
    node.answers['GET /v1/getinfo'] = { status, body: '{"code":2,"message":"permission denied"}' };
    await expect(bench.receiver.nodeKey(signal)).rejects.toThrow(/need info:read, invoices:read and invoices:write/);
    node.answers['GET /v1/getinfo'] = { status: 500, body: '{"code":2,"message":"wallet locked"}' };
    await expect(bench.receiver.nodeKey(signal)).rejects.toThrow('lnd: answered HTTP 500');
  });
});

test('a node that says "permission denied" where nothing failed has not denied us, and any 2xx is an answer', async () => {
  const body = JSON.stringify({ identity_pubkey: node.key, alias: 'Permission denied' });
  for (const status of [200, 299]) {
    node.answers['GET /v1/getinfo'] = { status, headers: { 'content-type': 'application/json' }, body };
    expect(await bench.receiver.nodeKey(signal)).toBe(node.key);
  }
  for (const status of [404, 399]) {
    node.answers['GET /v1/getinfo'] = { status, headers: { 'content-type': 'application/json' }, body: '{}' };
    await expect(bench.receiver.nodeKey(signal)).rejects.toThrow(`lnd: answered HTTP ${status}`);
  }
  node.answers['GET /v1/getinfo'] = { status: 400, body: 'Permission denied' };
  await expect(bench.receiver.nodeKey(signal)).rejects.toThrow(/credentials are not accepted/);
});

test.each([401, 403])('a node that denies us with %i needs no words for it', async (status) => {
  node.answers['GET /v1/getinfo'] = { status, body: '{}' };
  await expect(bench.receiver.nodeKey(signal)).rejects.toThrow(/credentials are not accepted/);
});

test('a web page is not accepted as an answer of a node', async () => {
  const body = JSON.stringify({ identity_pubkey: node.key });
  node.answers['GET /v1/getinfo'] = { status: 200, headers: { 'content-type': 'text/html' }, body };
  await expect(bench.receiver.nodeKey(signal)).rejects.toThrow('lnd: answered text/html instead of JSON');
});

describe('the macaroon of an LND node', () => {
  test.each([
    [
      'only receives',
      [
        ['info', 'read'],
        ['invoices', 'read', 'write'],
        ['address', 'read', 'write'],
        ['onchain', 'read'],
      ],
    ],
    ['only makes named calls that receive', [['uri', '/lnrpc.Lightning/AddInvoice', '/lnrpc.Lightning/GetInfo']]],
    [
      'only makes calls that receive or look',
      [
        [
          'uri',
          ...['LookupInvoice', 'ListInvoices', 'SubscribeInvoices', 'DecodePayReq', 'CheckMacaroonPermissions'].map(
            (name) => `/lnrpc.Lightning/${name}`,
          ),
        ],
        ['uri', '/invoicesrpc.Invoices/AddHoldInvoice', '/invoicesrpc.Invoices/LookupInvoiceV2'],
      ],
    ],
  ])('is no cause for a word when it %s, and the node is not asked', async (_what, operations) => {
    expect(await inspectWith(macaroonOf(operations))).toEqual([]);
    expect(node.received).toEqual([]);
  });

  test.each([
    [
      'offchain:write',
      [
        ['info', 'read'],
        ['offchain', 'read', 'write'],
      ],
    ],
    ['onchain:write', [['onchain', 'write']]],
    ['macaroon:write', [['macaroon', 'write']]],
    [
      'offchain:write, onchain:write',
      [
        ['offchain', 'write'],
        ['onchain', 'write'],
      ],
    ],
    ['macaroon:generate', [['macaroon', 'generate']]],
    ['signer:generate', [['signer', 'generate']]],
    ...[
      '/routerrpc.Router/SendPaymentV2',
      '/lnrpc.Lightning/SendPaymentSync',
      '/lnrpc.Lightning/AddInvoiceAndPay',
      '/lnrpc.Lightning/GetInfo/x',
      'x/lnrpc.Lightning/GetInfo',
      '/invoicesrpc.Invoices/',
      '/invoicesrpc.Invoices/SettleInvoice/x',
    ].map((call): [string, string[][]] => [`uri:${call}`, [['uri', call]]]),
  ])('is warned of when it allows %s', async (power, operations) => {
    expect(await inspectWith(macaroonOf(operations))).toEqual([expect.stringContaining(`(${power})`)]);
  });

  test.each([
    ['may spend', { body: '{"valid":true}' }, /allows more than receiving/],
    ['may not spend', { status: 400, body: '{"code":3,"message":"permission denied"}' }, null],
    ['may not spend, in other words', { body: '{"valid":false}' }, null],
    ['may not even ask', { status: 500, body: '{"code":2,"message":"permission denied"}' }, /does not show/],
    ['makes it answer nonsense', { body: '<html>' }, /does not show/],
  ])('that cannot be read is asked of the node: it %s', async (_what, answer, warning) => {
    node.answers['POST /v1/macaroon/checkpermissions'] = answer;
    const warnings = await bench.receiver.inspect(signal);
    expect(warnings).toEqual(warning === null ? [] : [expect.stringMatching(warning)]);
    expect(JSON.parse(node.received[0]?.body ?? '')).toEqual({
      macaroon: Buffer.from(SECRETS.lnd, 'hex').toString('base64'),
      permissions: [{ entity: 'offchain', action: 'write' }],
    });
  });

  const inspectWhen = (answer: (entity: string) => { status?: number; body: string }) => {
    node.answers['POST /v1/macaroon/checkpermissions'] = ({ body }) => answer(JSON.parse(body).permissions[0].entity);
    return bench.receiver.inspect(signal);
  };
  const [yes, no] = [{ body: '{"valid":true}' }, { body: '{"valid":false}' }];

  test('is asked about off-chain and on-chain writing, each by itself, as JSON and with the macaroon', async () => {
    expect(await inspectWhen((entity) => (entity === 'onchain' ? yes : no))).toEqual([
      expect.stringContaining('(writing off-chain or on-chain)'),
    ]);
    const permissions = node.received.map(({ body }) => JSON.parse(body).permissions);
    expect(permissions).toEqual(['offchain', 'onchain'].map((entity) => [{ entity, action: 'write' }]));
    expect(node.received[0]?.headers).toMatchObject({
      'grpc-metadata-macaroon': SECRETS.lnd,
      'content-type': 'application/json',
    });
    expect(await inspectWhen((entity) => (entity === 'offchain' ? yes : no))).toHaveLength(1);
  });

  test('is reported as unclear where one of the two answers says nothing, or has another status than 200', async () => {
    for (const silent of ['offchain', 'onchain']) {
      for (const nothing of [{ status: 201, body: '{"valid":true}' }, { body: '{"valid":"true"}' }])
        expect(await inspectWhen((entity) => (entity === silent ? nothing : no))).toEqual([
          expect.stringContaining('does not show'),
        ]);
    }
  });
});
