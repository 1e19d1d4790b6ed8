import { decodePaymentRequiredHeader, encodePaymentRequiredHeader } from '@x402/core/http';
import type { PaymentRequired } from '@x402/core/types';
import { z } from 'zod';
import { jsonOrUndefined } from '../src/lib/untrusted.ts';

// What a 402 says, by protocol: x402's header, the challenges of WWW-Authenticate, MPP's Payment challenges and
// receipts.

/** The members of a 402 that matter to a buyer. All others are kept as they are. */
const challengeSchema = z.looseObject({
  x402Version: z.literal(2),
  error: z.string().optional(),
  resource: z.looseObject({ url: z.string() }),
  accepts: z.array(z.unknown()),
});

type Challenge = z.output<typeof challengeSchema>;

/** Decodes a PAYMENT-REQUIRED header; `accepts` stays as it is. Throws when it is no x402 version 2 challenge. */
export function readChallenge(header: string): Challenge {
  const challenge = decode(header);
  if (!challenge) throw new Error('the PAYMENT-REQUIRED header holds no x402 version 2 challenge');
  return challenge;
}

/** The seller's reason for a 402; null when the header has none. */
export function challengeErrorOf(headers: Headers): string | null {
  return challengeIn(headers)?.error ?? null;
}

const challengeIn = (headers: Headers): Challenge | null => decode(headers.get('payment-required') ?? '');

/** Null for anything but a challenge of x402 version 2. */
function decode(header: string): Challenge | null {
  try {
    return challengeSchema.safeParse(decodePaymentRequiredHeader(header)).data ?? null;
  } catch {
    return null;
  }
}

/**
 * A PAYMENT-REQUIRED header with the entries alone that `keeps` accepts. Null when none is left, and for anything but a
 * challenge.
 */
export function keepEntries(header: string, keeps: (entry: unknown) => boolean): string | null {
  const challenge = decode(header);
  const accepts = challenge?.accepts.filter(keeps) ?? [];
  return accepts.length > 0 ? encodePaymentRequiredHeader({ ...challenge, accepts } as PaymentRequired) : null;
}

/**
 * Whether an offer's `resource.url` is the requested URL: the same host and path, and the same query or none.
 * Sellers leave out a long query (ours above 1,024 characters), and a seller behind a proxy that ends TLS names itself
 * `http`.
 * Any other difference means that the offer is for another request.
 */
export function isAskedResource(asked: URL, resourceUrl: string): boolean {
  const sold = URL.parse(resourceUrl);
  if (!sold || !['http:', 'https:'].includes(sold.protocol)) return false;
  return (
    sold.host === asked.host && sold.pathname === asked.pathname && (sold.search === asked.search || sold.search === '')
  );
}

/**
 * A URL in the form in which an invoice binds it and fetch requests it: without a fragment, and without the question
 * mark of an empty query.
 */
export function boundUrl({ origin, pathname, search }: URL): string {
  return `${origin}${pathname}${search}`;
}

/** One challenge of a WWW-Authenticate header. Names are in lower case, values as they were sent. */
export interface AuthChallenge {
  readonly scheme: string;
  readonly params: ReadonlyMap<string, string>;
}

/** Node refuses headers of more than 16 KiB. A longer text does not come from a response. */
const MAX_CHARACTERS = 65_536;
const TOKEN = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/y;
const EQUALS = /[ \t]*=[ \t]*(?=[^\s,=])/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"/y;
/** Values without quotes: RFC 9110 allows a token. Sellers also send bare base64. */
const BARE = /[^\s,"]+/y;
/** A scheme may be followed by one such value in place of parameters, as `Negotiate` is. */
const TOKEN68 = /[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))/y;
const GAP = /[\s,]*/y;

/**
 * Reads the challenges of a WWW-Authenticate header, whose lines the client has joined by commas (RFC 9110). Reading
 * ends at the first text that is not of
 * that form. The challenge that contains such text, or names a parameter twice, is left out: it could mean two things.
 * Never throws.
 */
export function readAuthChallenges(header: string): AuthChallenge[] {
  const text = header.slice(0, MAX_CHARACTERS);
  const found: { scheme: string; params: Map<string, string>; isSound: boolean }[] = [];
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match) at = pattern.lastIndex;
    return match;
  };
  for (take(GAP); at < text.length; take(GAP)) {
    const current = found.at(-1);
    const name = take(TOKEN)?.[0].toLowerCase();
    if (name === undefined) {
      if (current) current.isSound = false;
      break;
    }
    if (!take(EQUALS)) {
      found.push({ scheme: name, params: new Map(), isSound: true });
      take(/[ \t]+/y);
      take(TOKEN68);
      continue;
    }
    const value = take(QUOTED)?.[1]?.replaceAll(/\\(.)/g, '$1') ?? take(BARE)?.[0];
    if (!current) break;
    if (value === undefined || current.params.has(name)) current.isSound = false;
    if (value === undefined) break;
    current.params.set(name, value);
  }
  return found.filter(({ isSound }) => isSound).map(({ scheme, params }) => ({ scheme, params }));
}

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

/**
 * Reads every `Payment` challenge of a header. A challenge that cannot be read becomes a fault, and does no harm to the
 * others.
 */
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

/**
 * What the receipt of an answer refers to: a transaction, or a payment hash. Null without a receipt that can be read.
 */
export function receiptReference(headers: Headers): string | null {
  const receipt = receiptSchema.safeParse(decodeJson(headers.get('payment-receipt') ?? ''));
  return receipt.success ? receipt.data.reference : null;
}

function secondsOf(time: string): number {
  return TIME.test(time) ? Math.floor(Date.parse(time) / 1000) : Number.NaN;
}
