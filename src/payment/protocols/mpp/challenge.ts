import { bytesToHex } from '../../../lib/hex.ts';
import { jcs } from '../../../lib/jcs.ts';
import { keccak256 } from '../../../lib/secp256k1.ts';
import { type ChallengeSecrets, hmac, isSignedBy } from '../../challenge-secrets.ts';

/** The one intent that is served: a single payment. */
export const INTENT = 'charge';

/** A challenge of the auth scheme `Payment`. `request` and `opaque` are base64url of canonical JSON, as on the wire. */
export interface Challenge {
  readonly id: string;
  readonly realm: string;
  readonly method: string;
  readonly intent: string;
  readonly request: string;
  /** RFC 3339. */
  readonly expires?: string | undefined;
  readonly digest?: string | undefined;
  readonly opaque?: string | undefined;
}

/** Everything of a challenge but its id, which binds it. */
export type ChallengeTerms = Omit<Challenge, 'id'>;

/** The id that binds a challenge's terms: the HMAC-SHA256 of seven slots, absent ones empty, in base64url. */
export function challengeId(secret: Uint8Array, terms: ChallengeTerms): string {
  return binding(secret, terms).toString('base64url');
}

/** Whether one of our secrets made the challenge's id for exactly these terms. */
export function isOurChallenge(secrets: ChallengeSecrets, challenge: Challenge): boolean {
  // As text: several spellings decode to the same bytes, and one challenge has one id.
  return isSignedBy(secrets, Buffer.from(challenge.id, 'utf8'), (secret) =>
    Buffer.from(challengeId(secret, challenge), 'utf8'),
  );
}

/** Makes a challenge of terms. */
export function withId(secret: Uint8Array, terms: ChallengeTerms): Challenge {
  return { id: challengeId(secret, terms), ...terms };
}

/** The nonce that an EIP-3009 authorization must have to answer a challenge of the method `evm`. */
export function nonceOf({ id, realm }: Pick<Challenge, 'id' | 'realm'>): `0x${string}` {
  return bytesToHex(keccak256(Buffer.from(id + realm, 'utf8')));
}

/** The challenge as the value of a WWW-Authenticate line. No value of ours holds a quote or a backslash. */
export function challengeLine({ id, realm, method, intent, request, expires, opaque }: Challenge): string {
  const members = { id, realm, method, intent, request, expires, opaque };
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return `Payment ${given.map(([name, value]) => `${name}="${value}"`).join(', ')}`;
}

/** A time in Unix seconds as RFC 3339 writes it. */
export function writeTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
}

/** Encodes plain JSON data in base64url, as canonical JSON (RFC 8785). Throws for any other value. */
export function encodeCanonical(value: object): string {
  const text = jcs(value);
  if (text === null) throw new TypeError('this is no plain JSON data');
  return Buffer.from(text, 'utf8').toString('base64url');
}

/** Decodes base64url JSON; undefined for any other text. */
export function decodeJson(encoded: string | undefined): unknown {
  try {
    return JSON.parse(Buffer.from(encoded ?? '', 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}

function binding(secret: Uint8Array, terms: ChallengeTerms): Buffer {
  const { realm, method, intent, request, expires = '', digest = '', opaque = '' } = terms;
  return hmac(secret, [realm, method, intent, request, expires, digest, opaque].join('|'));
}
