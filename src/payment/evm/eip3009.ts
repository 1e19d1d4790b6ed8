import { hash } from 'node:crypto';
import type { PaymentRequirements } from '@x402/core/types';
import { bytesToHex } from '../../lib/hex.ts';
import type { Authorization } from '../authorization.ts';
import { PaymentRefused } from '../refusal.ts';
import { addressWord, typedDigest, typeHash, word } from './eip712.ts';

/** Seconds beyond the longest serving and settling: the SDK's own margin (@x402/evm 2.27 `verify`). */
const MARGIN_SECONDS = 6;

/** ERC-6492's magic suffix: the signature of a wallet that is not deployed yet. */
const ERC6492_SUFFIX = '6492'.repeat(16);

/**
 * Seconds that an authorization must be good for when it is presented: a handler and a settlement may take their whole time, and what has run
 * out before it is mined would only cost gas. Times in milliseconds.
 */
export function neededValidity({ handlerTimeoutMs, settleWaitMs }: ServingTimes): number {
  return Math.ceil((handlerTimeoutMs + settleWaitMs) / 1000) + MARGIN_SECONDS;
}

/** How long a handler may run, and how long a settlement is waited for. */
export interface ServingTimes {
  readonly handlerTimeoutMs: number;
  readonly settleWaitMs: number;
}

/** For how long an authorization must, and may, be valid from now on, in seconds. */
export interface ValidityBounds {
  readonly least: number;
  /** Infinite where nothing bounds it. */
  readonly most: number;
}

/** What needs no chain and no cryptography; the first that fails is the reason. `now` in Unix seconds. */
export function checkAuthorization(
  authorization: Authorization,
  requirement: PaymentRequirements,
  now: number,
  { least, most }: ValidityBounds,
): void {
  const seconds = BigInt(now);
  // 1. Made out to us.
  if (bytesToHex(authorization.to) !== requirement.payTo.toLowerCase()) {
    throw new PaymentRefused('invalid_exact_evm_recipient_mismatch');
  }
  // 2. Exactly the price.
  if (authorization.value !== BigInt(requirement.amount)) {
    throw new PaymentRefused('invalid_exact_evm_payload_authorization_value_mismatch');
  }
  // 3. Valid now (the contract wants strictly later), for long enough to be mined, and not for longer than its outcome may be awaited.
  if (authorization.validAfter >= seconds) {
    throw new PaymentRefused('invalid_exact_evm_payload_authorization_valid_after');
  }
  const left = authorization.validBefore - seconds;
  if (left < BigInt(least) || (most !== Number.POSITIVE_INFINITY && left > BigInt(most))) {
    throw new PaymentRefused('invalid_exact_evm_payload_authorization_valid_before');
  }
  // 4. A wallet that would have to be deployed at our cost is refused by name.
  if (bytesToHex(authorization.signature).endsWith(ERC6492_SUFFIX))
    throw new PaymentRefused('eip6492_factory_not_allowed');
}

/**
 * SHA-256 over all that an authorization is: the contract, the six signed fields and the signature. Another amount, recipient, time or
 * signature under the same nonce makes another authorization.
 */
export function hashAuthorization(authorization: Authorization, contract: Uint8Array): Uint8Array {
  const { from, to, value, validAfter, validBefore, nonce, signature } = authorization;
  const fields = [contract, from, to, word(value), word(validAfter), word(validBefore), nonce];
  return hash('sha256', Buffer.concat([...fields, signature]), 'buffer');
}

const TRANSFER_TYPEHASH = typeHash(
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
);

/** The digest that the payer signed (EIP-712 over EIP-3009's struct); the domain separator is computed once, at start. */
export function authorizationDigest(authorization: Authorization, separator: Uint8Array): Uint8Array {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const times = [word(validAfter), word(validBefore)];
  return typedDigest(separator, [TRANSFER_TYPEHASH, addressWord(from), addressWord(to), word(value), ...times, nonce]);
}
