import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { invoiceOf } from '../../../../../scripts/lib/lightning/encode-invoice.ts';
import { decodeInvoice } from '../../../../../src/payment/lightning/bolt11.ts';
import { MAINNET, TESTNET } from '../../../../../src/payment/lightning/terms.ts';
import type { Credential, QuotedInvoice } from '../../../../../src/payment/protocol.ts';
import { decodePayment } from '../../../../../src/payment/protocols/x402/http.ts';
import { PaymentRefused } from '../../../../../src/payment/refusal.ts';
import { BENCH_NOW } from '../../../../support/lightning/issuer-bench.ts';
import { type LightningRequirement, proofHeader } from '../../../../support/lightning/lightning-buyer.ts';
import { nodeKeys } from '../../../../support/lightning/lightning-node-servers.ts';
import { openRailBench, type RailBench } from '../../../../support/lightning/rail-bench.ts';

let bench: RailBench;
const open = async (...choices: Parameters<typeof openRailBench>) => {
  await bench?.close();
  bench = await openRailBench(...choices);
};
beforeEach(async () => {
  bench = await openRailBench();
});
afterEach(() => bench.close());

/** What is said of a header presented for a tag: `good`, or the scheme's reason. */
const verdictOn = (tag: string, header: string) =>
  bench.verifyProof(bench.order(tag), decodePayment(header)).then(
    () => 'good',
    (error: unknown) => (error instanceof PaymentRefused ? error.reason : error),
  );
const forget = (paymentHash: Buffer) =>
  bench.sql(`DELETE FROM lightning_invoices WHERE payment_hash = x'${paymentHash.toString('hex')}'`);

describe('a proof is checked against our own record', () => {
  test('of network, amount and payee, whatever the payment repeats', async () => {
    const { requirement, preimage } = await bench.ask(bench.order('a'));
    expect(await verdictOn('a', proofHeader(requirement, preimage))).toBe('good');
    for (const [change, reason] of [
      [{ amount: '1000' }, 'invalid_exact_lnbtc_amount_mismatch'],
      [{ network: TESTNET.id }, 'network_mismatch'],
      [{ payTo: `02${'11'.repeat(32)}` }, 'invalid_exact_lnbtc_pay_to_mismatch'],
      [{ asset: 'BTX' }, 'invalid_exact_lnbtc_asset'],
    ] as const) {
      expect(await verdictOn('a', proofHeader({ ...requirement, ...change }, preimage))).toBe(reason);
    }
  });

  test('at the price that was quoted, whatever the rate is now', async () => {
    const { requirement, preimage } = await bench.ask(bench.order('a'));
    bench.rates.current = async () => Promise.reject(new Error('no rate is needed'));
    expect(await verdictOn('a', proofHeader(requirement, preimage))).toBe('good');
  });

  test('and yields the key under which it is claimed, and what it proves', async () => {
    const order = bench.order('a');
    const { requirement, preimage, paymentHash } = await bench.ask(order);
    const { key, proof, claim } = await bench.verifyProof(order, decodePayment(proofHeader(requirement, preimage)));
    expect([key.network, Buffer.from(key.paymentHash).equals(paymentHash), claim]).toEqual([MAINNET.id, true, null]);
    expect(proof).toMatchObject({ amountMsat: 25_000n, network: MAINNET.id, expirySeconds: 300, createdAt: BENCH_NOW });
  });

  test('of the time until its invoice and the tolerance are over', async () => {
    const { requirement, preimage } = await bench.ask(bench.order('a'));
    await bench.clock.advance(360_999);
    expect(await verdictOn('a', proofHeader(requirement, preimage))).toBe('good');
    await bench.clock.advance(1);
    expect(await verdictOn('a', proofHeader(requirement, preimage))).toBe('invalid_exact_lnbtc_invoice_expired');
  });

  test('of the time of its claim, where it is claimed', async () => {
    const { header } = await bench.buy(bench.order('a'));
    await bench.redeem(bench.order('a'), header);
    await bench.clock.advance(600_000);
    expect(await verdictOn('a', header)).toBe('good');
    expect(await verdictOn('b', header)).toBe('duplicate_settlement');
  });

  test('of what was sold for it, whichever node signed the invoice that shows it next', async () => {
    const { header, requirement, key } = await bench.buy(bench.order('a'));
    await bench.redeem(bench.order('a'), header);
    const { privateKey, key: payTo } = nodeKeys('another');
    const invoice = invoiceOf({
      privateKey,
      paymentHash: key.paymentHash,
      amountMsat: 25_000n,
      createdAt: BENCH_NOW,
      currency: MAINNET.currency,
      descriptionHash: Buffer.from(bench.order('b').binding.hash),
    });
    const requestHash = Buffer.from(bench.order('b').binding.hash).toString('hex');
    const theirs = { ...requirement, payTo, extra: { ...requirement.extra, requestHash, invoice } };
    const { payload } = decodePayment(header);
    expect(await verdictOn('b', proofHeader(theirs, payload.preimage))).toBe('duplicate_settlement');
  });
});

