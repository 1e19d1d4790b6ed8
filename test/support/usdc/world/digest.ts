import { createHash } from 'node:crypto';
import type { Journal } from './run-world.ts';

/** A short digest of a journal. Equal digests mean equal journals. */
export function digestOf(journal: Journal): string {
  const text = JSON.stringify(journal, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
