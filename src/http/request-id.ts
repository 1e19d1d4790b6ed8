import { randomBytes } from 'node:crypto';

/**
 * Returns a maker of request ids: a random prefix of this process and a counter.
 * One random draw a process keeps ids unguessable and unique over restarts at the cost of a string; a caller's own id is never
 * taken over, because it ends up in our log and would let callers forge entries of one another.
 */
export function createRequestIds(): () => string {
  const prefix = randomBytes(9).toString('base64url');
  let count = 0;
  return () => {
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}
