import { siteKey } from './client-key.ts';

/**
 * The first `most` waiting items, round robin: one item of each site in a round, sites in the order of their oldest item, and the networks of a site
 * in the same way. A client with many waiting items gets no more turns than a client with one.
 * `waiting` is in the order of arrival.
 */
export function takeFairly<T>(waiting: readonly T[], most: number, clientOf: (one: T) => string): T[] {
  if (waiting.length <= most) return [...waiting];
  const siteOf = (one: T): string => siteKey(clientOf(one)) ?? clientOf(one);
  const sites = groupBy(waiting, siteOf).map((ofSite) => inTurns(groupBy(ofSite, clientOf)));
  return inTurns(sites).slice(0, most);
}

function groupBy<T>(waiting: readonly T[], keyOf: (one: T) => string): T[][] {
  return [...Map.groupBy(waiting, keyOf).values()];
}

/** The first of each queue, then the second of each, to the end. */
function inTurns<T>(queues: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...queues.map(({ length }) => length));
  const rounds = Array.from({ length: longest }, (_, round) =>
    queues.flatMap((queue) => queue.slice(round, round + 1)),
  );
  return rounds.flat();
}
