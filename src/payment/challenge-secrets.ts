import { createHmac, timingSafeEqual } from 'node:crypto';

/** Keys that sign challenges. They must be the same on every instance. */
export interface ChallengeSecrets {
  /** Signs new challenges. At least 32 bytes. */
  readonly current: Uint8Array;
  /** Signed challenges before the last change; null without one. What it signed stays good, because a buyer may have paid for it. */
  readonly previous: Uint8Array | null;
}

/** The HMAC-SHA256 of a text. */
export function hmac(key: Uint8Array, text: string | Uint8Array): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

/** Whether one of the keys made a signature. `sign` signs with a key. Compares in constant time. */
export function isSignedBy(
  { current, previous }: ChallengeSecrets,
  signature: Uint8Array,
  sign: (key: Uint8Array) => Uint8Array,
): boolean {
  const keys = previous ? [current, previous] : [current];
  return keys.some((key) => {
    const expected = sign(key);
    return expected.length === signature.length && timingSafeEqual(expected, signature);
  });
}
