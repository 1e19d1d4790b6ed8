import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { InvoiceTerms } from '../../../../../scripts/lib/lightning/encode-invoice.ts';
import type { Issuer } from '../../../../../src/payment/lightning/issuer.ts';
import { TESTNET } from '../../../../../src/payment/lightning/terms.ts';
import {
  ARTICLE_ORDER,
  BENCH_NOW,
  type IssuerBench,
  openIssuerBench,
  refusal,
} from '../../../../support/lightning/issuer-bench.ts';
import { type NodeServer, nodeKeys } from '../../../../support/lightning/lightning-node-servers.ts';
import { articleBinding } from '../../../../support/lightning/receiver-bench.ts';

const signal = new AbortController().signal;
let bench: IssuerBench;
let node: NodeServer;
let issuer: Issuer;

beforeEach(async () => {
  bench = await openIssuerBench();
  ({ node } = bench);
  issuer = bench.issuer();
});
afterEach(() => bench.close());

const issue = () => issuer.issue(ARTICLE_ORDER, signal);

describe('an invoice', () => {
  test('that is as requested is passed on with its contents', async () => {
    await issuer.start();
    const { text, invoice } = await issue();
    expect(text).toBe(node.invoices[0]?.text);
    expect(invoice).toMatchObject({ amountMsat: 25_000n, createdAt: BENCH_NOW, expirySeconds: 300 });
    expect(Buffer.from(invoice.payee).toString('hex')).toBe(issuer.payTo());
    expect(issuer.status()).toEqual({ ok: true });
  });

  test('is requested under a label that reveals nothing and is never repeated', async () => {
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
    ['was created in the future', { createdAt: BENCH_NOW + 61 }],
    ['has expired', { createdAt: BENCH_NOW - 301 }],
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
    ['created at the last second that is not the future', { createdAt: BENCH_NOW + 60 }],
    ['about to expire', { createdAt: BENCH_NOW - 300 }],
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
    expect(issuer.status().detail).toMatch(/must not be offered: its payment hash was used before$/);
  });

  test('that cannot be read is not offered, and the status says that it cannot be decoded', async () => {
    await issuer.start();
    node.answers['POST /createinvoice'] = { body: JSON.stringify({ serialized: 'lnbc1' }) };
    expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
    expect(issuer.status().detail).toMatch(/must not be offered: it cannot be decoded$/);
  });

  test('of the test network is offered there', async () => {
    issuer = bench.issuer({ network: TESTNET });
    await issuer.start();
    node.twist = { currency: 'tb' };
    expect(await refusal(issue())).toBe('none');
  });
});

describe('whether a payment came in', () => {
  test('is asked of the node, also while it makes no invoices', async () => {
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
