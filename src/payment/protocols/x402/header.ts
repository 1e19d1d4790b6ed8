import { z } from 'zod';
import { hexToBytes } from '../../../lib/hex.ts';
import type { Authorization } from '../../evm/authorization.ts';
import { PaymentRefused } from '../../refusal.ts';

/** Node refuses header blocks over 16 KiB; a payment of ours takes about 1 KiB. */
const MAX_HEADER_CHARS = 12_288;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

const MAX_UINT256 = 2n ** 256n - 1n;
const uint256 = z
  .string()
  .regex(/^\d{1,78}$/)
  .transform(BigInt)
  .refine((value) => value <= MAX_UINT256);
const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/);

const envelope = z.object({
  x402Version: z.literal(2),
  accepted: z.record(z.string(), z.unknown()),
  payload: z.record(z.string(), z.unknown()),
  extensions: z.record(z.string(), z.unknown()).nullish(),
});

const eip3009 = z.object({
  // At most what a smart wallet could reasonably sign with; an EOA's is 65 bytes.
  signature: z.string().regex(/^0x(?:[0-9a-fA-F]{2}){1,4096}$/),
  authorization: z.object({
    from: address,
    to: address,
    value: uint256,
    validAfter: uint256,
    validBefore: uint256,
    nonce: z.string().regex(/^0x[0-9a-fA-F]{64}$/),
  }),
});

export type Envelope = z.output<typeof envelope>;

/** Reads a PAYMENT-SIGNATURE header; refuses what is not base64 JSON of an x402 version 2 payment. Never throws anything else. */
export function decodePayment(header: string): Envelope {
  if (header.length > MAX_HEADER_CHARS || header.length % 4 !== 0 || !BASE64.test(header)) {
    throw new PaymentRefused('invalid_payload');
  }
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  } catch {
    throw new PaymentRefused('invalid_payload');
  }
  const parsed = envelope.safeParse(json);
  if (parsed.success) return parsed.data;
  const version = (json as { x402Version?: unknown } | null)?.x402Version;
  throw new PaymentRefused(version === 2 ? 'invalid_payload' : 'invalid_x402_version');
}

/** The EIP-3009 authorization of a payment, as bytes and numbers; other ways of paying are refused by name. */
export function decodeEip3009(payload: Envelope['payload']): Authorization {
  const parsed = eip3009.safeParse(payload);
  if (!parsed.success)
    throw new PaymentRefused('authorization' in payload ? 'invalid_payload' : 'unsupported_payload_type');
  const { signature, authorization } = parsed.data;
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const numbers = { value, validAfter, validBefore };
  return {
    ...numbers,
    from: hexToBytes(from),
    to: hexToBytes(to),
    nonce: hexToBytes(nonce),
    signature: hexToBytes(signature),
  };
}

/** Base64 of a JSON value, as every x402 header carries it. */
export function encodeHeader(value: unknown): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64');
}
