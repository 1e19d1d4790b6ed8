import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { InvoiceTerms } from '../../../../scripts/lib/encode-invoice.ts';
import { createIssuer, type Issuer } from '../../../../src/payment/lightning/issuer.ts';
import { MAINNET, TESTNET } from '../../../../src/payment/lightning/networks.ts';
import { type Receiver, TooMuchPower } from '../../../../src/payment/lightning/receiver.ts';
import { type NodeServer, nodeKeys, startNodeServer } from '../../../support/lightning-node-servers.ts';
import { createManualClock, type ManualClock } from '../../../support/manual-clock.ts';
import { articleBinding, openReceiver, type ReceiverBench } from '../../../support/receiver-bench.ts';

const NOW = 1_700_000_000;
const signal = new AbortController().signal;
let clock: ManualClock;
let node: NodeServer;
let bench: ReceiverBench;
let issuer: Issuer;

/** The issuer over the stand-in; `power` is what a look at the connection finds. */
function issuerOf({
  expectedKey = null,
  network = MAINNET,
  power = null,
  timeoutMs = 1000,
}: {
  expectedKey?: string | null;
  network?: typeof MAINNET;
  power?: (() => void) | null;
  timeoutMs?: number;
} = {}) {
  const inspect: Receiver['inspect'] = async () => {
    power?.();
    return [];
  };
  const receiver: Receiver = { ...bench.receiver, inspect };
  return createIssuer({ receiver, network, expectedKey, expirySeconds: 300, timeoutMs, clock, log: bench.log });
}

beforeEach(async () => {
  clock = createManualClock(NOW * 1000);
  node = await startNodeServer('phoenixd', clock);
  bench = openReceiver(node.config, { clock });
  issuer = issuerOf();
});
afterEach(async () => {
  await issuer.stop();
  await bench.close();
  await node.stop();
});

const order = { amountMsat: 25_000n, binding: articleBinding() };
const issue = () => issuer.issue(order, signal);
const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => 'none',
    (error: { status?: number; code?: string; retryAfterSeconds?: number; message: string }) =>
      error.status === undefined ? error.message : `${error.status} ${error.code} ${error.retryAfterSeconds}`,
  );
/** Resolves when the issuer's own look at the node has ended. */
const settled = (ok: boolean) => vi.waitFor(() => expect(issuer.status().ok).toBe(ok), { interval: 2 });

describe('an invoice', () => {
  test('that is as ordered is handed on with what it says', async () => {
    await issuer.start();
    const { text, invoice } = await issue();
    expect(text).toBe(node.invoices[0]?.text);
    expect(invoice).toMatchObject({ amountMsat: 25_000n, createdAt: NOW, expirySeconds: 300 });
    expect(Buffer.from(invoice.payee).toString('hex')).toBe(issuer.payTo());
    expect(issuer.status()).toEqual({ ok: true });
  });

  test('is ordered under a label that says nothing and never comes twice', async () => {
    await issuer.start();
    await issue();
    await issue();
    const labels = node.received.flatMap(({ body }) => new URLSearchParams(body).get('externalId') ?? []);
    expect(new Set(labels).size).toBe(2);
    for (const label of labels) expect(label).toMatch(/^percall-[0-9a-f]{24}$/);
  });

  const broken: [string, Partial<InvoiceTerms>][] = [
    ['costs more', { amountMsat: 26_000n }],
    ['costs less', { amountMsat: 24_000n }],
    ['has no amount', { amountMsat: null }],
    ['is of another network', { currency: 'tb' }],
    ['is of a test network', { currency: 'bcrt' }],
    ['is for another request', { descriptionHash: articleBinding('B').hash }],
    ['says no request', { descriptionHash: null }],
    ['has a description in words', { description: 'article A' }],
    ['has a description alone', { descriptionHash: null, description: 'article A' }],
    ['expires earlier', { expirySeconds: 299 }],
    ['expires later', { expirySeconds: 301 }],
    ['does not say when it expires', { expirySeconds: null }],
    ['is signed by another node', { privateKey: nodeKeys('another').privateKey }],
    ['was created in the future', { createdAt: NOW + 61 }],
    ['has expired', { createdAt: NOW - 301 }],
  ];
  test.each(broken)('that %s is not offered, and the node counts as away', async (_what, twist) => {
    await issuer.start();
    node.twist = twist;
    expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
    expect(issuer.status()).toMatchObject({ ok: false, detail: expect.stringContaining('must not be offered') });
    expect(bench.logged.join()).toContain('"level":"error"');
    const asked = node.received.length;
    node.twist = {};
    expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
    expect(node.received).toHaveLength(asked);
  });

  test.each([
    ['created at the last second that is not the future', { createdAt: NOW + 60 }],
    ['about to expire', { createdAt: NOW - 300 }],
    ['that names its node', { payeeField: true }],
  ] as [string, Partial<InvoiceTerms>][])('%s is offered', async (_what, twist) => {
    await issuer.start();
    node.twist = twist;
    expect(await refusal(issue())).toBe('none');
  });

  test('whose payment hash was used before is not offered again', async () => {
    await issuer.start();
    node.twist = { paymentHash: createHash('sha256').update('once').digest() };
    expect(await refusal(issue())).toBe('none');
    expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
  });

  test('of the test network is offered there', async () => {
    issuer = issuerOf({ network: TESTNET });
    await issuer.start();
    node.twist = { currency: 'tb' };
    expect(await refusal(issue())).toBe('none');
  });
});

