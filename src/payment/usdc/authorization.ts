import { hash } from 'node:crypto';
import type { PaymentRequirements } from '@x402/core/types';
import { z } from 'zod';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Accepted, Credential } from '../protocol.ts';
import type { SignedPayment } from '../rail.ts';
import { NOT_OFFERED, PaymentRefused, type RefusalSentences } from '../refusal.ts';
import { type Authorization, EXPIRED } from '../settler.ts';
import { addressWord, typedDigest, typeHash, word } from './token.ts';

// A signed EIP-3009 authorization, without a chain: how it is read, what it must say to be our offer, its hash, and the
// digest that the payer signed. Each refusal has a sentence.

/** Seconds that clients may sign for, on both rails: 7 days and 100 s, as Circle's batched payments require. */
export const MAX_TIMEOUT_SECONDS = 604_900;

/** Longest validity for a third party: 10 minutes more, for clocks. Without evidence it is unknown until it expires. */
export const MOST_VALIDITY_SECONDS = MAX_TIMEOUT_SECONDS + 600;

/** Seconds beyond the longest handler and settlement: the SDK's own margin (@x402/evm 2.27 `verify`). */
const MARGIN_SECONDS = 6;

/** ERC-6492's suffix: the signature of a wallet that is not deployed yet. */
const ERC6492_SUFFIX = '6492'.repeat(16);

/** Seconds that must be left for a whole handler and settlement: one that expires before it is mined only costs gas. */
export function neededValidity({ handlerTimeoutMs, settleWaitMs }: ServingTimes): number {
  return Math.ceil((handlerTimeoutMs + settleWaitMs) / 1000) + MARGIN_SECONDS;
}

export interface ServingTimes {
  readonly handlerTimeoutMs: number;
  readonly settleWaitMs: number;
}

/** Seconds for which an authorization must, and may, be valid from now on. */
export interface ValidityBounds {
  readonly least: number;
  /** Infinite where there is no upper bound. */
  readonly most: number;
}

/** The checks without chain and cryptography. Throws PaymentRefused for the first that fails. `now` in Unix seconds. */
export function checkAuthorization(
  authorization: Authorization,
  requirement: PaymentRequirements,
  now: number,
  { least, most }: ValidityBounds,
): void {
  const seconds = BigInt(now);
  if (bytesToHex(authorization.to) !== requirement.payTo.toLowerCase()) {
    throw new PaymentRefused('invalid_exact_evm_recipient_mismatch');
  }
  if (authorization.value !== BigInt(requirement.amount)) {
    throw new PaymentRefused('invalid_exact_evm_payload_authorization_value_mismatch');
  }
  // `validAfter` strictly before now, as the contract requires; long enough to be mined, not too long to be awaited.
  if (authorization.validAfter >= seconds) {
    throw new PaymentRefused('invalid_exact_evm_payload_authorization_valid_after');
  }
  const left = authorization.validBefore - seconds;
  if (left < BigInt(least) || (most !== Number.POSITIVE_INFINITY && left > BigInt(most))) {
    throw new PaymentRefused(EXPIRED, { detail: wrongValidity(left, least, most) });
  }
  // We would have to pay to deploy such a wallet, so it has a reason of its own.
  if (bytesToHex(authorization.signature).endsWith(ERC6492_SUFFIX))
    throw new PaymentRefused('eip6492_factory_not_allowed');
}

function wrongValidity(left: bigint, least: number, most: number): string {
  if (left <= 0n) return 'The authorization has expired. Sign a new one.';
  return left < BigInt(least)
    ? 'The authorization expires too soon to be settled. ' +
        `Sign a new one that is valid for at least ${least} seconds more.`
    : `The authorization is valid for too long. Sign a new one that is valid for at most ${most} seconds.`;
}

/** SHA-256 over contract, signed fields and signature. Any other one of them makes it another authorization. */
export function hashAuthorization(authorization: Authorization, contract: Uint8Array): Uint8Array {
  const { from, to, value, validAfter, validBefore, nonce, signature } = authorization;
  const fields = [contract, from, to, word(value), word(validAfter), word(validBefore), nonce];
  return hash('sha256', Buffer.concat([...fields, signature]), 'buffer');
}

const TRANSFER_TYPEHASH = typeHash(
  'TransferWithAuthorization' +
    '(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
);

/** What the payer signed (EIP-712 over EIP-3009's struct). The domain separator is computed once, at start. */
export function authorizationDigest(authorization: Authorization, separator: Uint8Array): Uint8Array {
  return digestOfType(TRANSFER_TYPEHASH, authorization, separator);
}

const RECEIVE_TYPEHASH = typeHash(
  'ReceiveWithAuthorization' +
    '(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
);

