import { hash } from 'node:crypto';
import type { PaymentRequirements } from '@x402/core/types';
import { bytesToHex } from '../../lib/hex.ts';
import type { Authorization } from '../authorization.ts';
import { PaymentRefused } from '../refusal.ts';
import { EXPIRED } from '../settler.ts';
import { addressWord, typedDigest, typeHash, word } from './eip712.ts';

/**
 * How long clients may sign for, in seconds: 7 days and 100 seconds, for both rails, because Circle's batched payments require it. A 402 names it, and
 * so does a request to a remote settler.
 */
export const MAX_TIMEOUT_SECONDS = 604_900;

/**
 * Longest validity, in seconds, of an authorization that is given to a third party. It is what clients sign for, plus ten minutes for differing
 * clocks. A settlement without evidence stays unknown until its authorization expires.
 */
export const MOST_VALIDITY_SECONDS = MAX_TIMEOUT_SECONDS + 600;

/** Seconds added to the longest handler and settlement: the SDK's own margin (@x402/evm 2.27 `verify`). */
const MARGIN_SECONDS = 6;

/** ERC-6492's magic suffix. It marks the signature of a wallet that is not deployed yet. */
const ERC6492_SUFFIX = '6492'.repeat(16);

/**
 * Seconds for which a presented authorization must still be valid: a handler and a settlement may take their whole time. An authorization that
 * expires before it is mined would only cost gas. The parameters are in milliseconds.
 */
export function neededValidity({ handlerTimeoutMs, settleWaitMs }: ServingTimes): number {
  return Math.ceil((handlerTimeoutMs + settleWaitMs) / 1000) + MARGIN_SECONDS;
}

/** How long a handler may run, and how long a settlement is awaited. */
export interface ServingTimes {
  readonly handlerTimeoutMs: number;
  readonly settleWaitMs: number;
}

/** How long an authorization must, and may, be valid from now on, in seconds. */
export interface ValidityBounds {
  readonly least: number;
  /** Infinite where there is no upper bound. */
  readonly most: number;
}

/**
 * Makes the checks that need no chain and no cryptography. Throws PaymentRefused with the reason of the first check that fails. `now` in Unix
 * seconds.
 */
export function checkAuthorization(
  authorization: Authorization,
  requirement: PaymentRequirements,
  now: number,
  { least, most }: ValidityBounds,
): void {
  const seconds = BigInt(now);
  // 1. The recipient is ours.
  if (bytesToHex(authorization.to) !== requirement.payTo.toLowerCase()) {
    throw new PaymentRefused('invalid_exact_evm_recipient_mismatch');
  }
  // 2. Exactly the price.
  if (authorization.value !== BigInt(requirement.amount)) {
    throw new PaymentRefused('invalid_exact_evm_payload_authorization_value_mismatch');
  }
  // 3. It is valid now (the contract requires `validAfter` strictly before now), valid long enough to be mined, and not valid for longer than its
  // outcome may be awaited.
  if (authorization.validAfter >= seconds) {
    throw new PaymentRefused('invalid_exact_evm_payload_authorization_valid_after');
  }
  const left = authorization.validBefore - seconds;
  if (left < BigInt(least) || (most !== Number.POSITIVE_INFINITY && left > BigInt(most))) {
    throw new PaymentRefused(EXPIRED, { detail: wrongValidity(left, least, most) });
  }
  // 4. A wallet that we would have to pay to deploy is refused with a reason of its own.
  if (bytesToHex(authorization.signature).endsWith(ERC6492_SUFFIX))
    throw new PaymentRefused('eip6492_factory_not_allowed');
}

/** Says why a validity of `left` seconds is refused. */
function wrongValidity(left: bigint, least: number, most: number): string {
  if (left <= 0n) return 'The authorization has expired. Sign a new one.';
  return left < BigInt(least)
    ? `The authorization expires too soon to be settled. Sign a new one that is valid for at least ${least} seconds more.`
    : `The authorization is valid for too long. Sign a new one that is valid for at most ${most} seconds.`;
}

/**
 * SHA-256 over the contract, the six signed fields and the signature. Another amount, recipient, time or signature under the same nonce makes another
 * authorization.
 */
export function hashAuthorization(authorization: Authorization, contract: Uint8Array): Uint8Array {
  const { from, to, value, validAfter, validBefore, nonce, signature } = authorization;
  const fields = [contract, from, to, word(value), word(validAfter), word(validBefore), nonce];
  return hash('sha256', Buffer.concat([...fields, signature]), 'buffer');
}

const TRANSFER_TYPEHASH = typeHash(
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
);

/** The digest that the payer signed (EIP-712 over EIP-3009's struct). The domain separator is computed once, at start. */
export function authorizationDigest(authorization: Authorization, separator: Uint8Array): Uint8Array {
  return digestOfType(TRANSFER_TYPEHASH, authorization, separator);
}

const RECEIVE_TYPEHASH = typeHash(
  'ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
);

/** The digest of an authorization that only its recipient may use (`receiveWithAuthorization`). */
export function receiveDigest(authorization: Authorization, separator: Uint8Array): Uint8Array {
  return digestOfType(RECEIVE_TYPEHASH, authorization, separator);
}

function digestOfType(type: Uint8Array, authorization: Authorization, separator: Uint8Array): Uint8Array {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const times = [word(validAfter), word(validBefore)];
  return typedDigest(separator, [type, addressWord(from), addressWord(to), word(value), ...times, nonce]);
}
