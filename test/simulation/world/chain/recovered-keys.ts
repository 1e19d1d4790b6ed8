import secp256k1 from 'secp256k1';

/** Keys that were recovered from signatures, or that have signed. The world, the promises and the service ask for the same ones many times. */
const known = new Map<string, Uint8Array>();
const MOST_KNOWN = 10_000;

const nameOf = (digest: Uint8Array, compact: Uint8Array, recovery: number, compressed: boolean): string =>
  `${Buffer.concat([digest, compact]).toString('latin1')}${recovery}${compressed}`;

function remember(name: string, key: Uint8Array): Uint8Array {
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(name, key);
  return key;
}

/** The same as the library's `ecdsaRecover`. Throws what it throws, each time anew. */
export function recoverKey(compact: Uint8Array, recovery: number, digest: Uint8Array, compressed = true): Uint8Array {
  const name = nameOf(digest, compact, recovery, compressed);
  return known.get(name) ?? remember(name, secp256k1.ecdsaRecover(compact, recovery, digest, compressed));
}

/** Tells which key (65 bytes) made a signature. */
export const noteSigner = (compact: Uint8Array, recovery: number, digest: Uint8Array, key: Uint8Array): void =>
  void remember(nameOf(digest, compact, recovery, false), key);