/** Signed where only the recipient may use it (`receiveWithAuthorization`). */
export function receiveDigest(authorization: Authorization, separator: Uint8Array): Uint8Array {
  return digestOfType(RECEIVE_TYPEHASH, authorization, separator);
}

function digestOfType(type: Uint8Array, authorization: Authorization, separator: Uint8Array): Uint8Array {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const times = [word(validAfter), word(validBefore)];
  return typedDigest(separator, [type, addressWord(from), addressWord(to), word(value), ...times, nonce]);
}

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

/** Throws PaymentRefused with `unsupported_payload_type` for other kinds of payment. */
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
  const detail =
    `The payload lacks or misspells ${members.join(', ')}. ` +
    'Write addresses, nonce and signature as hex with 0x, and numbers as decimal strings.';
  return new PaymentRefused('invalid_payload', { detail });
}

/** Adds the hash, which differs for every other authorization for this contract. Throws as `decodeEip3009` does. */
export function readSigned(payload: Credential['payload'], contract: Uint8Array): SignedPayment {
  const authorization = decodeEip3009(payload);
  return { authorization, authorizationHash: hashAuthorization(authorization, contract) };
}

const SAME = ['scheme', 'network', 'amount', 'maxTimeoutSeconds'] as const;
const SAME_ADDRESS = ['asset', 'payTo'] as const;
/** Members of `extra` that change no term. Offers of earlier versions lack them, and are still paid. */
const MAY_LACK: ReadonlySet<string> = new Set(['decimals']);

/** Throws PaymentRefused when `accepted` is not our requirement. A client may add to `extra` but may not change it. */
export function checkAccepted(accepted: Accepted, requirement: PaymentRequirements): void {
  const { network } = requirement;
  if (accepted.network !== network && typeof accepted.network === 'string') {
    const detail = `The payment is for another network. Sign for ${network}, the network of the entries of accepts.`;
    throw new PaymentRefused('invalid_exact_evm_network_mismatch', { detail });
  }
  const extra = (accepted.extra ?? {}) as Record<string, unknown>;
  const holds = ([key, value]: [string, unknown]): boolean =>
    extra[key] === value || (MAY_LACK.has(key) && extra[key] === undefined);
  const extraHolds = typeof extra === 'object' && Object.entries(requirement.extra).every(holds);
  const differing = [
    ...SAME.filter((key) => accepted[key] !== requirement[key]),
    ...SAME_ADDRESS.filter((key) => lower(accepted[key]) !== lower(requirement[key])),
    ...(extraHolds ? [] : ['extra']),
  ];
  if (differing.length > 0) throw new PaymentRefused(NOT_OFFERED, { detail: otherTerms(differing) });
}

function otherTerms(differing: readonly string[]): string {
  return (
    `The accepted terms differ from the offered ones in ${differing.join(', ')}. ` +
    'Send back an entry of accepts unchanged, and sign for it.'
  );
}

function lower(value: unknown): unknown {
  return typeof value === 'string' ? value.toLowerCase() : value;
}

export const EVM_REFUSALS: RefusalSentences = {
  invalid_exact_evm_network_mismatch:
    'The payment is for another network. Sign for the network of an entry of accepts.',
  'No matching payment requirements':
    'The accepted terms are none of those that are offered. Send back one of the entries of accepts unchanged.',
  invalid_exact_evm_recipient_mismatch:
    'The authorization pays another recipient. Sign it with the entry’s payTo as its recipient.',
  invalid_exact_evm_payload_authorization_value_mismatch:
    'The authorization is for another amount. Sign it for exactly the amount of the entry.',
  invalid_exact_evm_payload_authorization_valid_after:
    'The authorization is not valid yet. Sign it with a validAfter in the past, such as 0.',
  invalid_exact_evm_payload_authorization_valid_before:
    'The authorization has expired, or is not valid for as long as the entry says. Sign a new one.',
  invalid_exact_evm_signature:
    'The signature is not the payer’s over this authorization. Sign with the key of `from`, in the EIP-712 domain of ' +
    'the entry: its extra.name, extra.version and asset, on its chain.',
  eip6492_factory_not_allowed:
    'The payer’s wallet is not deployed yet, and its signature cannot be checked. ' +
    'Deploy the wallet first, or pay from another one.',
  invalid_exact_evm_insufficient_balance:
    'The payer holds too little USDC for this call and its other open payments. ' +
    'Fund the wallet, or pay from another one.',
  invalid_exact_evm_nonce_already_used:
    'The nonce of this authorization is already used, or it was cancelled. Sign a new one with another nonce.',
  invalid_exact_evm_transaction_simulation_failed:
    'The payer’s account would not let this authorization move the money. Check the wallet, or pay from another one.',
  invalid_exact_evm_transaction_failed:
    'The settlement moved no money, but a third party may send the authorization until it expires. ' +
    'Present the same payment again before you sign another.',
};
