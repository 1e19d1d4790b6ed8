import { randomBytes } from 'node:crypto';
import type { Clock } from './clock.ts';

const RANDOM_BYTES = 8;
const IDS_A_DRAW = 64;

/**
 * Ids that sort by the time they were made (milliseconds, then a counter) and end in random bytes.
 * The process creates them instead of a database, so that no id is used twice, after a delete or with a second adapter.
 */
export function createIds(clock: Clock): () => string {
  const random = createRandomHex();
  let last = 0;
  let counter = 0;
  return () => {
    const now = Math.max(clock.nowMs(), last);
    counter = now === last ? counter + 1 : 0;
    last = now;
    const head = now.toString(16).padStart(12, '0') + counter.toString(16).padStart(4, '0');
    return head + random();
  };
}

/** Random bytes as hex, drawn for many ids at once, because one draw costs as much as the rest of an id. */
function createRandomHex(): () => string {
  let drawn = '';
  return () => {
    if (drawn === '') drawn = randomBytes(RANDOM_BYTES * IDS_A_DRAW).toString('hex');
    const next = drawn.slice(0, 2 * RANDOM_BYTES);
    drawn = drawn.slice(2 * RANDOM_BYTES);
    return next;
  };
}
