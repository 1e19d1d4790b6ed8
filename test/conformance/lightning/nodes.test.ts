import { createHash } from 'node:crypto';
import { Bolt11Invoice, Option_u64Z_Some, Result_Bolt11InvoiceParseOrSemanticErrorZ_OK } from 'lightningdevkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkLightningOffer } from '../../../cli/ways/lightning.ts';
import { type EmbeddedLightning, startEmbeddedLightning } from '../../../dev/lightning/lightning.ts';
import { bindHttp } from '../../../src/payment/lightning/binding.ts';
import { decodeInvoice } from '../../../src/payment/lightning/bolt11.ts';
import { checkProof } from '../../../src/payment/lightning/proof.ts';
import { lightningRequirement } from '../../../src/payment/lightning/terms.ts';
import { openReceiver, type ReceiverBench } from '../../support/lightning/receiver-bench.ts';
import { seed, seededRandom } from '../../support/random.ts';

const NAMES = ['mainnet', 'testnet'] as const;
type Name = (typeof NAMES)[number];

const signal = new AbortController().signal;
const nodes = {} as Record<Name, EmbeddedLightning>;
const benches = {} as Record<Name, ReceiverBench>;

// Both networks at once, because they share one WASM instance.
beforeAll(async () => {
  for (const name of NAMES) {
    nodes[name] = await startEmbeddedLightning({ network: name });
    const { lndUrl: url, macaroon } = nodes[name];
    benches[name] = openReceiver({ kind: 'lnd', url, macaroon, tlsCertFile: null });
  }
});
afterAll(async () => {
  for (const name of NAMES) {
    await benches[name]?.close();
    await nodes[name]?.stop();
  }
});

const url = (article: string) => `https://api.example.com/article/${article}`;
const bindingOf = (article: string) => bindHttp({ method: 'GET', url: url(article), body: new Uint8Array() })!;
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const now = () => Math.floor(Date.now() / 1000);

/** An invoice for an article, which a real node makes through its LND interface, as the service orders it. */
function issue(name: Name, { article = 'A', amountMsat = 25_000n, expirySeconds = 300 } = {}): Promise<string> {
  const { canonical, hash } = bindingOf(article);
  const order = { amountMsat, binding: canonical, requestHash: hash, expirySeconds, label: 'label' };
  return benches[name].receiver.createInvoice(order, signal);
}

/** The terms that belong to such an invoice. */
function termsFor(name: Name, invoice: string) {
  const { network, nodeId: payTo } = nodes[name];
  return lightningRequirement({ network, amountMsat: 25_000n, payTo, binding: bindingOf('A'), invoice });
}

/** LDK's own decoding. */
function readByLdk(invoice: string) {
  const read = Bolt11Invoice.constructor_from_str(invoice);
  if (!(read instanceof Result_Bolt11InvoiceParseOrSemanticErrorZ_OK)) throw new Error('LDK cannot read it');
  const amount = read.res.amount_milli_satoshis();
  return {
    amountMsat: amount instanceof Option_u64Z_Some ? amount.some : null,
    createdAt: Number(read.res.duration_since_epoch()),
    expirySeconds: Number(read.res.expiry_time()),
    paymentHash: hex(read.res.payment_hash()),
    payee: hex(read.res.recover_payee_pub_key()),
  };
}

describe.each([
  ['mainnet', 'bc'],
  ['testnet', 'tb'],
] as const)('invoices of a real node on %s', (name, currency) => {
  test(`decode to the ordered contents and to LDK's decoding (seed ${seed})`, async () => {
    const random = seededRandom(`lightning-nodes/${name}`);
    const amounts = [1n, 999n, 1000n, 10_000_000n, 100_000_000_000n];
    for (let i = 0; i < 25; i++) amounts.push(BigInt(1 + Math.floor(random() * 10 ** (1 + (i % 10)))));
    for (const [index, amountMsat] of amounts.entries()) {
      const [article, expirySeconds] = [`${index}`, 1 + Math.floor(random() * 86_400)];
      const before = now();
      const text = await issue(name, { article, amountMsat, expirySeconds });
      const after = now();
      const invoice = decodeInvoice(text);
      expect(invoice, text).toMatchObject({ currency, amountMsat, expirySeconds, hasDescription: false });
      const { createdAt, paymentHash, payee, descriptionHashes } = invoice!;
      expect(descriptionHashes.map(hex)).toEqual([hex(bindingOf(article).hash)]);
      expect(hex(payee)).toBe(nodes[name].nodeId);
      expect(createdAt).toBeGreaterThanOrEqual(before);
      expect(createdAt).toBeLessThanOrEqual(after);
      const own = { amountMsat, createdAt, expirySeconds, paymentHash: hex(paymentHash), payee: hex(payee) };
      expect(own).toEqual(readByLdk(text));
    }
  });

  test('a paid invoice proves the payment to the seller, for the request that the buyer meant', async () => {
    const text = await issue(name);
    const requirement = termsFor(name, text);
    const buyer = { method: 'GET', url: url('A'), resourceUrl: url('A'), now: now(), ceilingMsat: 25_000n };
    expect(checkLightningOffer(requirement, buyer)).toMatchObject({ ok: true, network: nodes[name].network });
    const preimage = await nodes[name].pay(text);
    const { paymentHash } = decodeInvoice(text)!;
    expect(createHash('sha256').update(preimage, 'hex').digest('hex')).toBe(hex(paymentHash));
    const payment = { x402Version: 2, accepted: requirement, payload: { preimage } };
    const verdict = checkProof(payment, requirement, { now: now() });
    expect(verdict).toMatchObject({ ok: true, proof: { network: nodes[name].network, amountMsat: 25_000n } });
    expect(verdict.ok && hex(verdict.proof.paymentHash)).toBe(hex(paymentHash));
  });
});

