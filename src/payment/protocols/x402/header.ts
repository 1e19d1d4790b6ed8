import { z } from 'zod';
import type { Credential } from '../../protocol.ts';
import { PaymentRefused } from '../../refusal.ts';

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

/** Reads a PAYMENT-SIGNATURE header. Throws PaymentRefused for anything but base64 JSON of an x402 version 2 payment. Throws no other error. */
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
    return { protocol: 'x402', accepted, payload, ...(extensions !== undefined && { extensions }) };
  }
  const version = (json as { x402Version?: unknown } | null)?.x402Version;
  if (version === 2)
    throw unreadable(`lacks or misspells ${parsed.error.issues.map(({ path }) => path[0]).join(' and ')}`);
  throw new PaymentRefused('invalid_x402_version');
}

function unreadable(what: string): PaymentRefused {
  const detail = `PAYMENT-SIGNATURE ${what}. Send the base64 of { "x402Version": 2, "accepted": an entry of accepts, "payload": what you signed or paid }.`;
  return new PaymentRefused('invalid_payload', { detail });
}

/** Encodes a JSON value in base64, as in every x402 header. */
export function encodeHeader(value: unknown): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64');
}
