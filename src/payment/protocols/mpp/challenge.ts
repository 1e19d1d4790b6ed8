import { z } from 'zod';
import { AppError } from '../../../errors.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import { jcs } from '../../../lib/jcs.ts';
import { keccak256 } from '../../../lib/secp256k1.ts';
import { type ChallengeSecrets, hmac, isSignedBy } from '../../http-auth.ts';
import type { Credential, Fields, Receipt } from '../../protocol.ts';
import { PaymentRefused } from '../../refusal.ts';
import { EXPIRED } from '../../settler.ts';

// The auth scheme `Payment` of MPP, for both methods: a challenge whose id binds its terms, so that none is stored; a
// credential that repeats it; a problem for each refusal; a receipt.

/** The one intent that is served: a single payment. */
export const INTENT = 'charge';

/** `request` and `opaque` are base64url of canonical JSON, as on the wire. */
export interface Challenge {
  readonly id: string;
  readonly realm: string;
  readonly method: string;
  readonly intent: string;
  readonly request: string;
  /** RFC 3339. */
  readonly expires?: string | undefined;
  readonly digest?: string | undefined;
  readonly opaque?: string | undefined;
}

export type ChallengeTerms = Omit<Challenge, 'id'>;

/** The id that binds a challenge's terms: the HMAC-SHA256 of seven slots, absent ones empty, in base64url. */
export function challengeId(secret: Uint8Array, terms: ChallengeTerms): string {
  return binding(secret, terms).toString('base64url');
}

/** Whether one of our secrets made the id for exactly these terms. */
export function isOurChallenge(secrets: ChallengeSecrets, challenge: Challenge): boolean {
  // As text: several spellings decode to the same bytes, and one challenge has one id.
  return isSignedBy(secrets, Buffer.from(challenge.id, 'utf8'), (secret) =>
    Buffer.from(challengeId(secret, challenge), 'utf8'),
  );
}

export function withId(secret: Uint8Array, terms: ChallengeTerms): Challenge {
  return { id: challengeId(secret, terms), ...terms };
}

/** The nonce that an EIP-3009 authorization must have to answer a challenge of the method `evm`. */
export function nonceOf({ id, realm }: Pick<Challenge, 'id' | 'realm'>): `0x${string}` {
  return bytesToHex(keccak256(Buffer.from(id + realm, 'utf8')));
}

/** The value of a WWW-Authenticate line. No value of ours holds a quote or a backslash. */
export function challengeLine({ id, realm, method, intent, request, expires, opaque }: Challenge): string {
  const members = { id, realm, method, intent, request, expires, opaque };
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return `Payment ${given.map(([name, value]) => `${name}="${value}"`).join(', ')}`;
}

export function writeTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
}

/** Canonical JSON (RFC 8785) in base64url. Throws for what is no plain JSON data. */
export function encodeCanonical(value: object): string {
  const text = jcs(value);
  if (text === null) throw new TypeError('this is no plain JSON data');
  return Buffer.from(text, 'utf8').toString('base64url');
}