describe('a real payment proves nothing else', () => {
  let invoice: string;
  let preimage: string;
  beforeAll(async () => {
    invoice = await issue('mainnet');
    preimage = await nodes.mainnet.pay(invoice);
  });

  /** The result for terms that differ on both sides, as a forger would make them. */
  function reasonFor(changes: object, extra: object = {}, shown = preimage, at = now()): string | null {
    const plain = termsFor('mainnet', invoice);
    const terms = { ...plain, ...changes, extra: { ...plain.extra, ...extra } };
    const verdict = checkProof({ accepted: terms, payload: { preimage: shown } }, terms, { now: at });
    return verdict.ok ? null : verdict.reason;
  }

  test('although it proves its own payment', () => {
    expect(reasonFor({})).toBeNull();
  });

  test.each([
    ['amount', 'invalid_exact_lnbtc_invoice_amount_mismatch', () => ({ amount: '25001' }), {}],
    ['expiry', 'invalid_exact_lnbtc_invoice_expiry_mismatch', () => ({ maxTimeoutSeconds: 301 }), {}],
    ['payee', 'invalid_exact_lnbtc_invoice_payee_mismatch', () => ({ payTo: nodes.testnet.nodeId }), {}],
    ['currency', 'invalid_exact_lnbtc_invoice_currency_mismatch', () => ({ network: nodes.testnet.network }), {}],
    ['request', 'invalid_exact_lnbtc_invoice_request_mismatch', () => ({}), { requestHash: hex(bindingOf('B').hash) }],
  ])('and fails for another %s with %s', (_name, reason, changes, extra) => {
    expect(reasonFor(changes(), extra)).toBe(reason);
  });

  test('and fails with another payment’s preimage as invalid_exact_lnbtc_preimage_hash_mismatch', async () => {
    const other = await nodes.mainnet.pay(await issue('mainnet'));
    expect(reasonFor({}, {}, other)).toBe('invalid_exact_lnbtc_preimage_hash_mismatch');
  });

  test('and fails when it is presented too late or too early, beyond the allowed skew', () => {
    const { createdAt, expirySeconds } = decodeInvoice(invoice)!;
    const last = createdAt + expirySeconds + 60;
    expect(reasonFor({}, {}, preimage, last)).toBeNull();
    expect(reasonFor({}, {}, preimage, last + 1)).toBe('invalid_exact_lnbtc_invoice_expired');
    expect(reasonFor({}, {}, preimage, createdAt - 61)).toBe('invalid_exact_lnbtc_invoice_created_in_future');
  });

  test('and fails when an invoice of the test network claims to be of the main network', async () => {
    const text = await issue('testnet');
    const terms = { ...termsFor('testnet', text), network: nodes.mainnet.network };
    const payment = { accepted: terms, payload: { preimage: await nodes.testnet.pay(text) } };
    const reason = 'invalid_exact_lnbtc_invoice_currency_mismatch';
    expect(checkProof(payment, terms, { now: now() })).toEqual({ ok: false, reason });
  });

  test('and fails with a changed character of the invoice as invalid_exact_lnbtc_invoice_decode_failed', () => {
    const random = seededRandom('lightning-nodes/flip');
    for (let i = 0; i < 50; i++) {
      const at = 4 + Math.floor(random() * (invoice.length - 4));
      const other = invoice[at] === 'q' ? 'p' : 'q';
      const changed = `${invoice.slice(0, at)}${other}${invoice.slice(at + 1)}`;
      expect(reasonFor({}, { invoice: changed }), `seed ${seed}`).toBe('invalid_exact_lnbtc_invoice_decode_failed');
    }
  });
});
