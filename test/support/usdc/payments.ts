import { randomBytes } from 'node:crypto';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { addressOf, signRecoverable } from '../../../src/lib/secp256k1.ts';
import type { SignedPayment } from '../../../src/payment/rail.ts';
import type { Authorization } from '../../../src/payment/settler.ts';
import { authorizationDigest, hashAuthorization } from '../../../src/payment/usdc/authorization.ts';
import { domainSeparator } from '../../../src/payment/usdc/token.ts';

/** A new key of a buyer. */
export function newKey(): { privateKey: Buffer; address: `0x${string}` } {
  const privateKey = randomBytes(32);
  return { privateKey, address: addressOf(privateKey) };
}

export const USDC = '0x3600000000000000000000000000000000000000' as const;

/** A requirement as a 402 carries it. */
export interface Requirement {
  scheme: string;
  network: string;
  amount: string;
  asset: string;
  payTo: string;
  maxTimeoutSeconds: number;
  extra: Record<string, unknown>;
}

/** The plain entry of a 402 as the service makes it, over 1000 base units of USDC on chain 5042. */
export function plainRequirement(payTo: string): Requirement & { network: 'eip155:5042' } {
  return {
    scheme: 'exact',
    network: 'eip155:5042',
    amount: '1000',
    asset: USDC,
    payTo,
    maxTimeoutSeconds: 604_900,
    extra: { name: 'USDC', version: '2', assetTransferMethod: 'eip3009', decimals: 6 },
  };
}

interface Overrides {
  value?: bigint;
  to?: string;
  validAfter?: bigint;
  validBefore?: bigint;
  nonce?: Uint8Array;
  chainId?: number;
}

/** Signs an authorization for a requirement with our own code. Conformance tests compare it with the official client's. */
export function signAuthorization(
  privateKey: Uint8Array,
  requirement: Requirement,
  overrides: Overrides = {},
): Authorization {
  const now = BigInt(Math.floor(Date.now() / 1000));
  const unsigned = {
    from: hexToBytes(addressOf(privateKey)),
    to: hexToBytes(overrides.to ?? requirement.payTo),
    value: overrides.value ?? BigInt(requirement.amount),
    validAfter: overrides.validAfter ?? 0n,
    validBefore: overrides.validBefore ?? now + BigInt(requirement.maxTimeoutSeconds),
    nonce: overrides.nonce ?? randomBytes(32),
    signature: new Uint8Array(),
  };
  const chainId = overrides.chainId ?? Number(requirement.network.split(':')[1]);
  const separator = domainSeparator('USDC', '2', chainId, hexToBytes(requirement.asset));
  return { ...unsigned, signature: signRecoverable(authorizationDigest(unsigned, separator), privateKey) };
}

/** The x402 payload of an authorization, as a client sends it. */
export function payloadOf(
  authorization: Authorization,
  requirement: Requirement,
  extensions?: object,
): Record<string, unknown> {
  const { from, to, value, validAfter, validBefore, nonce, signature } = authorization;
  return {
    x402Version: 2,
    accepted: requirement,
    payload: {
      signature: bytesToHex(signature),
      authorization: {
        from: bytesToHex(from),
        to: bytesToHex(to),
        value: String(value),
        validAfter: String(validAfter),
        validBefore: String(validBefore),
        nonce: bytesToHex(nonce),
      },
    },
    ...(extensions && { extensions }),
  };
}

/** A PAYMENT-SIGNATURE header value. */
export function headerOf(payload: unknown): string {
  return Buffer.from(JSON.stringify(payload)).toString('base64');
}

/** The requirement of a 402. */
export function requirementOf(headers: Headers | Record<string, unknown>): Requirement {
  const value = headers instanceof Headers ? headers.get('payment-required') : String(headers['payment-required']);
  const challenge = JSON.parse(Buffer.from(String(value), 'base64').toString('utf8')) as { accepts: Requirement[] };
  return challenge.accepts[0] as Requirement;
}

/** An authorization as a rail reads it from a payload. `contract`: what it was signed for. */
export function signedPayment(authorization: Authorization, contract: `0x${string}` = USDC): SignedPayment {
  const authorizationHash = hashAuthorization(authorization, hexToBytes(contract));
  return { authorization, authorizationHash };
}
