import { hash } from 'node:crypto';
import { jcs } from '../../lib/jcs.ts';
import { isPublicKey } from '../../lib/secp256k1.ts';
import { own, ownKeys } from '../../lib/untrusted.ts';
import { httpParams, isRequestHash, mcpParams } from './binding.ts';
import { decodeInvoice, type Invoice } from './bolt11.ts';
import { type LightningNetwork, lightningNetwork } from './terms.ts';

// The checks of a Lightning proof, steps 1 to 7 of the scheme's facilitator, in its order and with its reasons. Pure
// and total: both sides are untrusted, and any value gives a verdict, never an exception.

/** A checked proof, without the preimage. Hashes: SHA-256. `payTo`: 33 bytes, compressed. Times: Unix seconds. */
export interface Proof {
  readonly network: string;
  readonly paymentHash: Uint8Array;
  readonly payTo: Uint8Array;
  readonly amountMsat: bigint;
  readonly requestHash: Uint8Array;
  readonly createdAt: number;
  readonly expirySeconds: number;
}

export type ProofVerdict =
  | { readonly ok: true; readonly proof: Proof }
  | { readonly ok: false; readonly reason: LnbtcReason };

export interface ProofOptions {
  /** Unix seconds. */
  readonly now: number;
  readonly skewSeconds?: number;
  /** The longest `maxTimeoutSeconds` that is accepted; the scheme's own bound by default. */
  readonly maxTimeoutSeconds?: number;
}

/** The first failure decides; the store does step 8, the claim. A payment made in time has `skewSeconds` to arrive. */
export function checkProof(paymentPayload: unknown, requirement: unknown, options: ProofOptions): ProofVerdict {
  const { now, skewSeconds = 60, maxTimeoutSeconds = Number.MAX_SAFE_INTEGER } = options;
  const accepted = own(paymentPayload, 'accepted');
  const acceptedExtra = own(accepted, 'extra');
  const requiredExtra = own(requirement, 'extra');

  const differing = compareAccepted(accepted, requirement);
  if (differing) return refused(differing);

  const terms = readTerms(requirement, maxTimeoutSeconds);
  if (typeof terms === 'string') return refused(terms);

  const request = checkExtra(acceptedExtra, requiredExtra);
  if (typeof request === 'string') return refused(request);

  const absent = checkInvoicesPresent(acceptedExtra, requiredExtra);
  if (absent) return refused(absent);

  const invoice = readInvoice(own(acceptedExtra, 'invoice'), {
    ...terms,
    ...request,
    latestCreation: now + skewSeconds,
  });
  if (typeof invoice === 'string') return refused(invoice);
  const { paymentHash, amountMsat, createdAt, expirySeconds } = invoice;

  const unproven = checkPreimage(own(own(paymentPayload, 'payload'), 'preimage'), paymentHash);
  if (unproven) return refused(unproven);

  if (now > createdAt + expirySeconds + skewSeconds) return refused('invalid_exact_lnbtc_invoice_expired');

  const { network, payTo } = terms;
  const requestHash = Buffer.from(request.requestHash, 'hex');
  const proof = { network: network.id, paymentHash, payTo, amountMsat, requestHash, createdAt, expirySeconds };
  return { ok: true, proof };
}

function refused(reason: LnbtcReason): ProofVerdict {
  return { ok: false, reason };
}

const COMPARED: readonly (readonly [member: string, reason: LnbtcReason])[] = [
  ['network', 'network_mismatch'],
  ['amount', 'invalid_exact_lnbtc_amount_mismatch'],
  ['asset', 'invalid_exact_lnbtc_asset'],
  ['payTo', 'invalid_exact_lnbtc_pay_to_mismatch'],
  ['maxTimeoutSeconds', 'invalid_exact_lnbtc_max_timeout_mismatch'],
];

/** Step 1. Compares strictly, member by member: a number does not equal its string. Null when they agree. */
function compareAccepted(accepted: unknown, requirement: unknown): LnbtcReason | null {
  const isObject = typeof accepted === 'object' && accepted !== null;
  if (!isObject || own(accepted, 'scheme') !== own(requirement, 'scheme')) return 'unsupported_scheme';
  const differing = COMPARED.find(([member]) => own(accepted, member) !== own(requirement, member));
  return differing?.[1] ?? null;
}

interface BoundRequest {
  /** 64 lower-case hex characters. */
  readonly requestHash: string;
}

/** Members with checks of their own. Only `invoice` may differ. */
const JUDGED_APART: ReadonlySet<PropertyKey> = new Set([
  'assetTransferMethod',
  'paymentFlow',
  'invoice',
  'requestHash',
  'requestBindingProfile',
  'requestBindingParams',
]);

