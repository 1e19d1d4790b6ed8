import { z } from 'zod';
import type { AuthChallenge } from '../pay/auth-challenges.ts';
import type { Fault, PaymentChallenge } from '../pay/payment-challenge.ts';

/** An invoice that a 402 asks to be paid by L402 or MPP, and what the paid request must repeat. */
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
  readonly proof:
    | { readonly protocol: 'l402'; readonly scheme: string; readonly token: string }
    | { readonly protocol: 'mpp'; readonly challenge: Readonly<Record<string, string>> };
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

/** The first invoice that a 402 asks for over MPP (method `lightning`, intent `charge`). Null when it has no such challenge. */
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
