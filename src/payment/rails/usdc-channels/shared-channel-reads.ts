import { isChainBusy } from '../../../chain/rpc/allowed.ts';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import { Unavailable, UpstreamFailed } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { ChannelState } from '../../../store/ports/channel-state.ts';
import { createSharedReads, PAYER_READ_TIMES } from '../../usdc/shared-reads.ts';
import type { ReadChannel } from './channel-book.ts';
import { createChannelReader } from './channel-reader.ts';

/** Channels in one read: each takes three calls of some 5,000 gas. */
const MOST_CHANNELS = 50;
/** Reads of channels that may wait, for eight requests. A client without a place is refused at once. */
const PLACES = 400;
/** How long such a read waits, in milliseconds. Then it is refused. */
const WAIT_MS = 3000;
/** The precedence of a read whose client has had no uncharged failure in this minute. Others have 0. */
const WITHOUT_FAILURE = 1;

/**
 * Reads channels for buyers. Several share a request. Clients take turns, and those without a failure in this minute come first: a quarter of the places
 * is theirs. Throws Unavailable (`chain_busy`) for a read without a place or with too long a wait.
 */
export function createSharedChannelReads(
  chain: Pick<ChainClient, 'batch' | 'each' | 'agreed' | 'ready'>,
  clock: Clock,
): ReadChannel {
  const reader = createChannelReader(chain);
  const read = createSharedReads<Uint8Array, ChannelState>({
    ask: async (ids) => (await reader.read(ids, { rank: 'offer' })).map((state) => state ?? unreadable()),
    ...{ ...PAYER_READ_TIMES, most: MOST_CHANNELS, clock },
    ready: () => chain.ready('offer'),
    queue: {
      ...{ places: () => PLACES, waitMs: WAIT_MS, refusal: busy },
      ...{ isRefusal: isChainBusy, preferredFrom: WITHOUT_FAILURE },
    },
  });
  return (id, { client, signal, hasFailed }) => read(id, signal, client, hasFailed ? 0 : WITHOUT_FAILURE);
}

function unreadable(): UpstreamFailed {
  return new UpstreamFailed('chain', 'the channel could not be read');
}

function busy(): Unavailable {
  return new Unavailable('chain_busy', 'Too many channels wait to be looked at; try again shortly.', 1);
}
