import { z } from 'zod';
import { AppError } from '../../../errors.ts';
import { PaymentRefused } from '../../refusal.ts';
import { type Challenge, decodeJson, encodeCanonical, INTENT } from './challenge.ts';

/** A credential as the buyer sent it. Its form is valid. Its challenge and its payload are not checked yet. */
export interface PaymentCredential {
  readonly challenge: Challenge;
  readonly payload: Readonly<Record<string, unknown>>;
  /** The challenge's `request`, decoded. */
  readonly request: Readonly<Record<string, unknown>>;
}

/** Node refuses header blocks over 16 KiB. A credential for this service takes about 1.5 KiB. */
const MAX_CHARACTERS = 12_288;
const CREDENTIAL = /^payment +([A-Za-z0-9_-]+)={0,2}$/i;

/** Text that is no Unicode has no canonical form, and a receipt repeats the id. */
const text = z
  .string()
  .max(MAX_CHARACTERS)
  .refine((given) => given.isWellFormed());
const json = z.record(z.string(), z.unknown());
/** Clients of an earlier draft repeat it decoded. */
const opaque = z.union([text, z.record(text, text).transform(encodeCanonical)]);
const credential = z.object({
  challenge: z.object({
    ...{ id: text, realm: text, method: text, intent: text, request: text },
    ...{ expires: text.optional(), digest: text.optional(), opaque: opaque.optional() },
  }),
  payload: json,
});

/** Reads `Authorization: Payment …` for a method with the intent `charge`. Throws PaymentRefused for text that is no credential, and AppError (400) for another method. */
export function readCredential(authorization: string, method: string): PaymentCredential {
  const encoded = authorization.length <= MAX_CHARACTERS ? CREDENTIAL.exec(authorization)?.[1] : undefined;
  const parsed = credential.safeParse(decodeJson(encoded));
  if (!parsed.success) throw new PaymentRefused('invalid_payload');
  const { challenge, payload } = parsed.data;
  if (challenge.method !== method || challenge.intent !== INTENT) throw notOffered(method);
  const request = json.safeParse(decodeJson(challenge.request));
  if (!request.success) throw new PaymentRefused('invalid_payload');
  return { challenge, payload, request: request.data };
}

/** 400: a credential of another method. It may have been paid on another route, so the answer does not say that nothing is charged. */
function notOffered(method: string): AppError {
  const detail = `this route takes the method ${method} with the intent ${INTENT}; nothing was taken for this request`;
  return new AppError(400, 'method_unsupported', detail, { charged: 'unknown' });
}