/** Step 3: the `extra` of both sides, in the scheme's order. The client may add members. */
export function checkExtra(accepted: unknown, required: unknown): BoundRequest | LnbtcReason {
  const sides = [required, accepted];
  // Each check: the requirement first, then the accepted side.
  if (!sides.every(isBolt11)) return 'invalid_exact_lnbtc_asset_transfer_method';
  if (!sides.every((side) => own(side, 'paymentFlow') === 'upfront')) return 'invalid_exact_lnbtc_payment_flow';
  const ours = readBinding(required);
  const theirs = ours && readBinding(accepted);
  if (!ours || !theirs) return 'invalid_exact_lnbtc_request_binding';
  if (ours.requestHash !== theirs.requestHash || ours.profile !== theirs.profile || ours.params !== theirs.params)
    return 'invalid_exact_lnbtc_request_mismatch';
  const declared = ownKeys(required);
  if (!declared?.every((key) => JUDGED_APART.has(key) || isSameData(own(required, key), own(accepted, key))))
    return 'invalid_exact_lnbtc_extra_mismatch';
  return { requestHash: ours.requestHash };
}

function isBolt11(extra: unknown): boolean {
  const method = own(extra, 'assetTransferMethod');
  return method === undefined || method === 'bolt11';
}

/** Its parameters are in canonical form. Null without the syntax of a profile. */
function readBinding(extra: unknown): { requestHash: string; profile: string; params: string | null } | null {
  const requestHash = own(extra, 'requestHash');
  const profile = own(extra, 'requestBindingProfile');
  if (!isRequestHash(requestHash) || (profile !== 'http:1' && profile !== 'mcp:1')) return null;
  const given = own(extra, 'requestBindingParams');
  const params = profile === 'http:1' ? httpParams(given) : mcpParams(given);
  return params && { requestHash, profile, params: jcs(params) };
}

/** A value that is not JSON equals nothing, not even itself. */
function isSameData(a: unknown, b: unknown): boolean {
  const text = jcs(a);
  return text !== null && text === jcs(b);
}

interface InvoiceTerms extends ProofTerms {
  readonly requestHash: string;
  /** Unix seconds. An invoice created later counts as created in the future. */
  readonly latestCreation: number;
}

/** Step 4. The two invoices may differ; the accepted one is checked. Null when both are there. */
export function checkInvoicesPresent(acceptedExtra: unknown, requiredExtra: unknown): LnbtcReason | null {
  const isAbsent = (extra: unknown) => {
    const invoice = own(extra, 'invoice');
    return invoice === undefined || invoice === null || invoice === '';
  };
  return isAbsent(requiredExtra) || isAbsent(acceptedExtra) ? 'invalid_exact_lnbtc_invoice_missing' : null;
}

/** Step 5, in the scheme's order. */
export function readInvoice(text: unknown, terms: InvoiceTerms): Invoice | LnbtcReason {
  const invoice = decodeInvoice(text);
  if (!invoice) return 'invalid_exact_lnbtc_invoice_decode_failed';
  const [requestHash, ...more] = invoice.descriptionHashes;
  if (!requestHash || more.length > 0 || invoice.hasDescription) return 'invalid_exact_lnbtc_invoice_description';
  if (Buffer.compare(requestHash, Buffer.from(terms.requestHash, 'hex')) !== 0)
    return 'invalid_exact_lnbtc_invoice_request_mismatch';
  if (Buffer.compare(invoice.payee, terms.payTo) !== 0) return 'invalid_exact_lnbtc_invoice_payee_mismatch';
  if (invoice.currency !== terms.network.currency) return 'invalid_exact_lnbtc_invoice_currency_mismatch';
  if (invoice.amountMsat.toString() !== terms.amount) return 'invalid_exact_lnbtc_invoice_amount_mismatch';
  if (invoice.expirySeconds !== terms.maxTimeoutSeconds) return 'invalid_exact_lnbtc_invoice_expiry_mismatch';
  if (invoice.createdAt > terms.latestCreation) return 'invalid_exact_lnbtc_invoice_created_in_future';
  return invoice;
}

const LOWER_HEX = /^[0-9a-f]*$/;
const HEX_LENGTH = 64;

/** Step 6. Null when it fits. The preimage itself is not stored or returned. */
function checkPreimage(preimage: unknown, paymentHash: Uint8Array): LnbtcReason | null {
  if (preimage === undefined || preimage === null) return 'invalid_exact_lnbtc_preimage_missing';
  if (typeof preimage !== 'string' || !LOWER_HEX.test(preimage)) return 'invalid_exact_lnbtc_preimage_malformed';
  if (preimage.length !== HEX_LENGTH) return 'invalid_exact_lnbtc_preimage_length';
  const opened = hash('sha256', Buffer.from(preimage, 'hex'), 'buffer');
  return opened.equals(paymentHash) ? null : 'invalid_exact_lnbtc_preimage_hash_mismatch';
}

