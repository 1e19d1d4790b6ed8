import { siteKey } from './client-key.ts';

/**
 * The first `most` of what waits, where clients take turns: one of each site's in a round, sites in the order of their oldest, and within a site
 * its networks in the same way. A client that has much waiting gets no more turns than one that has a single thing waiting.
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
