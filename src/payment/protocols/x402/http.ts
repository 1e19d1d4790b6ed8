import { createHash } from 'node:crypto';
import type { PaymentRequirements } from '@x402/core/types';
import { z } from 'zod';
import type { Endpoint } from '../../../catalogue/endpoint.ts';
import { listedPath } from '../../../catalogue/paths.ts';
import { BadParameter } from '../../../errors.ts';
import { pathAndQuery } from '../../../lib/url.ts';
import {
  type Credential,
  createHint,
  type Identifier,
  type PreparedProtocol,
  type Quote,
  type QuotedProtocol,
  type QuoteSubject,
  type RequestMessage,
} from '../../protocol.ts';
import { PaymentRefused } from '../../refusal.ts';
import { bazaarExtension } from './bazaar.ts';

// x402 version 2 over HTTP: PAYMENT-REQUIRED, PAYMENT-SIGNATURE, PAYMENT-RESPONSE. What a 402 says is prepared at start
// but for the request's own parts. A payment is decoded here and judged elsewhere.

const PAYMENT = 'payment-signature';
/** Header fields in which no payment of version 2 comes, and what to do instead. */
const OTHER_HEADERS: readonly (readonly [name: string, refusal: string])[] = [
  ['x-payment', 'X-PAYMENT is x402 version 1; this service speaks version 2: send PAYMENT-SIGNATURE'],
  ['x-payment-signature', 'X-PAYMENT-SIGNATURE is no field of x402: send the payment in PAYMENT-SIGNATURE'],
];
/** Stock clients refuse assets that they do not know until they are allowed. */
const HOW_TO_PAY =
  'pay with any x402 v2 client that allows this asset in its spend controls, ' +
  'and repeat the request with PAYMENT-SIGNATURE.';
const CONTENT_TYPE = 'application/json; charset=utf-8';

export const x402Http: PreparedProtocol & QuotedProtocol = {
  carries: ({ headers }) => headers[PAYMENT] !== undefined,
  read: ({ headers }) => decodePayment(String(headers[PAYMENT])),
  unpaidReason,
  prepare: (endpoint, accepts, origin) => {
    const challenge = createChallenge(endpoint, accepts, origin.publicOrigin);
    const hint = createHint(endpoint, 'paid', HOW_TO_PAY, origin);
    const usual = bodyOf(hint({ fault: null, refusal: null }));
    // Catalogues ask without parameters, so the last fault is often the next one too.
    let last: { readonly fault: string | null; readonly body: string } = { fault: null, body: usual };

    function unpaid(fault: string | null): string {
      if (fault === null) return usual;
      if (last.fault !== fault) last = { fault, body: bodyOf(hint({ fault, refusal: null })) };
      return last.body;
    }

    return ({ target, fault, refusal }, error, corrected) => ({
      fields: [['payment-required', challenge(target, error, corrected)]],
      body: error === undefined ? unpaid(fault) : bodyOf(hint({ fault, refusal: refusal ?? `${error}.` })),
      contentType: CONTENT_TYPE,
    });
  },
  quote: (of, quote, error) => {
    const { header, body } = quotedChallenge(of, quote, error);
    return { fields: [['payment-required', header]], body, contentType: CONTENT_TYPE };
  },
  // A refusal without an offer is a PaymentRequired with its reason and an empty `accepts`.
  needsOffer: () => false,
  receipt: (receipt) => [['payment-response', encodeHeader(receipt)]],
};

function unpaidReason({ headers }: RequestMessage): string | undefined {
  for (const [name, refusal] of OTHER_HEADERS) if (headers[name] !== undefined) return refusal;
  return undefined;
}

const WIDE = /[^ -~]/g;

