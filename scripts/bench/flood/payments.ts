import { randomBytes } from 'node:crypto';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { addressOf, signRecoverable } from '../../../src/lib/secp256k1.ts';
import { authorizationDigest } from '../../../src/payment/usdc/authorization.ts';
import { domainSeparator } from '../../../src/payment/usdc/token.ts';
import type { Challenge } from './ask.ts';

/** One way to pay in USDC, as a 402 offers it. */
export interface Requirement {
  readonly scheme: string;
  readonly network: string;
  readonly asset: string;
  readonly amount: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  /** The EIP-712 domain to sign under; its contract is the asset where none is named. */
  readonly extra: { readonly name: string; readonly version: string; readonly verifyingContract?: string };
}

/** Which of the offered ways is meant. */
export type UsdcRail = 'plain' | 'gateway';

const GATEWAY_NAME = 'GatewayWalletBatched';

/** The offered way of this rail; throws where it is not offered. */
export function requirementOf({ accepts }: Challenge, rail: UsdcRail): Requirement {
  const offered = accepts as readonly Requirement[];
  const found = offered.find(({ extra }) => (extra.name === GATEWAY_NAME) === (rail === 'gateway'));
  if (!found) throw new Error(`the 402 offers no ${rail} payment`);
  return found;
}

/** A PAYMENT-SIGNATURE value with a fresh nonce that this key really signed. */
export function signedPayment(requirement: Requirement, privateKey: Uint8Array): string {
  const { network, asset, extra } = requirement;
  const fields = freshFields(requirement, hexToBytes(addressOf(privateKey)));
  const contract = hexToBytes(extra.verifyingContract ?? asset);
  const separator = domainSeparator(extra.name, extra.version, Number(network.split(':')[1]), contract);
  const digest = authorizationDigest({ ...fields, signature: new Uint8Array() }, separator);
  return headerOf(requirement, fields, signRecoverable(digest, privateKey));
}

/** The same for any account: the terms are right, the signature is 65 random bytes. */
export function claimedPayment(requirement: Requirement, from: Uint8Array): string {
  return headerOf(requirement, freshFields(requirement, from), randomBytes(65));
}

type Fields = ReturnType<typeof freshFields>;

function freshFields({ amount, payTo, maxTimeoutSeconds }: Requirement, from: Uint8Array) {
  return {
    from,
    to: hexToBytes(payTo),
    value: BigInt(amount),
    validAfter: 0n,
    validBefore: BigInt(Math.floor(Date.now() / 1000) + maxTimeoutSeconds),
    nonce: randomBytes(32),
  };
}

function headerOf(accepted: Requirement, { from, to, value, validBefore, nonce }: Fields, signature: Uint8Array) {
  const authorization = {
    from: bytesToHex(from),
    to: bytesToHex(to),
    value: String(value),
    validAfter: '0',
    validBefore: String(validBefore),
    nonce: bytesToHex(nonce),
  };
  const payload = { signature: bytesToHex(signature), authorization };
  return Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload })).toString('base64');
}
