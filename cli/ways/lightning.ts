import { createHash } from 'node:crypto';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import type { PaymentPayload } from '@x402/core/types';
import { z } from 'zod';
import { isObject, jsonOrUndefined } from '../../src/lib/untrusted.ts';
import { bindHttp, bindMcp } from '../../src/payment/lightning/binding.ts';
import { decodeInvoice, type Invoice } from '../../src/payment/lightning/bolt11.ts';
import { checkExtra, checkInvoicesPresent, readInvoice, readTerms } from '../../src/payment/lightning/proof.ts';
import { boundUrl, readChallenge } from '../challenges.ts';
import { formatSats } from '../money.ts';
import { type LightningPayer, NotPaid } from '../payers/payer.ts';
import type { Call } from '../port.ts';
import { printable } from '../printable.ts';
import { type Asked, BadOffer, type Fault, type Offer, type Plan } from './way.ts';

// Bitcoin over Lightning, as x402's scheme `exact` on `lnbtc` asks for it.
// 1. Read the entry of a Lightning network.
// 2. Plan it: everything that the scheme defines is checked, because sats cannot be returned.
// 3. Pay the invoice, once. A payment whose outcome is not known is looked for before the wallet is asked to pay again.
// The other protocols of Lightning (l402.ts) share the third step.

/** The Lightning entry of a 402, and the resource that it is for. */
export interface LightningOffer {
  /** Unchanged, because the seller must get it back as it was. */
  readonly entry: Readonly<Record<string, unknown>>;
  readonly resource: unknown;
  /** The URL that the seller names as sold. */
  readonly resourceUrl: string;
  /** The seller's description; null when there is none. */
  readonly description: string | null;
}

/** The first entry on a Lightning network; null when there is none. Throws when the header is no x402 challenge. */
export function readLightningOffer(header: string): LightningOffer | null {
  const { accepts, resource } = readChallenge(header);
  const entry = accepts.find((offered) => isObject(offered) && String(offered.network).startsWith('lnbtc:'));
  if (entry === undefined) return null;
  const { description } = resource;
  return {
    entry: entry as Record<string, unknown>,
    resource,
    resourceUrl: resource.url,
    description: typeof description === 'string' ? description : null,
  };
}

/** What a 402 asks for over Lightning by x402. */
export function readLightning({ headers }: Asked, call: Call): readonly Offer[] | Fault | null {
  const header = headers.get('payment-required');
  const found = header === null ? null : readLightningOffer(header);
  if (!found) return null;
  const { entry, description } = found;
  const invoice = isObject(entry.extra) ? decodeInvoice(entry.extra.invoice) : null;
  const { amount, network, payTo } = entry;
  if (typeof amount !== 'string' || !/^[1-9]\d{0,17}$/.test(amount))
    return { fault: 'the Lightning entry has no amount' };
  return [
    {
      way: 'lightning',
      rail: 'lightning',
      protocol: 'x402',
      amount: { units: null, msat: BigInt(amount) },
      network: printable(network),
      asset: 'BTC',
      payTo: invoice ? Buffer.from(invoice.payee).toString('hex') : printable(payTo),
      description,
      // Checked by the plan, with the request's hash.
      resource: null,
      namesSeller: true,
      terms: null,
      plan: ({ now }) => planLightning(found, call, now),
    },
  ];
}

/** What is paid over Lightning, and what of the proof is its protocol's own. */
export interface InvoicePlan {
  readonly invoice: string;
  readonly paymentHash: string;
  readonly expiresAt: number;
  readonly proof: ProofShape;
}

/** The members of a proof besides its preimage. */
export type ProofShape =
  | { readonly protocol: 'x402'; readonly resource: unknown; readonly accepted: unknown }
  | { readonly protocol: 'l402'; readonly scheme: string; readonly token: string }
  | { readonly protocol: 'mpp'; readonly challenge: Readonly<Record<string, string>> };

