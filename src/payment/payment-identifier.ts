import { createHash } from 'node:crypto';

/** x402's `payment-identifier` extension: 16 to 128 characters that only the buyer knows. */
const IDENTIFIER = /^[A-Za-z0-9_-]{16,128}$/;

/** The hash of the payment's identifier, or null without a well-formed one; the identifier itself is not kept. */
export function hashIdentifier(extensions: Record<string, unknown> | null | undefined): Uint8Array | null {
  const extension = extensions?.['payment-identifier'] as { info?: { id?: unknown } } | null | undefined;
  const id = extension?.info?.id;
  if (typeof id !== 'string' || !IDENTIFIER.test(id)) return null;
  return createHash('sha256').update(id).digest();
}