/** In the order of the checks that first return them. The codes are the scheme's own: clients match on them. */
export const LNBTC_REASONS = [
  'unsupported_scheme',
  'network_mismatch',
  'invalid_exact_lnbtc_amount_mismatch',
  'invalid_exact_lnbtc_asset',
  'invalid_exact_lnbtc_pay_to_mismatch',
  'invalid_exact_lnbtc_max_timeout_mismatch',
  'unsupported_network',
  'invalid_exact_lnbtc_amount',
  'invalid_exact_lnbtc_max_timeout',
  'invalid_exact_lnbtc_pay_to_malformed',
  'invalid_exact_lnbtc_asset_transfer_method',
  'invalid_exact_lnbtc_payment_flow',
  'invalid_exact_lnbtc_request_binding',
  'invalid_exact_lnbtc_request_mismatch',
  'invalid_exact_lnbtc_extra_mismatch',
  'invalid_exact_lnbtc_invoice_missing',
  'invalid_exact_lnbtc_invoice_decode_failed',
  'invalid_exact_lnbtc_invoice_description',
  'invalid_exact_lnbtc_invoice_request_mismatch',
  'invalid_exact_lnbtc_invoice_payee_mismatch',
  'invalid_exact_lnbtc_invoice_currency_mismatch',
  'invalid_exact_lnbtc_invoice_amount_mismatch',
  'invalid_exact_lnbtc_invoice_expiry_mismatch',
  'invalid_exact_lnbtc_invoice_created_in_future',
  'invalid_exact_lnbtc_preimage_missing',
  'invalid_exact_lnbtc_preimage_malformed',
  'invalid_exact_lnbtc_preimage_length',
  'invalid_exact_lnbtc_preimage_hash_mismatch',
  'invalid_exact_lnbtc_invoice_expired',
  'duplicate_settlement',
] as const;

export type LnbtcReason = (typeof LNBTC_REASONS)[number];

interface ProofTerms {
  readonly network: LightningNetwork;
  /** Millisatoshis in decimal, as on the wire. The caller chooses its length, so it is compared as text. */
  readonly amount: string;
  readonly maxTimeoutSeconds: number;
  readonly payTo: Uint8Array;
}

const AMOUNT = /^[1-9][0-9]*$/;
const PAY_TO = /^[0-9a-f]{66}$/;

/** Keys on the curve. Sellers return, and the square root takes a sixteenth of the time of a proof's checks. */
const knownKeys = new Set<string>();
const MAX_KNOWN_KEYS = 1024;

/** Step 2: the terms alone, in the scheme's order. `longestTimeout` in seconds. */
export function readTerms(requirement: unknown, longestTimeout: number): ProofTerms | LnbtcReason {
  if (own(requirement, 'scheme') !== 'exact') return 'unsupported_scheme';
  const network = lightningNetwork(own(requirement, 'network'));
  if (!network) return 'unsupported_network';
  if (own(requirement, 'asset') !== 'BTC') return 'invalid_exact_lnbtc_asset';
  const amount = own(requirement, 'amount');
  if (typeof amount !== 'string' || !AMOUNT.test(amount)) return 'invalid_exact_lnbtc_amount';
  const maxTimeoutSeconds = own(requirement, 'maxTimeoutSeconds');
  if (!isTimeout(maxTimeoutSeconds) || maxTimeoutSeconds > longestTimeout) return 'invalid_exact_lnbtc_max_timeout';
  const payTo = readKey(own(requirement, 'payTo'));
  if (!payTo) return 'invalid_exact_lnbtc_pay_to_malformed';
  return { network, amount, maxTimeoutSeconds, payTo };
}