function planLightning({ entry: accepted, resource, resourceUrl }: LightningOffer, call: Call, now: number): Plan {
  const ceilingMsat = BigInt(Number.MAX_SAFE_INTEGER);
  const verdict = checkLightningOffer(accepted, { ...requestOf(call), resourceUrl, now, ceilingMsat });
  if (!verdict.ok) throw new BadOffer(`${verdict.reason}${verdict.hint ? ` (${verdict.hint})` : ''}`);
  return planInvoice(verdict.invoice, verdict.text, { protocol: 'x402', resource, accepted });
}

/** A plan to pay an invoice that was checked. */
export function planInvoice(invoice: Invoice, text: string, proof: ProofShape): Plan {
  const paymentHash = Buffer.from(invoice.paymentHash).toString('hex');
  const expiresAt = invoice.createdAt + invoice.expirySeconds;
  const content: InvoicePlan = { invoice: text, paymentHash, expiresAt, proof };
  return { reference: paymentHash, expiresAt, channel: null, content };
}

/** The request that is repeated with the proof. */
type Request = Pick<Purchase, 'method' | 'url' | 'body' | 'tool'>;

function requestOf(call: Call): Request {
  if (call.kind === 'http') return { method: call.method, url: boundUrl(call.url), body: call.body?.bytes ?? EMPTY };
  const tool = { server: boundUrl(call.server), name: call.name, arguments: call.arguments };
  return { method: 'tools/call', url: `mcp://tool/${call.name}`, tool };
}

/** The request that is repeated with the proof, and the buyer's limits. */
interface Purchase {
  readonly method: string;
  /** The URL as it is sent, without a fragment; of a tool, the name of its resource. */
  readonly url: string;
  readonly body?: Uint8Array;
  readonly tool?: { readonly server: string; readonly name: string; readonly arguments: unknown };
  /** The URL that the challenge names as sold. */
  readonly resourceUrl: string;
  /** Unix seconds. */
  readonly now: number;
  readonly ceilingMsat: bigint;
}

/** The invoice that may be paid, or the scheme's reason against it, with a hint where the reason alone says little. */
export type OfferVerdict =
  | { readonly ok: true; readonly invoice: Invoice; readonly text: string; readonly network: string }
  | { readonly ok: false; readonly reason: string; readonly hint?: string };

/** The allowed difference between the buyer's clock and the seller's, in seconds. */
const SKEW_SECONDS = 60;
const EMPTY = new Uint8Array();

/**
 * Checks an offer before it is paid, because sats cannot be returned. The first failure in this order is returned:
 * 1. It has terms of this scheme, on a known network.
 * 2. It is paid up front, for exactly our request. The request's hash is computed here and never taken from the seller.
 * 3. The challenge names the URL of that request.
 * 4. The invoice can be read, says exactly that and nothing else, and is signed by `payTo`.
 * 5. It has not expired.
 * 6. It is not above the ceiling.
 */
export function checkLightningOffer(entry: unknown, purchase: Purchase): OfferVerdict {
  const { method, url, body = EMPTY, tool, resourceUrl, now, ceilingMsat } = purchase;
  const binding = tool ? bindMcp(tool) : bindHttp({ method, url, body });
  if (!binding) return refused('invalid_exact_lnbtc_request_binding', 'this request cannot be bound into an invoice');
  const terms = readTerms(entry, Number.MAX_SAFE_INTEGER);
  if (typeof terms === 'string') return refused(terms);

  const requestHash = Buffer.from(binding.hash).toString('hex');
  const { extra } = entry as { extra?: unknown };
  const expected = {
    paymentFlow: 'upfront',
    requestHash,
    requestBindingProfile: binding.profile,
    requestBindingParams: binding.params,
  };
  const request = checkExtra(extra, expected);
  if (typeof request === 'string') return refused(request, HINTS[request]);
  if (resourceUrl !== url) {
    return refused('invalid_exact_lnbtc_request_mismatch', `the offer is for ${printable(resourceUrl)}`);
  }

  const absent = checkInvoicesPresent(extra, extra);
  if (absent) return refused(absent);
  const { invoice: text } = extra as { invoice: string };
  const invoice = readInvoice(text, { ...terms, requestHash, latestCreation: now + SKEW_SECONDS });
  if (typeof invoice === 'string') return refused(invoice);
  if (now >= invoice.createdAt + invoice.expirySeconds) return refused('invalid_exact_lnbtc_invoice_expired');
  if (invoice.amountMsat > ceilingMsat) {
    const hint = `${formatSats(invoice.amountMsat)} is above the ceiling of ${formatSats(ceilingMsat)} (--max-sats)`;
    return refused('above_the_ceiling', hint);
  }
  return { ok: true, invoice, text, network: terms.network.id };
}

