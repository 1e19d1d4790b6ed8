import { randomBytes } from 'node:crypto';
import type { Clock } from './clock.ts';

/**
 * Ids that sort by the time they were made (milliseconds, then a counter) and end in random bytes.
 * Made here rather than by a database, so that no id is ever given twice, after a delete or by a second adapter.
 */
export function createIds(clock: Clock): () => string {
  let last = 0;
  let counter = 0;
  return () => {
    const now = Math.max(clock.nowMs(), last);
    counter = now === last ? counter + 1 : 0;
    last = now;
    const head = now.toString(16).padStart(12, '0') + counter.toString(16).padStart(4, '0');
    return head + randomBytes(8).toString('hex');
  };
}
