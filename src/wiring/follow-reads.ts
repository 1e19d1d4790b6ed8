import type { PrimaryLink } from '../cluster/primary-link.ts';
import type { ChainReads } from '../store/chain/reads.ts';

/**
 * Reads of the data that another process collects. Their version changes at each heartbeat of that process, so that data and freshness change together.
 * A heartbeat after the database was closed, while this process stops, changes nothing.
 */
export function followReads(
  reads: ChainReads,
  link: Pick<PrimaryLink, 'onHeartbeat'>,
  isOpen: () => boolean,
): ChainReads {
  let version = reads.version();
  link.onHeartbeat(() => {
    if (isOpen()) version = reads.version();
  });
  return { ...reads, version: () => version };
}
