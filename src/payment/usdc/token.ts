import { encodeFunctionData, parseAbi, toFunctionSelector } from 'viem/utils';
import { bytesToHex } from '../../lib/hex.ts';
import { keccak256 } from '../../lib/secp256k1.ts';
import type { Authorization } from '../settler.ts';

// What the token's contract takes and logs, written as bytes: calldata, words, and EIP-712 digests.

const abi = parseAbi([
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function balanceOf(address account) view returns (uint256)',
  'function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)',
  'function transfer(address to, uint256 value) returns (bool)',
]);

/** The EIP-712 name and version of USDC on Arc (not "USD Coin"). The other members are the chain and the contract. */
export const USDC_DOMAIN = { name: 'USDC', version: '2' } as const;

/** Multicall3, at the same address on Arc as on other chains. */
export const MULTICALL3 = '0xca11bde05977b3631167028862be2a173976ca11';

/** Asks the contract for its own domain separator, which the service compares with ours. */
export const DOMAIN_SEPARATOR_CALLDATA = '0x3644e515';

/** keccak256 of `AuthorizationUsed(address,bytes32)` (EIP-3009). */
export const AUTHORIZATION_USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';
/** keccak256 of `AuthorizationCanceled(address,bytes32)` (EIP-3009). */
export const AUTHORIZATION_CANCELED = '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81';
/** keccak256 of `Transfer(address,address,uint256)` (ERC-20). */
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** Gas limit of a lone settlement: 0.11M on Arc (facts of the live chain), the rest for a smart wallet's signature. */
export const SETTLE_GAS = 300_000n;

const TERMS = 'address,address,uint256,uint256,uint256,bytes32';
const TRANSFER_BY_PARTS = toFunctionSelector(`transferWithAuthorization(${TERMS},uint8,bytes32,bytes32)`);
const TRANSFER_BY_BYTES = toFunctionSelector(`transferWithAuthorization(${TERMS},bytes)`);

/** FiatToken v2.2 joins (v, r, s), so the length decides the form. Word by word: a library's encoder takes 0.1 ms. */
export function transferCalldata(authorization: Authorization): `0x${string}` {
  const { from, to, value, validAfter, validBefore, nonce, signature } = authorization;
  const terms = [from, to, value, validAfter, validBefore, nonce].map(hexWord).join('');
  if (signature.length !== 65) return `${TRANSFER_BY_BYTES}${terms}${hexWord(7n * 32n)}${bytesWords(signature)}`;
  const parts = [signature.subarray(64), signature.subarray(0, 32), signature.subarray(32, 64)];
  return `${TRANSFER_BY_PARTS}${terms}${parts.map(hexWord).join('')}`;
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

// Solidity's ABI as hex text without `0x`, in words of 32 bytes.

/** A number, an address or at most 32 bytes, padded with zeros on the left. */
export function hexWord(value: bigint | Uint8Array): string {
  return (typeof value === 'bigint' ? value.toString(16) : hexOf(value)).padStart(64, '0');
}

/** Bytes of any length: their number, then the bytes, padded with zeros on the right. */
export function bytesWords(bytes: Uint8Array): string {
  return hexWord(BigInt(bytes.length)) + hexOf(bytes).padEnd(64 * Math.ceil(bytes.length / 32), '0');
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

/** An address or 32 bytes. */
export const topicOf = (bytes: Uint8Array): `0x${string}` => `0x${hexWord(bytes)}`;

const utf8 = (text: string): Uint8Array => Buffer.from(text, 'utf8');
const PREFIX = Buffer.from([0x19, 0x01]);

export function typeHash(type: string): Uint8Array {
  return keccak256(utf8(type));
}

export function stringWord(text: string): Uint8Array {
  return keccak256(utf8(text));
}

const DOMAIN_TYPEHASH = typeHash('EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)');
const OFF_CHAIN_DOMAIN_TYPEHASH = typeHash('EIP712Domain(string name,string version,uint256 chainId)');

export function word(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
}

export function addressWord(address: Uint8Array): Buffer {
  return Buffer.concat([Buffer.alloc(12), address]);
}

export function domainSeparator(name: string, version: string, chainId: number, contract: Uint8Array): Uint8Array {
  const members = [stringWord(name), stringWord(version), word(BigInt(chainId)), addressWord(contract)];
  return keccak256(Buffer.concat([DOMAIN_TYPEHASH, ...members]));
}

/** The domain separator of messages that no contract checks. */
export function offChainSeparator(name: string, version: string, chainId: number): Uint8Array {
  const members = [stringWord(name), stringWord(version), word(BigInt(chainId))];
  return keccak256(Buffer.concat([OFF_CHAIN_DOMAIN_TYPEHASH, ...members]));
}

/** `struct`: its type hash, then each member as 32 bytes. */
export function typedDigest(separator: Uint8Array, struct: readonly Uint8Array[]): Uint8Array {
  return keccak256(Buffer.concat([PREFIX, separator, keccak256(Buffer.concat(struct))]));
}

/** Payers sign for the Gateway Wallet under it. Its name tells the Gateway's entries from the token's own. */
export const GATEWAY_DOMAIN = { name: 'GatewayWalletBatched', version: '1' } as const;
