import { createHash } from 'node:crypto';
import { AppError, BadParameter } from '../errors.ts';

const EXTENSION = 'payment-identifier';
/** x402's: 16 to 128 characters that only the buyer knows. */
const IDENTIFIER = /^[A-Za-z0-9_-]{16,128}$/;

/**
 * How a challenge declares the extension. Stock clients send an identifier only to a seller that declares it. The schema is as short as it can be,
 * because every 402 has it.
 */
export const IDENTIFIER_EXTENSION = {
  [EXTENSION]: {
    info: { required: false },
    schema: { properties: { id: { pattern: '^[\\w-]{16,128}$' } } },
  },
};

/**
 * Returns the SHA-256 of a payment's identifier (x402's `payment-identifier` extension), or null without one. The identifier itself is not kept. The
 * hash is not salted: the same identifier must find the same row with any payload. Throws BadParameter (400) for a malformed identifier, because a
 * buyer that relies on it would be charged twice. x402 answers a missing identifier in the same way.
 *
 * An identifier belongs to one payload (an authorization for a request) from its reservation on, as long as the row exists. It is free again when the
 * reservation is released or the payment fails, because nothing can be charged for it then.
 */
export function hashIdentifier(extensions: Record<string, unknown> | null | undefined): Uint8Array | null {
  const extension = extensions?.[EXTENSION] ?? null;
  if (extension === null) return null;
  const { info } = extension as { info?: unknown };
  if (typeof info !== 'object' || info === null) throw malformed('info', 'must be an object');
  const { id } = info as { id?: unknown };
  if (id === undefined) return null;
  if (typeof id !== 'string' || !IDENTIFIER.test(id)) {
    throw malformed('info.id', 'must be 16 to 128 letters, digits, hyphens and underscores');
  }
  return createHash('sha256').update(id).digest();
}

/**
 * 409: another authorization or another request has used the identifier. Nothing was reserved for this one. `mayHaveMoved`: this authorization was
 * presented before, and its money may have moved or may still move.
 */
export function identifierConflict(mayHaveMoved: boolean): AppError {
  const detail =
    'this payment identifier belongs to another payment: present that one again, or take a new identifier for this one';
  return new AppError(409, 'payment_identifier_conflict', detail, { charged: mayHaveMoved ? 'unknown' : false });
}

function malformed(path: string, message: string): BadParameter {
  return new BadParameter([{ path: `extensions.${EXTENSION}.${path}`, message }], 'payment_identifier_malformed');
}
