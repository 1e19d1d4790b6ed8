import { createHash } from 'node:crypto';
import { AppError, BadParameter } from '../errors.ts';

const EXTENSION = 'payment-identifier';
/** x402's: 16 to 128 characters that only the buyer knows. */
const IDENTIFIER = /^[A-Za-z0-9_-]{16,128}$/;

/** What a challenge says of it: stock clients send an identifier only to a seller that declares the extension. */
export const IDENTIFIER_EXTENSION = {
  [EXTENSION]: {
    info: { required: false },
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        required: { type: 'boolean' },
        id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[a-zA-Z0-9_-]+$' },
      },
      required: ['required'],
    },
  },
};

/**
 * The hash of a payment's identifier (x402's `payment-identifier` extension), or null when it came without one.
 * Not salted: whoever presents the identifier, with whatever payload, must hit the same row. The identifier itself is not kept.
 * 400 for one that is not well-formed, because a buyer who trusts in it would be charged twice; x402 answers so when it is missing.
 *
 * An identifier belongs to one payload, an authorization for a request, from its reservation on and as long as the row is there.
 * It is free again once nothing can be charged for it: the reservation was given back, or the payment failed.
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
 * 409: the identifier was used for another authorization or another request; nothing was reserved for this one. `mayHaveMoved`: this authorization
 * was presented before, and its money may have moved or still move.
 */
export function identifierConflict(mayHaveMoved: boolean): AppError {
  const detail =
    'this payment identifier belongs to another payment: present that one again, or take a new identifier for this one';
  return new AppError(409, 'payment_identifier_conflict', detail, { charged: mayHaveMoved ? 'unknown' : false });
}

function malformed(path: string, message: string): BadParameter {
  return new BadParameter([{ path: `extensions.${EXTENSION}.${path}`, message }], 'payment_identifier_malformed');
}
