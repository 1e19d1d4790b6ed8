import { z } from 'zod';
import { jsonOrUndefined } from '../../src/lib/untrusted.ts';
import type { AuthChallenge } from './auth-challenges.ts';

/** A challenge of MPP's `Payment` scheme. The credential repeats `echo` unchanged. */
export interface PaymentChallenge {
  readonly method: string;
  readonly intent: string;
  readonly echo: Readonly<Record<string, string>>;
  /** The decoded `request`. */
  readonly request: Readonly<Record<string, unknown>>;
  /** Unix seconds; null where the challenge does not expire. */
  readonly expiresAt: number | null;
  readonly description: string | null;
}

/** What a seller offers in a form that cannot be paid, as text for the buyer. */
export interface Fault {
  readonly fault: string;
}

const REQUIRED = ['id', 'realm', 'method', 'intent', 'request'] as const;
/** The parameters that a credential repeats. */
const ECHOED = [...REQUIRED, 'expires', 'digest', 'opaque'] as const;
/** RFC 3339, as the scheme requires it. `Date.parse` alone would accept other forms. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;
const object = z.record(z.string(), z.unknown());

/** Reads every `Payment` challenge of a header. A challenge that cannot be read becomes a fault, and does no harm to the others. */
export function readPaymentChallenges(challenges: readonly AuthChallenge[]): (PaymentChallenge | Fault)[] {
  return challenges.filter(({ scheme }) => scheme === 'payment').map(read);
}

function read({ params }: AuthChallenge): PaymentChallenge | Fault {
  const missing = REQUIRED.find((name) => !params.get(name));
  if (missing) return { fault: `a Payment challenge has no ${missing}` };
  // An extension of some servers: the credential would have to go into another header.
  if (params.has('header')) return { fault: 'a Payment challenge asks for the credential in a header of its own' };
  const request = object.safeParse(decodeJson(params.get('request')));
  if (!request.success) return { fault: 'the request of a Payment challenge is no JSON in base64url' };
  const expires = params.get('expires');
  const expiresAt = expires === undefined ? null : secondsOf(expires);
  if (Number.isNaN(expiresAt)) return { fault: 'the expiry of a Payment challenge is no RFC 3339 time' };
  return {
    method: params.get('method') ?? '',
    intent: params.get('intent') ?? '',
    echo: Object.fromEntries(ECHOED.flatMap((name) => (params.has(name) ? [[name, params.get(name) ?? '']] : []))),
    request: request.data,
    expiresAt,
    description: params.get('description') ?? null,
  };
}

/** JSON in base64url; undefined for anything else. */
const decodeJson = (encoded = ''): unknown => jsonOrUndefined(Buffer.from(encoded, 'base64url').toString('utf8'));

/** The Authorization header of a credential. Anyone who holds it can present the payment. */
export function paymentCredential(challenge: object, payload: object, source?: string): Record<string, string> {
  const credential = { challenge, ...(source !== undefined && { source }), payload };
  return { authorization: `Payment ${Buffer.from(JSON.stringify(credential), 'utf8').toString('base64url')}` };
}

const receiptSchema = z.looseObject({ status: z.literal('success'), reference: z.string().min(1) });

/** What the receipt of an answer refers to: a transaction, or a payment hash. Null without a receipt that can be read. */
export function receiptReference(headers: Headers): string | null {
  const receipt = receiptSchema.safeParse(decodeJson(headers.get('payment-receipt') ?? ''));
  return receipt.success ? receipt.data.reference : null;
}

function secondsOf(time: string): number {
  return TIME.test(time) ? Math.floor(Date.parse(time) / 1000) : Number.NaN;
}