describe('a proof without a record', () => {
  const lost = async () => {
    const { requirement, preimage, paymentHash } = await bench.ask(bench.order('a'));
    forget(paymentHash);
    return proofHeader(requirement, preimage);
  };

  test('is accepted for our node’s signature, at today’s price alone', async () => {
    const header = await lost();
    expect(await verdictOn('a', header)).toBe('good');
    bench.rates.current = async () => ({ rate: '32000', exchanges: [], retrievedAtMs: 0 });
    expect(await verdictOn('a', header)).toBe('invalid_exact_lnbtc_amount_mismatch');
  });

  test('is refused on a shared node', async () => {
    await open({ shared: true });
    expect(await verdictOn('a', await lost())).toBe('exact_lnbtc_payment_not_paid');
  });

  test('is refused when another node signed the invoice', async () => {
    const { requirement, preimage, paymentHash } = await bench.ask(bench.order('a'));
    forget(paymentHash);
    const { privateKey, key: payTo } = nodeKeys('another');
    const invoice = invoiceOf({
      privateKey,
      paymentHash,
      amountMsat: 25_000n,
      createdAt: BENCH_NOW,
      currency: MAINNET.currency,
      descriptionHash: Buffer.from(requirement.extra.requestHash, 'hex'),
    });
    const theirs = { ...requirement, payTo, extra: { ...requirement.extra, invoice } };
    expect(await verdictOn('a', proofHeader(theirs, preimage))).toBe('invalid_exact_lnbtc_pay_to_mismatch');
    const mixed = { ...requirement, extra: { ...requirement.extra, invoice } };
    expect(await verdictOn('a', proofHeader(mixed, preimage))).toBe('invalid_exact_lnbtc_invoice_payee_mismatch');
  });

  test('of the other network is looked for on that network', async () => {
    const { requirement, preimage, paymentHash } = await bench.ask(bench.order('a'));
    const { privateKey } = nodeKeys('phoenixd stand-in');
    const invoice = invoiceOf({
      privateKey,
      paymentHash,
      amountMsat: 25_000n,
      createdAt: BENCH_NOW,
      currency: TESTNET.currency,
      descriptionHash: Buffer.from(requirement.extra.requestHash, 'hex'),
    });
    const wanted: string[] = [];
    bench.faults.findClaim = async ({ network }) => {
      wanted.push(network);
      return null;
    };
    const other = { ...requirement, extra: { ...requirement.extra, invoice } };
    // Nothing was sold there: today's terms are the configured network's.
    expect(await verdictOn('a', proofHeader(other, preimage))).toBe('invalid_exact_lnbtc_invoice_currency_mismatch');
    expect(wanted).toEqual([TESTNET.id]);
  });
});

