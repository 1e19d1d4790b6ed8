import { z } from 'zod';
import type { ChallengeSecrets } from '../../challenge-secrets.ts';
import { PaymentRefused } from '../../refusal.ts';
import { type Challenge, isOurChallenge } from './challenge.ts';

/** A credential as the buyer sent it, for a challenge of ours. The payload is not checked yet. */
export interface PaymentCredential {
  readonly challenge: Challenge;
  readonly payload: Readonly<Record<string, unknown>>;
  /** The challenge's `request`, decoded. */
  readonly request: Readonly<Record<string, unknown>>;
}

/** Node refuses header blocks over 16 KiB. A credential for this service takes about 1.5 KiB. */
const MAX_CHARACTERS = 12_288;
const CREDENTIAL = /^payment +([A-Za-z0-9_-]+)={0,2}$/i;

const text = z.string().max(MAX_CHARACTERS);
const json = z.record(z.string(), z.unknown());
const credential = z.object({
  challenge: z.object({
    ...{ id: text, realm: text, method: text, intent: text, request: text },
    ...{ expires: text.optional(), digest: text.optional(), opaque: text.optional() },
  }),
  payload: json,
});

/** Reads `Authorization: Payment …`. Throws PaymentRefused for text that is no credential, and for a challenge that is not ours. */
export function readCredential(secrets: ChallengeSecrets, authorization: string): PaymentCredential {
  const encoded = authorization.length <= MAX_CHARACTERS ? CREDENTIAL.exec(authorization)?.[1] : undefined;
  const parsed = credential.safeParse(decodeJson(encoded));
  if (!parsed.success) throw new PaymentRefused('invalid_payload');
  const { challenge, payload } = parsed.data;
  if (!isOurChallenge(secrets, challenge)) throw new PaymentRefused('invalid_challenge');
  const request = json.safeParse(decodeJson(challenge.request));
  if (!request.success) throw new PaymentRefused('invalid_payload');
  return { challenge, payload, request: request.data };
}

/** Decodes base64url JSON; undefined for any other text. */
export function decodeJson(encoded: string | undefined): unknown {
  try {
    return JSON.parse(Buffer.from(encoded ?? '', 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}