// As ASCII text: Node sends it with the head in one write, and one wide character would cost 1.5 us more.
function bodyOf(hint: string): string {
  const text = JSON.stringify({ hint: hint.replaceAll('’', "'") });
  return text.replace(WIDE, (wide) => `\\u${wide.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Node refuses header blocks over 16 KiB. A payment for this service takes about 1 KiB. */
const MAX_HEADER_CHARS = 12_288;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** A JSON object as it was parsed. A record of zod's would copy it, and check each key for a string. */
const jsonObject = z.custom<Readonly<Record<string, unknown>>>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
);
const envelope = z.object({
  x402Version: z.literal(2),
  accepted: jsonObject,
  payload: jsonObject,
  extensions: jsonObject.nullish(),
});

/** Throws PaymentRefused, and no other error, for anything but base64 JSON of an x402 version 2 payment. */
export function decodePayment(header: string): Credential {
  if (header.length > MAX_HEADER_CHARS) throw unreadable(`is longer than ${MAX_HEADER_CHARS} characters`);
  if (header.length % 4 !== 0 || !BASE64.test(header)) throw unreadable('is not base64');
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  } catch {
    throw unreadable('is base64, but not JSON');
  }
  const parsed = envelope.safeParse(json);
  if (parsed.success) {
    const { accepted, payload, extensions } = parsed.data;
    return { protocol: 'x402', accepted, payload, identifier: () => identifierIn(extensions) };
  }
  const version = (json as { x402Version?: unknown } | null)?.x402Version;
  if (version === 2)
    throw unreadable(`lacks or misspells ${parsed.error.issues.map(({ path }) => path[0]).join(' and ')}`);
  throw new PaymentRefused('invalid_x402_version');
}

function unreadable(what: string): PaymentRefused {
  const detail =
    `PAYMENT-SIGNATURE ${what}. Send the base64 of ` +
    '{ "x402Version": 2, "accepted": an entry of accepts, "payload": what you signed or paid }.';
  return new PaymentRefused('invalid_payload', { detail });
}

export function encodeHeader(value: unknown): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64');
}

/** Longer URLs lose their query, so that the header stays far below what proxies accept (4-8 KiB). */
const MAX_RESOURCE_URL = 1024;

// Everything but the resource URL and the error is serialised once. `accepts`: entries for one buyer instead.
function createChallenge(
  endpoint: Endpoint<never>,
  accepts: readonly PaymentRequirements[],
  publicOrigin: string,
): (target: string, error?: string, accepts?: readonly PaymentRequirements[]) => string {
  const extensions = JSON.stringify({ ...IDENTIFIER_EXTENSION, ...bazaarExtension(endpoint) });
  const about = `,"description":${JSON.stringify(endpoint.summary)},"mimeType":"application/json"}`;
  const tailFor = (entries: readonly PaymentRequirements[]) =>
    Buffer.from(`${about},"accepts":${JSON.stringify(entries)},"extensions":${extensions}}`, 'utf8').toString('base64');
  const prepared = tailFor(accepts);
  const listed = listedPath(endpoint);

  function challenge(target: string, error = 'Payment required', tail = prepared): string {
    const url = resourceUrl(publicOrigin, listed, target);
    const head = `{"x402Version":2,"error":${JSON.stringify(error)},"resource":{"url":${JSON.stringify(url)}`;
    // Spaces before a comma mean nothing in JSON. They make the head's base64 end without padding, before the tail.
    const blanks = '  '.slice(0, (3 - (Buffer.byteLength(head) % 3)) % 3);
    return Buffer.from(head + blanks, 'utf8').toString('base64') + tail;
  }

  const plain = challenge(listed);
  return (target, error, entries) => {
    if (entries) return challenge(target, error, tailFor(entries));
    return error === undefined && target === listed ? plain : challenge(target, error);
  };
}

/** Neither a Host header nor an absolute-form target changes the origin. */
function resourceUrl(origin: string, listed: string, target: string): string {
  const path = pathAndQuery(target) ?? listed;
  if (path.length <= MAX_RESOURCE_URL) return `${origin}${path}`;
  return `${origin}${path.split('?', 1)[0]?.slice(0, MAX_RESOURCE_URL) ?? listed}`;
}

/** The body repeats the header's JSON for people and tools that do not read headers. */
interface QuotedChallenge {
  readonly header: string;
  readonly body: string;
}

/** The 402 of a quote. `quote` is null when none could be made after a refusal; `accepts` is then empty. */
export function quotedChallenge(
  { endpoint, url, hint }: QuoteSubject,
  quote: Quote | null,
  error = 'Payment required',
): QuotedChallenge {
  const json = {
    x402Version: 2,
    error,
    resource: { url, description: `${endpoint.summary} ${hint}`, mimeType: 'application/json' },
    accepts: quote ? [quote.requirement] : [],
    extensions: bazaarExtension(endpoint),
  };
  const priceUsd = quote?.priceUsd ?? endpoint.price?.usd ?? null;
  return { header: encodeHeader(json), body: JSON.stringify({ ...json, priceUsd, btcUsd: quote?.btcUsd ?? null }) };
}

const EXTENSION = 'payment-identifier';
/** x402's: 16 to 128 characters that only the buyer knows. */
const IDENTIFIER = /^[A-Za-z0-9_-]{16,128}$/;

/** Stock clients send an identifier only to a seller that declares this. Every 402 has the schema, so it is short. */
export const IDENTIFIER_EXTENSION = {
  [EXTENSION]: { info: { required: false }, schema: { properties: { id: { pattern: '^[\\w-]{16,128}$' } } } },
};

/** Throws BadParameter (400) for a malformed one: a buyer that relies on it would be charged twice. */
export function identifierIn(extensions: Readonly<Record<string, unknown>> | null | undefined): Identifier | null {
  const extension = extensions?.[EXTENSION] ?? null;
  if (extension === null) return null;
  const { info } = extension as { info?: unknown };
  if (typeof info !== 'object' || info === null) throw malformed('info', 'must be an object');
  const { id } = info as { id?: unknown };
  if (id === undefined) return null;
  if (typeof id !== 'string' || !IDENTIFIER.test(id)) {
    throw malformed('info.id', 'must be 16 to 128 letters, digits, hyphens and underscores');
  }
  return { hash: createHash('sha256').update(id).digest(), isSingleUse: false };
}

function malformed(path: string, message: string): BadParameter {
  return new BadParameter([{ path: `extensions.${EXTENSION}.${path}`, message }], 'payment_identifier_malformed');
}