describe('a proof with a challenge', () => {
  const LATE_SECONDS = 7 * 86_400;
  /** A paid invoice with a challenge for it: signed by us or not, and for this invoice or another one. */
  const challenged = async ({ isSigned = true, isFor = true } = {}) => {
    const { requirement, preimage, paymentHash } = await bench.ask(bench.order('a'));
    const seen: QuotedInvoice[] = [];
    const credential: Credential = {
      protocol: 'l402',
      accepted: null,
      payload: { invoice: requirement.extra.invoice, preimage },
      identifier: () => null,
      answered: { isSigned, isFor: (invoice) => seen.push(invoice) > 0 && isFor, lateSeconds: LATE_SECONDS },
    };
    return { credential, paymentHash, requirement, seen };
  };
  const noRate = () => {
    bench.rates.current = async () => Promise.reject(new Error('no rate is needed'));
  };
  const verdict = (credential: Credential, tag = 'a') =>
    bench.verifyProof(bench.order(tag), credential).then(
      () => 'good',
      (error: unknown) => (error instanceof PaymentRefused ? error.reason : error),
    );

  test('may come seven days after its invoice has expired, to the second', async () => {
    const { credential, paymentHash } = await challenged();
    forget(paymentHash);
    await bench.clock.advance((300 + LATE_SECONDS) * 1000);
    expect(await verdict(credential)).toBe('good');
    await bench.clock.advance(1000);
    expect(await verdict(credential)).toBe('invalid_exact_lnbtc_invoice_expired');
  });

  test('may not come before its invoice was made', async () => {
    const { credential } = await challenged();
    bench.clock.nowMs = () => (BENCH_NOW - 61) * 1000;
    expect(await verdict(credential)).toBe('invalid_exact_lnbtc_invoice_created_in_future');
    bench.clock.nowMs = () => (BENCH_NOW - 60) * 1000;
    expect(await verdict(credential)).toBe('good');
  });

  test('that we signed needs neither a record nor today’s price, where no other party uses our node’s key', async () => {
    const { credential, paymentHash } = await challenged();
    forget(paymentHash);
    noRate();
    expect(await verdict(credential)).toBe('good');
    expect(await verdict(credential, 'b')).toBe('invalid_exact_lnbtc_invoice_request_mismatch');
  });

  /** A signed challenge for an invoice that we have no record of, as the holder of a leaked key makes it. */
  const forged = async (change: Partial<Parameters<typeof invoiceOf>[0]>) => {
    const { credential, requirement, paymentHash } = await challenged();
    forget(paymentHash);
    const { privateKey } = nodeKeys('phoenixd stand-in');
    const invoice = invoiceOf({
      privateKey,
      paymentHash,
      amountMsat: 25_000n,
      createdAt: BENCH_NOW,
      currency: MAINNET.currency,
      descriptionHash: Buffer.from(requirement.extra.requestHash, 'hex'),
      ...change,
    });
    return { ...credential, payload: { ...credential.payload, invoice } };
  };

  test('that is signed buys nothing without a record where another node signed the invoice', async () => {
    for (const shared of [false, true]) {
      await open({ shared });
      expect(await verdict(await forged({}))).toBe('good');
      const throwaway = await forged({ privateKey: nodeKeys('another').privateKey, amountMsat: 25_000n });
      expect(await verdict(throwaway), `shared: ${shared}`).toBe('invalid_exact_lnbtc_invoice_payee_mismatch');
    }
  });

  test('that is signed buys nothing without a record where its invoice is of another network than today’s', async () => {
    for (const shared of [false, true]) {
      await open({ shared });
      const testnet = await forged({ currency: TESTNET.currency });
      expect(await verdict(testnet), `shared: ${shared}`).toBe('invalid_exact_lnbtc_invoice_currency_mismatch');
    }
  });

  test('that is signed buys where its invoice is of another network and recorded, and where it is claimed', async () => {
    const credential = await forged({ currency: TESTNET.currency });
    const { paymentHash, payee, createdAt } = decodeInvoice(credential.payload.invoice)!;
    const [requestHash, issuedAt] = [bench.order('a').binding.hash, createdAt * 1000];
    const sold = { network: TESTNET.id, paymentHash, amountMsat: 25_000n, payTo: payee };
    await bench.real.recordInvoice({ ...sold, requestHash, issuedAt, forgetAt: issuedAt + 1 }, Buffer.from('sealed'));
    expect(await verdict(credential)).toBe('good');
    const grant = { requestHash, redeemUntil: issuedAt + 7 * 86_400_000, route: '/test', protocol: 'l402' };
    await bench.real.claim({ ...sold, claimedAt: issuedAt, keepUntil: issuedAt + 1, grant, account: null });
    await bench.real.prune(issuedAt);
    forget(Buffer.from(paymentHash));
    expect(await verdict(credential)).toBe('good');
  });

  test('that is signed buys on a shared node for half of today’s price at the least', async () => {
    await open({ shared: true });
    expect(await verdict(await forged({ amountMsat: 12_500n }))).toBe('good');
    expect(await verdict(await forged({ amountMsat: 40_000n }))).toBe('good');
    for (const amountMsat of [12_499n, 1n])
      expect(await verdict(await forged({ amountMsat }))).toBe('invalid_exact_lnbtc_invoice_amount_mismatch');
  });

  test('that we signed is not refused for good while the node’s key is unknown', async () => {
    const { credential, paymentHash } = await challenged();
    forget(paymentHash);
    bench.issuer.payTo = () => null;
    expect(await verdict(credential)).toMatchObject({ status: 503, code: 'lightning_unavailable' });
  });

  test('that we did not sign must be for the invoice as it stands in the text', async () => {
    const { credential, requirement, paymentHash, seen } = await challenged({ isSigned: false });
    expect(await verdict(credential)).toBe('good');
    const { payTo, amount } = requirement;
    expect(seen).toEqual([
      {
        text: requirement.extra.invoice,
        amountMsat: BigInt(amount),
        payTo,
        expiresAt: BENCH_NOW + 300,
        paymentHash: new Uint8Array(paymentHash),
      },
    ]);
  });

  test('that we did not sign is good for our record, or for our own node’s signature where no other party uses its key', async () => {
    for (const shared of [false, true]) {
      await open({ shared });
      const { credential, paymentHash } = await challenged({ isSigned: false });
      expect(await verdict(credential)).toBe('good');
      forget(paymentHash);
      noRate();
      expect(await verdict(credential)).toBe(shared ? 'exact_lnbtc_payment_not_paid' : 'good');
    }
  });

  test('that we did not sign is refused without a read of the ledger, unless it is for this invoice and this request', async () => {
    const [ours, theirs] = [await challenged({ isSigned: false }), await challenged({ isSigned: false, isFor: false })];
    bench.faults.findClaim = async () => Promise.reject(new Error('the ledger was read'));
    expect(await verdict(theirs.credential)).toBe('invalid_challenge');
    expect(await verdict(ours.credential, 'b')).toBe('invalid_challenge');
    const unreadable = { ...ours.credential, payload: { ...ours.credential.payload, invoice: 'lnbc1' } };
    expect(await verdict(unreadable)).toBe('invalid_challenge');
    expect(await verdict(ours.credential)).toMatchObject({ message: 'the ledger was read' });
  });
});