/** Decodes base64url JSON; undefined for any other text. */
export function decodeJson(encoded: string | undefined): unknown {
  try {
    return JSON.parse(Buffer.from(encoded ?? '', 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}

function binding(secret: Uint8Array, terms: ChallengeTerms): Buffer {
  const { realm, method, intent, request, expires = '', digest = '', opaque = '' } = terms;
  return hmac(secret, [realm, method, intent, request, expires, digest, opaque].join('|'));
}

/** A credential as the buyer sent it. Its form is valid; nothing else is checked yet. */
interface PaymentCredential {
  readonly challenge: Challenge;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly request: Readonly<Record<string, unknown>>;
}

/** Node refuses header blocks over 16 KiB. A credential for this service takes about 1.5 KiB. */
const MAX_CHARACTERS = 12_288;
const CREDENTIAL = /^payment +([A-Za-z0-9_-]+)={0,2}$/i;

/** Text that is no Unicode has no canonical form, and a receipt repeats the id. */
const text = z
  .string()
  .max(MAX_CHARACTERS)
  .refine((given) => given.isWellFormed());
const json = z.record(z.string(), z.unknown());
/** Clients of an earlier draft repeat it decoded. */
const opaque = z.union([text, z.record(text, text).transform(encodeCanonical)]);
const credential = z.object({
  challenge: z.object({
    id: text,
    realm: text,
    method: text,
    intent: text,
    request: text,
    expires: text.optional(),
    digest: text.optional(),
    opaque: opaque.optional(),
  }),
  payload: json,
});

/** Reads `Authorization: Payment …`. Throws PaymentRefused for text that is no credential, 400 for another method. */
export function readCredential(authorization: string, method: string): PaymentCredential {
  const encoded = authorization.length <= MAX_CHARACTERS ? CREDENTIAL.exec(authorization)?.[1] : undefined;
  const parsed = credential.safeParse(decodeJson(encoded));
  if (!parsed.success) throw new PaymentRefused('invalid_payload');
  const { challenge, payload } = parsed.data;
  if (challenge.method !== method || challenge.intent !== INTENT) throw notOffered(method);
  const request = json.safeParse(decodeJson(challenge.request));
  if (!request.success) throw new PaymentRefused('invalid_payload');
  return { challenge, payload, request: request.data };
}

/** 400. It may have been paid on another route, so the answer does not say that nothing is charged. */
function notOffered(method: string): AppError {
  const detail = `this route takes the method ${method} with the intent ${INTENT}; nothing was taken for this request`;
  return new AppError(400, 'method_unsupported', detail, { charged: 'unknown' });
}

const TITLES = {
  'payment-required': 'Payment required',
  'malformed-credential': 'Malformed credential',
  'invalid-challenge': 'Invalid challenge',
  'verification-failed': 'Verification failed',
  'payment-insufficient': 'Payment insufficient',
  'payment-expired': 'Payment expired',
};

type ProblemType = keyof typeof TITLES;

const BASE = 'https://paymentauth.org/problems/';

/** Any other reason means that the payment itself is wrong. */
const TYPES: Readonly<Record<string, ProblemType>> = {
  x402_not_here: 'payment-required',
  invalid_payload: 'malformed-credential',
  unsupported_payload_type: 'malformed-credential',
  invalid_challenge: 'invalid-challenge',
  challenge_expired: 'invalid-challenge',
  payment_already_used: 'invalid-challenge',
  invalid_exact_evm_payload_authorization_value_mismatch: 'payment-insufficient',
  [EXPIRED]: 'payment-expired',
};

/** A payment by x402 is not read here, so its reason comes without a sentence. */
const X402_NOT_HERE = 'This route takes MPP; the same route under /v1/paid takes x402.';

interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: 402;
  readonly detail: string;
  /** The reason in this service's own words, which the other protocols use too. */
  readonly code: string;
}

/** Describes a 402. Undefined `reason`: a request without a payment. `hint`: the words for people. */
export function problemOf(reason: string | undefined, hint: string): Problem {
  const type = reason === undefined ? 'payment-required' : (TYPES[reason] ?? 'verification-failed');
  return {
    type: BASE + type,
    title: TITLES[type],
    status: 402,
    detail: reason === 'x402_not_here' ? `${X402_NOT_HERE} ${hint}` : hint,
    code: reason ?? 'payment_required',
  };
}

/** A refused settlement has no receipt, because errors carry none. `chainId`: of a payment on a chain. */
export function receiptFields(
  method: string,
  { success, transaction }: Receipt,
  credential: Credential | null,
  at: number | null,
  chainId?: number,
): Fields {
  if (!success || at === null) return [];
  const timestamp = new Date(at).toISOString();
  // The reference is the transaction's hash or the payment hash. A preimage stands nowhere.
  const receipt = {
    ...(chainId !== undefined && { chainId }),
    ...(credential?.challengeId !== undefined && { challengeId: credential.challengeId }),
    method,
    reference: transaction,
    status: 'success',
    timestamp,
  };
  return [['payment-receipt', encodeCanonical(receipt)]];
}