const HINTS: Record<string, string> = {
  invalid_exact_lnbtc_request_mismatch:
    'the invoice is for another request: is the seller known under another origin, or does it bind headers?',
};

function refused(reason: string, hint?: string): OfferVerdict {
  return { ok: false, reason, ...(hint !== undefined && { hint }) };
}

/** Checks a payer's preimage. Null when its hash is the payment hash, else the scheme's reason. */
export function checkPaidPreimage(preimage: unknown, paymentHash: Uint8Array): string | null {
  if (preimage === undefined || preimage === null || preimage === '')
    return 'invalid_exact_lnbtc_payer_preimage_required';
  if (typeof preimage !== 'string' || !/^[0-9a-f]{64}$/.test(preimage)) {
    return 'invalid_exact_lnbtc_payer_preimage_malformed';
  }
  const hash = createHash('sha256').update(preimage, 'hex').digest();
  return hash.equals(paymentHash) ? null : 'invalid_exact_lnbtc_payer_preimage_hash_mismatch';
}

const priceSchema = z.looseObject({ priceUsd: z.string(), btcUsd: z.string() });

/** The longest body that is parsed, in characters: a seller's may have 64 MB. */
const MAX_STATED = 65_536;

/** The price in dollars and the exchange rate from a 402's body; null when it has neither. */
export function statedPrice(body: string): { priceUsd: string; btcUsd: string } | null {
  const price = priceSchema.safeParse(body.length > MAX_STATED ? undefined : jsonOrUndefined(body));
  return price.success ? { priceUsd: price.data.priceUsd, btcUsd: price.data.btcUsd } : null;
}

/** How a payment of an invoice ended. */
export type Paid =
  | { readonly kind: 'paid'; readonly preimage: string }
  /** For certain. */
  | { readonly kind: 'not paid'; readonly reason: string }
  | { readonly kind: 'open'; readonly reason: string };

/**
 * Pays an invoice that was counted and kept. `mayBePaid`: an earlier run may have asked the wallet; then the wallet is
 * asked
 * first whether it has paid, and asked to pay only where it is certain that it has not and the invoice is still open.
 */
export async function payInvoice(
  { invoice, paymentHash, expiresAt }: InvoicePlan,
  payer: LightningPayer,
  {
    feeLimitMsat,
    mayBePaid,
    now,
  }: { readonly feeLimitMsat: bigint; readonly mayBePaid: boolean; readonly now: () => number },
): Promise<Paid> {
  const checked = (preimage: unknown): Paid => {
    const fault = checkPaidPreimage(preimage, Buffer.from(paymentHash, 'hex'));
    return fault === null ? { kind: 'paid', preimage: preimage as string } : { kind: 'open', reason: fault };
  };
  try {
    const found = mayBePaid ? await payer.find(invoice, paymentHash) : null;
    if (found !== null) return checked(found);
    if (now() >= expiresAt) return { kind: 'not paid', reason: 'the invoice has expired unpaid' };
    return checked(await payer.pay(invoice, { feeLimitMsat }));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: error instanceof NotPaid ? 'not paid' : 'open', reason };
  }
}

/** The header that presents an x402 proof. */
export function x402Proof({ resource, accepted }: Extract<ProofShape, { protocol: 'x402' }>, preimage: string) {
  const payment = { x402Version: 2, resource, accepted, payload: { preimage } };
  return { 'PAYMENT-SIGNATURE': encodePaymentSignatureHeader(payment as unknown as PaymentPayload) };
}
