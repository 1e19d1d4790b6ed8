import { createKeccak } from 'hash-wasm';
import secp256k1 from 'secp256k1';
import { noteSigner, recoverKey } from './recovered-keys.ts';

// The world's own cryptography: what the service computes must not be checked with the service's code.

export type Hex = `0x${string}`;

const hasher = await createKeccak(256);

export const keccak = (bytes: Uint8Array): Buffer => Buffer.from(hasher.init().update(bytes).digest('binary'));
export const toHex = (bytes: Uint8Array): Hex =>
  `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`;
export const fromHex = (hex: string): Buffer => Buffer.from(hex.slice(2), 'hex');

/** A key pair; the address in lower case. */
export interface Account {
  readonly privateKey: Buffer;
  /** 65 bytes. */
  readonly publicKey: Uint8Array;
  readonly address: Hex;
}

const addressOf = (publicKey: Uint8Array): Hex => toHex(keccak(publicKey.subarray(1)).subarray(12));

export function accountOf(privateKey: Buffer): Account {
  const publicKey = secp256k1.publicKeyCreate(privateKey, false);
  return { privateKey, publicKey, address: addressOf(publicKey) };
}

/** 65 bytes: r, s and v of 27 or 28. */
export function signDigest(digest: Uint8Array, { privateKey, publicKey }: Account): Buffer {
  const { signature, recid } = secp256k1.ecdsaSign(digest, privateKey);
  noteSigner(signature, recid, digest, publicKey);
  return Buffer.concat([signature, Buffer.from([27 + recid])]);
}

const HALF_ORDER = Buffer.from('7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0', 'hex');

/** The address that signed; null for what FiatToken's ECRecover refuses. */
export function signerOf(digest: Uint8Array, signature: Uint8Array): Hex | null {
  const v = signature[64] ?? 0;
  if (signature.length !== 65 || (v !== 27 && v !== 28)) return null;
  if (HALF_ORDER.compare(signature, 32, 64) < 0) return null;
  return recover(digest, signature.subarray(0, 64), v - 27);
}

/** The same for a transaction's parts. */
export function recover(digest: Uint8Array, compact: Uint8Array, recovery: number): Hex | null {
  try {
    return addressOf(recoverKey(compact, recovery, digest, false));
  } catch {
    return null;
  }
}

const ORDER = BigInt('0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141');

/** The other signature that recovers to the same key: a high s. */
export function twinOf(signature: Buffer): Buffer {
  if (signature.length !== 65) return signature;
  const s = ORDER - BigInt(toHex(signature.subarray(32, 64)));
  const v = (signature[64] ?? 27) === 27 ? 28 : 27;
  return Buffer.concat([
    signature.subarray(0, 32),
    Buffer.from(s.toString(16).padStart(64, '0'), 'hex'),
    Buffer.from([v]),
  ]);
}
