import { keccak256 } from '../../lib/secp256k1.ts';

const utf8 = (text: string): Uint8Array => Buffer.from(text, 'utf8');
const PREFIX = Buffer.from([0x19, 0x01]);

/** A struct's type hash (EIP-712), from its type written out. */
export function typeHash(type: string): Uint8Array {
  return keccak256(utf8(type));
}

/** A string member as 32 bytes: its hash. */
export function stringWord(text: string): Uint8Array {
  return keccak256(utf8(text));
}

const DOMAIN_TYPEHASH = typeHash('EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)');
const OFF_CHAIN_DOMAIN_TYPEHASH = typeHash('EIP712Domain(string name,string version,uint256 chainId)');

/** A uint256 as 32 bytes. */
export function word(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
}

/** An address as 32 bytes. */
export function addressWord(address: Uint8Array): Buffer {
  return Buffer.concat([Buffer.alloc(12), address]);
}

/** The domain separator of a contract whose domain has a name, a version, a chain and itself. */
export function domainSeparator(name: string, version: string, chainId: number, contract: Uint8Array): Uint8Array {
  const members = [stringWord(name), stringWord(version), word(BigInt(chainId)), addressWord(contract)];
  return keccak256(Buffer.concat([DOMAIN_TYPEHASH, ...members]));
}

/** The domain separator of messages that no contract checks: a name, a version and a chain. */
export function offChainSeparator(name: string, version: string, chainId: number): Uint8Array {
  const members = [stringWord(name), stringWord(version), word(BigInt(chainId))];
  return keccak256(Buffer.concat([OFF_CHAIN_DOMAIN_TYPEHASH, ...members]));
}

/** The digest of a struct under a domain: `struct` is its type hash and then each member as 32 bytes. */
export function typedDigest(separator: Uint8Array, struct: readonly Uint8Array[]): Uint8Array {
  return keccak256(Buffer.concat([PREFIX, separator, keccak256(Buffer.concat(struct))]));
}