describe('a claim through the facilitator', () => {
  const claimAs = async (requirement: LightningRequirement, paymentHash: Buffer, payTo: Buffer) => {
    const now = bench.clock.nowMs();
    const terms = { amountMsat: BigInt(requirement.amount), claimedAt: now, keepUntil: now + 1, grant: null };
    await bench.real.claim({ network: MAINNET.id, paymentHash, payTo, ...terms, account: null });
  };

  test('of the same invoice has spent the proof', async () => {
    const { requirement, preimage, paymentHash } = await bench.ask(bench.order('a'));
    await claimAs(requirement, paymentHash, Buffer.from(bench.node.key, 'hex'));
    expect(await verdictOn('a', proofHeader(requirement, preimage))).toBe('duplicate_settlement');
  });

  test('of another node’s invoice over the same hash has not spent the proof', async () => {
    const { requirement, preimage, paymentHash } = await bench.ask(bench.order('a'));
    await claimAs(requirement, paymentHash, Buffer.from(nodeKeys('another').key, 'hex'));
    const order = bench.order('a');
    const { claim } = await bench.verifyProof(order, decodePayment(proofHeader(requirement, preimage)));
    expect(claim).toBeNull();
  });
});

describe('a payment whose invoice cannot be read', () => {
  const said = async (
    change: Record<string, unknown>,
    invoice: unknown = 'lnbc1',
    preimage: unknown = '00'.repeat(32),
  ) => {
    const { requirement } = await bench.ask(bench.order('a'));
    const extra = { ...requirement.extra, invoice };
    return verdictOn('a', proofHeader({ ...requirement, extra, ...change }, preimage));
  };

  test('is refused for that reason, unless an earlier check of the scheme fails', async () => {
    expect(await said({})).toBe('invalid_exact_lnbtc_invoice_decode_failed');
    expect(await said({}, 5)).toBe('invalid_exact_lnbtc_invoice_decode_failed');
    expect(await said({ amount: '7' })).toBe('invalid_exact_lnbtc_invoice_decode_failed');
    expect(await said({}, '')).toBe('invalid_exact_lnbtc_invoice_missing');
    expect(await said({ scheme: 'upto' })).toBe('unsupported_scheme');
    expect(await said({ network: 'eip155:1' })).toBe('network_mismatch');
    expect(await said({ payTo: '02' })).toBe('invalid_exact_lnbtc_pay_to_malformed');
    expect(await said({ payTo: 7 })).toBe('invalid_exact_lnbtc_pay_to_mismatch');
    expect(await said({ extra: 5 })).toBe('invalid_exact_lnbtc_payment_flow');
  });

  test('and whose amount is no number is refused for the amount', async () => {
    // An object that has no text: JSON can say that it has another `toString`.
    const textless = { toString: 1, valueOf: 1 };
    for (const amount of ['0', '-1', '1e3', '', ' 1', '1 ', `1${'0'.repeat(18)}`, 25_000, null, textless]) {
      expect(await said({ amount })).toBe('invalid_exact_lnbtc_amount_mismatch');
    }
    expect(await said({ amount: '9'.repeat(18) })).toBe('invalid_exact_lnbtc_invoice_decode_failed');
  });
});
