import { randomBytes } from 'node:crypto';

/**
 * Returns a function that creates request ids: a random prefix of this process and a counter.
 * One random draw for each process makes ids unguessable and unique over restarts. A client's own id is never used, because ids are logged and clients
 * could forge each other's entries.
 */
export function createRequestIds(): () => string {
  const prefix = randomBytes(9).toString('base64url');
  let count = 0;
  return () => {
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}
