import { encodeFunctionData, parseAbi, toFunctionSelector } from 'viem/utils';
import { bytesToHex } from '../../lib/hex.ts';
import type { Authorization } from '../authorization.ts';
import { bytesWords, word } from './abi-words.ts';

const abi = parseAbi([
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function balanceOf(address account) view returns (uint256)',
  'function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)',
  'function transfer(address to, uint256 value) returns (bool)',
]);

/** The name and version of the USDC contract's EIP-712 domain on Arc ("USDC", not "USD Coin"). The other members are the chain and the contract. */
export const USDC_DOMAIN = { name: 'USDC', version: '2' } as const;

/** Calldata that asks the contract for its own domain separator, which the service compares with ours. */
export const DOMAIN_SEPARATOR_CALLDATA = '0x3644e515';

/** keccak256 of `AuthorizationUsed(address,bytes32)` (EIP-3009). */
export const AUTHORIZATION_USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';
/** keccak256 of `AuthorizationCanceled(address,bytes32)` (EIP-3009). */
export const AUTHORIZATION_CANCELED = '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81';
/** keccak256 of `Transfer(address,address,uint256)` (ERC-20). */
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/**
 * Gas limit of a lone settlement. A plain account's uses about 0.11M on Arc (facts of the live chain). The rest is for a smart wallet's signature
 * check. Only used gas is paid for.
 */
export const SETTLE_GAS = 300_000n;

const TERMS = 'address,address,uint256,uint256,uint256,bytes32';
const TRANSFER_BY_PARTS = toFunctionSelector(`transferWithAuthorization(${TERMS},uint8,bytes32,bytes32)`);
const TRANSFER_BY_BYTES = toFunctionSelector(`transferWithAuthorization(${TERMS},bytes)`);

/**
 * Calldata that moves the money. FiatToken v2.2 joins (v, r, s) to the same bytes, so the form follows from the signature's length alone. It is
 * written word by word: a library's encoder takes a tenth of a millisecond, and each payment needs it twice.
 */
export function transferCalldata(authorization: Authorization): `0x${string}` {
  const { from, to, value, validAfter, validBefore, nonce, signature } = authorization;
  const terms = [from, to, value, validAfter, validBefore, nonce].map(word).join('');
  if (signature.length !== 65) return `${TRANSFER_BY_BYTES}${terms}${word(7n * 32n)}${bytesWords(signature)}`;
  const parts = [signature.subarray(64), signature.subarray(0, 32), signature.subarray(32, 64)];
  return `${TRANSFER_BY_PARTS}${terms}${parts.map(word).join('')}`;
}

export function authorizationStateCalldata(from: Uint8Array, nonce: Uint8Array): `0x${string}` {
  return encodeFunctionData({ abi, functionName: 'authorizationState', args: [bytesToHex(from), bytesToHex(nonce)] });
}

/** A transfer of zero. It succeeds when the token lets its sender pay the recipient. */
export function zeroTransferCalldata(to: Uint8Array): `0x${string}` {
  return encodeFunctionData({ abi, functionName: 'transfer', args: [bytesToHex(to), 0n] });
}

export function balanceOfCalldata(account: Uint8Array): `0x${string}` {
  return encodeFunctionData({ abi, functionName: 'balanceOf', args: [bytesToHex(account)] });
}

export function isValidSignatureCalldata(digest: Uint8Array, signature: Uint8Array): `0x${string}` {
  return encodeFunctionData({
    abi,
    functionName: 'isValidSignature',
    args: [bytesToHex(digest), bytesToHex(signature)],
  });
}
