import { z } from 'zod';
import { hexToBytes } from '../../lib/hex.ts';
import type { Authorization } from '../authorization.ts';
import type { Credential } from '../protocol.ts';
import type { SignedPayment } from '../rail.ts';
import { PaymentRefused } from '../refusal.ts';
import { hashAuthorization } from './eip3009.ts';

const MAX_UINT256 = 2n ** 256n - 1n;
const uint256 = z
  .string()
  .regex(/^\d{1,78}$/)
  .transform(BigInt)
  .refine((value) => value <= MAX_UINT256);
const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/);

const eip3009 = z.object({
  // Up to 4,096 bytes, enough for a smart wallet. A plain account's signature has 65 bytes.
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

/** Decodes the EIP-3009 authorization of a payment. Throws PaymentRefused with `unsupported_payload_type` for other kinds of payment. */
export function decodeEip3009(payload: Credential['payload']): Authorization {
  const parsed = eip3009.safeParse(payload);
  if (!parsed.success)
    throw 'authorization' in payload ? misspelt(parsed.error.issues) : new PaymentRefused('unsupported_payload_type');
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

function misspelt(issues: readonly { path: PropertyKey[] }[]): PaymentRefused {
  const members = [...new Set(issues.map(({ path }) => ['payload', ...path.map(String)].join('.')))];
  const detail = `The payload lacks or misspells ${members.join(', ')}. Write addresses, nonce and signature as hex with 0x, and numbers as decimal strings.`;
  return new PaymentRefused('invalid_payload', { detail });
}

/**
 * Decodes the authorization of a payment and adds its hash, which differs for every other authorization for this contract. Throws as `decodeEip3009`
 * does.
 */
export function readSigned(payload: Credential['payload'], contract: Uint8Array): SignedPayment {
  const authorization = decodeEip3009(payload);
  return { kind: 'signed', authorization, authorizationHash: hashAuthorization(authorization, contract) };
}
