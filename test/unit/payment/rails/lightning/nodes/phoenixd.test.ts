import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../../../src/lib/clock.ts';
import { decodeInvoice } from '../../../../../../src/payment/lightning/bolt11.ts';
import { type NodeServer, SECRETS, startNodeServer } from '../../../../../support/lightning/lightning-node-servers.ts';
import { articleOrder, openReceiver, type ReceiverBench } from '../../../../../support/lightning/receiver-bench.ts';

const signal = new AbortController().signal;
let node: NodeServer;
let bench: ReceiverBench;

beforeEach(async () => {
  node = await startNodeServer('phoenixd', systemClock);
  bench = openReceiver(node.config);
});
afterEach(async () => {
  await bench.close();
  await node.stop();
});

describe('a phoenixd node', () => {
  test('is asked for an invoice by a form, in whole sats, as a user without a name', async () => {
    const text = await bench.receiver.createInvoice(articleOrder(), signal);
    expect(decodeInvoice(text)).toMatchObject({ amountMsat: 25_000n, expirySeconds: 300 });
    const [request] = node.received;
    expect(request).toMatchObject({ method: 'POST', url: '/createinvoice' });
    expect(request?.headers).toMatchObject({
      authorization: `Basic ${Buffer.from(`:${SECRETS.phoenixd}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    });
    expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({
      amountSat: '25',
      descriptionHash: '0d6623f775e025501fa7f0a30b54da25aad62b6ccfe35c85da38016711e6c018',
      expirySeconds: '300',
      externalId: 'percall-label',
    });
  });

  test('is never asked for a part of a sat', async () => {
    const order = { ...articleOrder(), amountMsat: 25_001n };
    await expect(bench.receiver.createInvoice(order, signal)).rejects.toThrow(RangeError);
    expect(node.received).toEqual([]);
  });

  test('names its key', async () => {
    expect(await bench.receiver.nodeKey(signal)).toBe(node.key);
    expect(node.received[0]).toMatchObject({ method: 'GET', url: '/getinfo' });
  });

  test('has received a payment once it is paid, not before, and none that it does not know', async () => {
    await bench.receiver.createInvoice(articleOrder(), signal);
    const hash = node.invoices[0]?.paymentHash ?? Buffer.alloc(0);
    expect(await bench.receiver.isPaid(hash, signal)).toBe(false);
    expect(node.received.at(-1)).toMatchObject({ method: 'GET', url: `/payments/incoming/${hash.toString('hex')}` });
    node.pay(hash);
    expect(await bench.receiver.isPaid(hash, signal)).toBe(true);
    expect(await bench.receiver.isPaid(Buffer.alloc(32), signal)).toBe(false);
  });

  test('that refuses our password makes the error name the password that is needed', async () => {
    const other = openReceiver({ kind: 'phoenixd', url: node.url, password: 'wrong' });
    await expect(other.receiver.nodeKey(signal)).rejects.toThrow(/http-password-limited-access/);
    await other.close();
  });

  test('does not show which of its two passwords it got, so every start warns, and nothing is tried', async () => {
    expect(await bench.receiver.inspect(signal)).toEqual([expect.stringContaining('does not show')]);
    expect(node.received).toEqual([]);
  });
});
