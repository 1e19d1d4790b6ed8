import type { Clock } from '../../../lib/clock.ts';
import type { ChannelStore } from '../../../store/ports/channels.ts';

/** Milliseconds between two rounds. */
const PAUSE_MS = 600_000;
/** How long the row of a channel that has bought nothing is kept after its last read, in milliseconds. A sale reads it again after five minutes. */
const KEEP_MS = 3_600_000;
/** Rows that one write deletes, so that it does not hold up others. */
const MOST_AT_ONCE = 500;

/**
 * Deletes the rows of channels that have bought nothing. A deposit whose call fails leaves such a row, and a payer can name as many channels as it
 * likes. A later sale makes the row again. Rejects when the ledger cannot be written; the next call goes on.
 */
export function createChannelPruning(store: Pick<ChannelStore, 'prune'>, clock: Clock) {
  let nextMs = 0;

  return async (): Promise<void> => {
    const nowMs = clock.nowMs();
    if (nowMs < nextMs) return;
    while ((await store.prune(nowMs - KEEP_MS, MOST_AT_ONCE)) === MOST_AT_ONCE);
    nextMs = nowMs + PAUSE_MS;
  };
}
