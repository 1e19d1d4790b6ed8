import { own } from '../../lib/own-property.ts';
import { compareAccepted } from './proof-accepted.ts';
import { checkExtra } from './proof-extra.ts';
import { checkInvoicesPresent, readInvoice } from './proof-invoice.ts';
import { checkPreimage } from './proof-preimage.ts';
import type { LnbtcReason } from './proof-reasons.ts';
import { readTerms } from './proof-terms.ts';

/** A proof that passed every check; the preimage is not in it. */
export interface Proof {
  readonly network: string;
  /** 32 bytes. */
  readonly paymentHash: Uint8Array;
  /** 33 bytes, compressed. */
  readonly payTo: Uint8Array;
  readonly amountMsat: bigint;
  /** SHA-256 of the bound request. */
  readonly requestHash: Uint8Array;
  /** The invoice's creation, Unix seconds. */
  readonly createdAt: number;
  readonly expirySeconds: number;
}

/** The reasons are the scheme's own codes. LnbtcReason lists them. */
export type ProofVerdict =
  | { readonly ok: true; readonly proof: Proof }
  | { readonly ok: false; readonly reason: LnbtcReason };

export interface ProofOptions {
  /** Unix seconds. */
  readonly now: number;
  /** 60 by default. */
  readonly skewSeconds?: number;
  /** The longest `maxTimeoutSeconds` that is accepted; the scheme's own bound by default. */
  readonly maxTimeoutSeconds?: number;
}

/**
 * Makes steps 1 to 7 of the facilitator's checks, in the scheme's order. The first failure decides. Both sides are untrusted: any value gives a
 * verdict, never an exception. The store does step 8, the claim.
 *
 * 1. The accepted terms are the required terms.
 * 2. The terms are valid in this scheme.
 * 3. `extra`: method and flow, the bound request, and every other member that the server declared.
 * 4. Both sides have an invoice.
 * 5. The accepted invoice matches the requirement and is signed by `payTo`.
 * 6. The preimage's SHA-256 is the invoice's payment hash.
 * 7. The invoice has not expired more than `skewSeconds` ago. A payment made in time has that long to arrive.
 */
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
