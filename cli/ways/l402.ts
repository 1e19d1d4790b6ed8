import { z } from 'zod';
import { decodeInvoice, type Invoice } from '../../src/payment/lightning/bolt11.ts';
import { readMacaroon } from '../../src/payment/protocols/l402/l402.ts';
import { type AuthChallenge, type PaymentChallenge, paymentCredential } from '../challenges.ts';
import { formatSats } from '../money.ts';
import { type ProofShape, planInvoice, x402Proof } from './lightning.ts';
import { BadOffer, type Fault, type Offer } from './way.ts';

// An invoice that a 402 asks for by L402, or by MPP's method `lightning`. Neither binds the invoice to the request.
// 1. Read the challenge. 2. Plan it: the invoice is checked against what the offer says. 3. It is paid as x402's
// invoices are (`planInvoice` in lightning.ts), and its proof is presented in its protocol's own form.

/** An invoice that is asked for by L402 or MPP, and what the paid request must repeat. */
export interface InvoiceOffer {
  readonly protocol: 'l402' | 'mpp';
  /** BOLT11 text, not checked. */
  readonly invoice: string;
  /** What the offer says about the invoice beside it. Null: nothing. */
  readonly stated: {
    readonly amountMsat: bigint | null;
    readonly paymentHash: string | null;
    /** A name of MPP: mainnet, testnet, signet or regtest. */
    readonly network: string | null;
    /** Unix seconds. */
    readonly expiresAt: number | null;
  };
  readonly description: string | null;
  /** The part of the proof that is this protocol's own. */
  readonly proof: Exclude<ProofShape, { readonly protocol: 'x402' }>;
}

/** LSAT is L402's old name. A server may send both, with the same content. */
const SCHEMES: Record<string, string> = { l402: 'L402', lsat: 'LSAT' };
const UNSTATED = { amountMsat: null, paymentHash: null, network: null, expiresAt: null };
const TOKEN = /^[A-Za-z0-9+/=_.-]{1,8192}$/;

/** The first invoice that a 402 asks for over L402. Null when it has no such challenge. */
export function readL402Offer(challenges: readonly AuthChallenge[]): InvoiceOffer | Fault | null {
  const asked = challenges.find(({ scheme }) => Object.hasOwn(SCHEMES, scheme));
  if (!asked) return null;
  const { params } = asked;
  const [macaroon, token, invoice] = ['macaroon', 'token', 'invoice'].map((name) => params.get(name));
  if (!invoice) return { fault: 'the L402 challenge has no invoice' };
  const held = macaroon ?? token;
  if (!held || !TOKEN.test(held)) return { fault: 'the L402 challenge has no token that can be sent back' };
  if (macaroon !== undefined && token !== undefined && macaroon !== token) {
    return { fault: 'the L402 challenge has two different tokens' };
  }
  const proof = { protocol: 'l402' as const, scheme: SCHEMES[asked.scheme] ?? 'L402', token: held };
  return { protocol: 'l402', invoice, stated: UNSTATED, description: null, proof };
}

const requestSchema = z.looseObject({
  amount: z.string().regex(/^[1-9]\d{0,15}$/, 'its amount is no positive whole number'),
  currency: z.string().regex(/^sat$/i, 'its amount is not in sat'),
  description: z.string().optional(),
  methodDetails: z.looseObject({
    invoice: z.string('it has no invoice'),
    paymentHash: z
      .string()
      .regex(/^[0-9a-f]{64}$/i, 'its payment hash is not 32 bytes in hex')
      .optional(),
    network: z.enum(['mainnet', 'testnet', 'signet', 'regtest'], 'its network is unknown').default('mainnet'),
  }),
});

/**
 * The first invoice that a 402 asks for over MPP (method `lightning`, intent `charge`). Null without such a challenge.
 */
export function readMppInvoice(challenges: readonly PaymentChallenge[]): InvoiceOffer | Fault | null {
  const asked = challenges.find(({ method, intent }) => method === 'lightning' && intent === 'charge');
  if (!asked) return null;
  const request = requestSchema.safeParse(asked.request);
  if (!request.success) return { fault: `the Payment challenge cannot be paid: ${request.error.issues[0]?.message}` };
  const { amount, description, methodDetails } = request.data;
  const { invoice, paymentHash = null, network } = methodDetails;
  return {
    protocol: 'mpp',
    invoice,
    stated: {
      amountMsat: BigInt(amount) * 1000n,
      paymentHash: paymentHash?.toLowerCase() ?? null,
      network,
      expiresAt: asked.expiresAt,
    },
    description: asked.description ?? description ?? null,
    proof: { protocol: 'mpp', challenge: asked.echo },
  };
}