describe('a node that is away', () => {
  test('does not stop the start, is looked for after 1, 2, 4 … 60 s, and sold through once it is there', async () => {
    await node.setFault('500');
    await issuer.start();
    expect(issuer.payTo()).toBeNull();
    expect(() => issuer.checkAvailable()).toThrow(expect.objectContaining({ status: 503, retryAfterSeconds: 1 }));
    const waits: number[] = [];
    for (let look = 0; look < 8; look++) {
      await vi.waitFor(() => expect(clock.sleepers()).toHaveLength(1), { interval: 2 });
      const [wait = 0] = clock.sleepers();
      waits.push(wait / 1000);
      await clock.advance(wait - 1);
      const asked = node.received.length;
      expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
      expect(node.received).toHaveLength(asked);
      if (look === 7) await node.setFault(null);
      await clock.advance(1);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
    await settled(true);
    expect(issuer.payTo()).toBe(node.key);
    expect(await refusal(issue())).toBe('none');
  });

  test('tells buyers when to come back, and counts one outage once', async () => {
    await issuer.start();
    await node.setFault('reset');
    const at = await Promise.all([issue(), issue(), issue()].map(refusal));
    expect(at).toEqual(Array(3).fill('503 lightning_unavailable 1'));
    expect(clock.sleepers()).toEqual([1000]);
    await clock.advance(1000);
    await vi.waitFor(() => expect(clock.sleepers()).toEqual([2000]), { interval: 2 });
    expect(await refusal(issue())).toBe('503 lightning_unavailable 2');
  });

  test('is waited for from the start again after an invoice that was good, and not before', async () => {
    await issuer.start();
    const fails = async () => {
      node.twist = { amountMsat: 1n };
      await refusal(issue());
      node.twist = {};
      const [wait = 0] = clock.sleepers();
      await clock.advance(wait);
      await settled(true);
      return wait;
    };
    expect([await fails(), await fails(), await fails()]).toEqual([1000, 2000, 4000]);
    await issue();
    expect(await fails()).toBe(1000);
    await clock.advance(60_000);
    expect(await fails()).toBe(1000);
  });

  test('is one that does not answer in time', async () => {
    issuer = issuerOf({ timeoutMs: 50 });
    await issuer.start();
    await node.setFault('time-out');
    expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
    expect(issuer.status()).toMatchObject({ ok: false, detail: expect.stringContaining('timed out') });
  });

  test('is none that a buyer did not wait for', async () => {
    await issuer.start();
    await node.setFault('time-out');
    const buyer = new AbortController();
    const asked = issuer.issue(order, buyer.signal);
    buyer.abort(new Error('gone'));
    expect(await refusal(asked)).toBe('gone');
    expect(issuer.status()).toEqual({ ok: true });
  });

  test('and an order of ours that makes no sense is a bug, which says nothing about the node', async () => {
    await issuer.start();
    const asked = issuer.issue({ ...order, amountMsat: 1n }, signal);
    await expect(asked).rejects.toThrow(RangeError);
    expect(issuer.status()).toEqual({ ok: true });
  });
});

describe("a node's key", () => {
  test('that is not the expected one is never sold through, and the status says why', async () => {
    const expectedKey = nodeKeys('expected').key;
    issuer = issuerOf({ expectedKey });
    await issuer.start();
    expect(issuer.status()).toMatchObject({ ok: false, detail: expect.stringContaining(expectedKey) });
    expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
    expect(node.invoices).toEqual([]);
    expect(await refusal(issuer.isPaid(Buffer.alloc(32), signal))).toMatch(/^503 lightning_unavailable/);
    node.key = expectedKey;
    await clock.advance(1000);
    await settled(true);
  });

  test('that is the expected one is sold through, and is known while the node is away', async () => {
    issuer = issuerOf({ expectedKey: node.key });
    await node.setFault('500');
    await issuer.start();
    expect(issuer.payTo()).toBe(node.key);
    expect(issuer.status().ok).toBe(false);
  });

  test('that changes while we run is refused until it is the first one again', async () => {
    await issuer.start();
    const { key } = node;
    const other = nodeKeys('other');
    node.key = other.key;
    node.twist = { privateKey: other.privateKey };
    expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
    await clock.advance(1000);
    await vi.waitFor(() => expect(clock.sleepers()).toEqual([2000]), { interval: 2 });
    expect(issuer.status()).toMatchObject({ ok: false, detail: `its key is ${other.key}, and not ${key}` });
    expect(issuer.payTo()).toBe(key);
    node.key = key;
    node.twist = {};
    await clock.advance(2000);
    await settled(true);
    expect(await refusal(issue())).toBe('none');
  });
});

describe('a connection that may spend', () => {
  const tooMuch = () => {
    throw new TooMuchPower('it may pay');
  };

  test('stops the start', async () => {
    issuer = issuerOf({ power: tooMuch });
    await expect(issuer.start()).rejects.toThrow(TooMuchPower);
    expect(await refusal(issue())).toMatch(/^503 lightning_unavailable/);
  });

  test('that is seen only later keeps the rail shut for good', async () => {
    let asked = 0;
    issuer = issuerOf({ power: () => (++asked === 1 ? undefined : tooMuch()) });
    await node.setFault('500');
    await issuer.start();
    await node.setFault(null);
    await clock.advance(1000);
    await vi.waitFor(() => expect(issuer.status().detail).toBe('it may pay'), { interval: 2 });
    expect(bench.logged.join()).toMatch(/"level":"error".*it may pay/);
    expect(clock.sleepers()).toEqual([]);
    expect(await refusal(issue())).toBe('503 lightning_unavailable 300');
    expect(node.invoices).toEqual([]);
  });
});

describe('whether a payment came in', () => {
  test('is what the node says, also while it makes no invoices', async () => {
    await issuer.start();
    const { invoice } = await issue();
    expect(await issuer.isPaid(invoice.paymentHash, signal)).toBe(false);
    node.pay(invoice.paymentHash);
    node.twist = { amountMsat: 1n };
    await refusal(issue());
    expect(await issuer.isPaid(invoice.paymentHash, signal)).toBe(true);
  });

  test('is never "no" when the node cannot be asked', async () => {
    expect(await refusal(issuer.isPaid(Buffer.alloc(32), signal))).toMatch(/^503 lightning_unavailable/);
    await issuer.start();
    await node.setFault('500');
    expect(await refusal(issuer.isPaid(Buffer.alloc(32), signal))).toBe('503 lightning_unavailable 5');
    expect(issuer.status()).toEqual({ ok: true });
  });
});

test('stopping ends the search for a node that is away', async () => {
  await node.setFault('500');
  await issuer.start();
  await issuer.stop();
  expect(clock.sleepers()).toEqual([]);
});
