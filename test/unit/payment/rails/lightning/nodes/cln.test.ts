import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../../../src/lib/clock.ts';
import { decodeInvoice } from '../../../../../../src/payment/lightning/bolt11.ts';
import { type NodeServer, SECRETS, startNodeServer } from '../../../../../support/lightning/lightning-node-servers.ts';
import { articleOrder, openReceiver, type ReceiverBench } from '../../../../../support/lightning/receiver-bench.ts';

const signal = new AbortController().signal;
let node: NodeServer;
let bench: ReceiverBench;

beforeEach(async () => {
  node = await startNodeServer('cln', systemClock);
  bench = openReceiver(node.config);
});
afterEach(async () => {
  await bench.close();
  await node.stop();
});

describe('a Core Lightning node', () => {
  test('is asked for an invoice with the canonical request as text, of which it signs the hash alone', async () => {
    const order = articleOrder();
    const text = await bench.receiver.createInvoice(order, signal);
    expect(decodeInvoice(text)).toMatchObject({
      amountMsat: 25_000n,
      expirySeconds: 300,
      hasDescription: false,
      descriptionHashes: [new Uint8Array(order.requestHash)],
    });
    const [request] = node.received;
    expect(request).toMatchObject({ method: 'POST', url: '/v1/invoice' });
    expect(request?.headers).toMatchObject({ rune: SECRETS.cln, 'content-type': 'application/json' });
    expect(JSON.parse(request?.body ?? '')).toEqual({
      amount_msat: '25000msat',
      label: 'percall-label',
      description: order.binding,
      deschashonly: true,
      expiry: 300,
    });
  });

  test('names its key', async () => {
    expect(await bench.receiver.nodeKey(signal)).toBe(node.key);
    expect(node.received[0]).toMatchObject({ method: 'POST', url: '/v1/getinfo', body: '{}' });
  });

  test('has received a payment once it is paid, not before, and none that it does not know', async () => {
    await bench.receiver.createInvoice(articleOrder(), signal);
    const hash = node.invoices[0]?.paymentHash ?? Buffer.alloc(0);
    expect(await bench.receiver.isPaid(hash, signal)).toBe(false);
    expect(node.received.at(-1)).toMatchObject({ method: 'POST', url: '/v1/listinvoices' });
    expect(JSON.parse(node.received.at(-1)?.body ?? '')).toEqual({ payment_hash: hash.toString('hex') });
    node.pay(hash);
    expect(await bench.receiver.isPaid(hash, signal)).toBe(true);
    expect(await bench.receiver.isPaid(Buffer.alloc(32), signal)).toBe(false);
  });

  test('that refuses our credentials makes the error name what the rune needs', async () => {
    node.answers['POST /v1/getinfo'] = { status: 401, body: '{"code":1502,"message":"Not permitted"}' };
    await expect(bench.receiver.nodeKey(signal)).rejects.toThrow(/need the methods invoice, listinvoices and getinfo/);
  });
});

describe('the rune of a Core Lightning node', () => {
  const inspectWhen = (answer: (method: string) => { status?: number; body: string }) => {
    node.answers['POST /v1/checkrune'] = ({ body }) => answer(JSON.parse(body).method);
    return bench.receiver.inspect(signal);
  };
  const valid = { status: 201, body: '{"valid":true}' };
  const notPermitted = { status: 500, body: '{"code":1502,"message":"Not permitted: method is not equal to pay"}' };

  test.each(['pay', 'xpay', 'keysend', 'withdraw'])('is warned of when it allows %s', async (power) => {
    const warnings = await inspectWhen((method) => (method === power ? valid : notPermitted));
    expect(warnings).toEqual([expect.stringContaining(`the rune allows ${power};`)]);
    expect(JSON.parse(node.received[0]?.body ?? '')).toEqual({ rune: SECRETS.cln, method: 'pay' });
  });

  test.each([200, 299])('is warned of when the question is answered with %i', async (status) => {
    expect(await inspectWhen(() => ({ ...valid, status }))).toEqual([expect.stringContaining('the rune allows pay;')]);
  });

  test.each([
    ['it allows none of the spending methods', notPermitted],
    ['the node says so with a status of success', { body: '{"valid":false}' }],
    ['its code alone says so', { status: 500, body: '{"code":1503,"message":"x"}' }],
    ['its status alone says so', { status: 403, body: '{}' }],
    ['its status alone says that access was refused', { status: 401, body: '{}' }],
    ['it does not even allow the question', { status: 401, body: '{"code":1501,"message":"Not authorized"}' }],
  ])('is no cause for a word when %s', async (_what, answer) => {
    expect(await inspectWhen(() => answer)).toEqual([]);
  });

  test.each([
    ['an old node does not know the question', { status: 500, body: '{"code":-32601,"message":"Unknown command"}' }],
    ['an answer of success says nothing', { body: '<html>' }],
    ['another error is reported', { status: 300, body: '{"valid":true}' }],
    ['the node answers nonsense', { status: 500, body: '<html>' }],
  ])('is said to be unknown when %s', async (_what, answer) => {
    expect(await inspectWhen(() => answer)).toEqual([expect.stringContaining('does not show')]);
  });
});