/** What a 402 asks for by an invoice alone. A fault where it cannot be read, or has no amount. */
export function invoiceOffer(found: InvoiceOffer | Fault | null): readonly Offer[] | Fault | null {
  if (!found || 'fault' in found) return found;
  const invoice = decodeInvoice(found.invoice);
  if (!invoice) return { fault: 'the invoice cannot be read, or has no amount' };
  return [
    {
      way: found.protocol === 'l402' ? 'l402' : 'mpp-lightning',
      rail: 'lightning',
      protocol: found.protocol,
      amount: { units: null, msat: invoice.amountMsat },
      network: NETWORKS[invoice.currency],
      asset: 'BTC',
      payTo: Buffer.from(invoice.payee).toString('hex'),
      description: found.description,
      resource: null,
      // Many sellers let one node of a service make their invoices.
      namesSeller: false,
      terms: null,
      plan({ now }) {
        const verdict = checkInvoiceOffer(found, { now, ceilingMsat: BigInt(Number.MAX_SAFE_INTEGER) });
        if (!verdict.ok) throw new BadOffer(verdict.reason);
        return planInvoice(verdict.invoice, found.invoice, found.proof);
      },
    },
  ];
}

/** The header that presents a proof, in the form of its protocol. */
export function proofHeader(proof: ProofShape, preimage: string): Record<string, string> {
  if (proof.protocol === 'l402') return { authorization: `${proof.scheme} ${proof.token}:${preimage}` };
  return proof.protocol === 'mpp' ? paymentCredential(proof.challenge, { preimage }) : x402Proof(proof, preimage);
}

/** Names of networks, by an invoice's currency. */
const NETWORKS = { bcrt: 'regtest', bc: 'mainnet', tbs: 'signet', tb: 'testnet' };

/** The buyer's limits. */
interface InvoiceLimits {
  /** Unix seconds. */
  readonly now: number;
  readonly ceilingMsat: bigint;
}

/** The invoice that may be paid, or the reason against it in words for the buyer. */
export type InvoiceVerdict =
  | { readonly ok: true; readonly invoice: Invoice; readonly network: string }
  | { readonly ok: false; readonly reason: string };

/** The allowed difference between the buyer's clock and the seller's, in seconds. */
const SKEW_SECONDS = 60;
/** The identifier of an L402 macaroon: two bytes of version, the payment hash, a token id. */
const IDENTIFIER_BYTES = 66;

/**
 * Checks an invoice of L402 or MPP before it is paid, because sats cannot be returned. The first failure in this order
 * is
 * returned:
 * 1. The invoice can be read, is signed and has an amount.
 * 2. It is what the offer says beside it: amount, network, payment hash.
 * 3. The token of L402 is for this invoice, where it is a macaroon and so says for which.
 * 4. Neither the invoice nor the offer has expired, and the invoice was not made in the future.
 * 5. It is not above the ceiling.
 * Unlike x402's scheme, these protocols do not bind the invoice to the request, so that cannot be checked.
 */
export function checkInvoiceOffer(
  { invoice: text, stated, proof }: InvoiceOffer,
  limits: InvoiceLimits,
): InvoiceVerdict {
  const { now, ceilingMsat } = limits;
  const invoice = decodeInvoice(text);
  if (!invoice) return refused('the invoice cannot be read, or has no amount');
  const { amountMsat, createdAt, expirySeconds } = invoice;
  const network = NETWORKS[invoice.currency];
  if (stated.amountMsat !== null && stated.amountMsat !== amountMsat) {
    return refused(
      `the invoice is over ${formatSats(amountMsat)}, but the offer says ${formatSats(stated.amountMsat)}`,
    );
  }
  if (stated.network !== null && stated.network !== network) {
    return refused(`the invoice is on ${network}, but the offer says ${stated.network}`);
  }
  const hash = Buffer.from(invoice.paymentHash).toString('hex');
  if (stated.paymentHash !== null && stated.paymentHash !== hash) {
    return refused('the invoice has another payment hash than the offer says');
  }
  const bought = proof.protocol === 'l402' ? paymentHashIn(proof.token) : null;
  if (bought !== null && bought !== hash) return refused('the L402 token is for another invoice');
  const expiresAt = Math.min(createdAt + expirySeconds, stated.expiresAt ?? Number.POSITIVE_INFINITY);
  if (now >= expiresAt) return refused(`the invoice or the offer expired ${now - expiresAt} s ago`);
  if (createdAt > now + SKEW_SECONDS) return refused('the invoice was made in the future, by this clock');
  if (amountMsat > ceilingMsat) {
    return refused(`${formatSats(amountMsat)} is above the ceiling of ${formatSats(ceilingMsat)} (--max-sats)`);
  }
  return { ok: true, invoice, network };
}

/** The payment hash to which a token commits, in hex. Null for a token that is no macaroon of L402: it says nothing. */
function paymentHashIn(token: string): string | null {
  const identifier = readMacaroon(Buffer.from(token, 'base64'))?.identifier;
  if (identifier?.length !== IDENTIFIER_BYTES || identifier.readUInt16BE(0) !== 0) return null;
  return identifier.subarray(2, 34).toString('hex');
}

function refused(reason: string): InvoiceVerdict {
  return { ok: false, reason };
}