function isTimeout(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function readKey(value: unknown): Uint8Array | null {
  if (typeof value !== 'string' || !PAY_TO.test(value)) return null;
  const key = Buffer.from(value, 'hex');
  if (knownKeys.has(value)) return key;
  if (!isPublicKey(key)) return null;
  if (knownKeys.size >= MAX_KNOWN_KEYS) knownKeys.clear();
  knownKeys.add(value);
  return key;
}

const differs = (member: string): string =>
  `The ${member} that the buyer accepted is not the required one. ` +
  'Both must be the same: send back the entry of accepts unchanged.';

const BINDING =
  'extra needs requestHash (64 lower-case hex characters), requestBindingProfile (http:1 or mcp:1) ' +
  'and the profile’s requestBindingParams, on both sides.';
const FRESH = 'Pay the invoice of a new offer.';

/** Which member is wrong, and what mends it: true for the seller who settles, and for the buyer. */
export const LNBTC_REFUSALS: Readonly<Record<LnbtcReason | SellersReason, string>> = {
  unsupported_scheme:
    'The scheme is not supported, or the accepted scheme is another one. Both sides need scheme exact.',
  network_mismatch: differs('network'),
  invalid_exact_lnbtc_amount_mismatch: differs('amount'),
  invalid_exact_lnbtc_asset: 'The asset is another one. Both sides need asset BTC.',
  invalid_exact_lnbtc_pay_to_mismatch: differs('payTo'),
  invalid_exact_lnbtc_max_timeout_mismatch: differs('maxTimeoutSeconds'),
  unsupported_network: 'The network is not supported. GET /facilitator/supported lists those that are.',
  invalid_exact_lnbtc_amount:
    'The amount is not valid. Write it as a decimal string of millisatoshis, without a leading 0.',
  invalid_exact_lnbtc_max_timeout:
    'maxTimeoutSeconds is not valid. It is a whole number of seconds, the invoice’s expiry, and here at most 3600.',
  invalid_exact_lnbtc_pay_to_malformed:
    'payTo is no node’s key. Write the 33 bytes of a compressed secp256k1 key as 66 lower-case hex characters.',
  invalid_exact_lnbtc_asset_transfer_method:
    'extra.assetTransferMethod is another method. Leave it out, or write bolt11, on both sides.',
  invalid_exact_lnbtc_payment_flow: 'extra.paymentFlow is another flow. Write upfront, on both sides.',
  invalid_exact_lnbtc_request_binding: `The binding of the request cannot be read. ${BINDING}`,
  invalid_exact_lnbtc_request_mismatch:
    'The payment is for another request: requestHash, profile or parameters differ. ' +
    'Present it with the request that it was paid for, byte for byte.',
  invalid_exact_lnbtc_extra_mismatch:
    'A member of extra is not what was required. Send back the entry of accepts unchanged.',
  invalid_exact_lnbtc_invoice_missing: 'The invoice is missing. extra.invoice must stand on both sides.',
  invalid_exact_lnbtc_invoice_decode_failed:
    'The invoice in extra.invoice cannot be read. It must be a signed BOLT11 invoice.',
  invalid_exact_lnbtc_invoice_description:
    'The invoice is bound to no request. It needs exactly one description hash, and no description.',
  invalid_exact_lnbtc_invoice_request_mismatch:
    'The invoice is for another request. Present it with the request that it was paid for, byte for byte.',
  invalid_exact_lnbtc_invoice_payee_mismatch: `The invoice is signed by another node than payTo. ${FRESH}`,
  invalid_exact_lnbtc_invoice_currency_mismatch: `The invoice is of another network. ${FRESH}`,
  invalid_exact_lnbtc_invoice_amount_mismatch: `The invoice has another amount than the required one. ${FRESH}`,
  invalid_exact_lnbtc_invoice_expiry_mismatch: `The invoice’s expiry is not maxTimeoutSeconds. ${FRESH}`,
  invalid_exact_lnbtc_invoice_created_in_future: 'The invoice was made in the future. Set the clocks, and try again.',
  invalid_exact_lnbtc_preimage_missing: 'The preimage is missing. Put it into payload.preimage of the payment.',
  invalid_exact_lnbtc_preimage_malformed:
    'The preimage is not lower-case hex. Write its 32 bytes as 64 lower-case hex characters.',
  invalid_exact_lnbtc_preimage_length:
    'The preimage has another length. Write its 32 bytes as 64 lower-case hex characters.',
  invalid_exact_lnbtc_preimage_hash_mismatch:
    'The preimage is of another payment: its SHA-256 is not the invoice’s payment hash. ' +
    'Pay the invoice, and send the preimage that the payment returned.',
  invalid_exact_lnbtc_invoice_expired: `The invoice has expired. ${FRESH}`,
  duplicate_settlement:
    'This proof was used before. It buys the request that it was first presented for, and nothing else: ' +
    'for that request, present it again byte for byte. For another one, pay a new invoice.',
  exact_lnbtc_payment_not_paid:
    'No payment of this invoice is known here. If you have paid it, do not pay again: ' +
    'present the proof again later, or ask the seller. If not, pay the invoice of this offer.',
};

/** The seller's own, which no facilitator gives. */
type SellersReason = 'exact_lnbtc_payment_not_paid';
