import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { ChannelConfig, ChannelState } from '../../../store/ports/channel-state.ts';
import type { Channel, ChannelStore } from '../../../store/ports/channels.ts';
import type { Asker } from '../../rail.ts';
import { PaymentRefused } from '../../refusal.ts';
import { reason } from './payload.ts';

/** The longest time for which a channel's state counts without a new read, in milliseconds. A third of a short delay counts instead. */
const MOST_FRESH_MS = 300_000;
/** A state that is younger than this is not read again, in milliseconds: a buyer may ask at every block. */
const LEAST_AGE_MS = 2000;

/** Reads a channel's state from the chain. Requests of several channels share a call; clients take turns. */
export type ReadChannel = (id: Uint8Array, asker: Asker) => Promise<ChannelState>;

interface ChannelBookOptions {
  store: Pick<ChannelStore, 'get' | 'note'>;
  read: ReadChannel;
  network: string;
  withdrawDelaySeconds: number;
  clock: Clock;
}

/** The channels as the ledger knows them, with a state of the chain that is young enough to sell on. */
export function createChannelBook({ store, read, network, withdrawDelaySeconds, clock }: ChannelBookOptions) {
  const freshMs = Math.min(MOST_FRESH_MS, (withdrawDelaySeconds * 1000) / 3);
  const reading = new Set<string>();

  async function readNow(id: Uint8Array, config: ChannelConfig, asker: Asker, isExpected: boolean): Promise<Channel> {
    const state = await read(id, asker);
    // A request can name any channel. Only one that holds or has held money gets a row.
    if (state.balance === 0n && state.totalClaimed === 0n && !isExpected)
      throw new PaymentRefused(reason('channel_not_found'));
    return store.note({ ...config, id, network }, state, clock.nowMs());
  }

  /** Reads the chain while the sale goes on, so that the next sales need not wait for it. */
  function readBehind(id: Uint8Array, config: ChannelConfig, asker: Asker): void {
    const key = bytesToHex(id);
    if (reading.has(key)) return;
    reading.add(key);
    const unhurried = { ...asker, signal: new AbortController().signal };
    readNow(id, config, unhurried, true)
      // A later sale tries again, and waits for the read once the state is too old.
      .catch(() => {})
      .finally(() => reading.delete(key));
  }

  /** The channel that was read from the ledger a moment ago. Reads the chain where its state is too old. */
  async function fresh(known: Channel, asker: Asker): Promise<Channel> {
    const ageMs = clock.nowMs() - known.readAt;
    if (ageMs > freshMs) return readNow(known.id, known, asker, true);
    if (ageMs > freshMs / 2) readBehind(known.id, known, asker);
    return known;
  }

  return {
    /**
     * The channel, with a state that is fresh enough. Reads the chain where the ledger's is missing or too old. Throws PaymentRefused for a channel
     * without a deposit, unless one is expected (`isExpected`).
     */
    open: async (id: Uint8Array, config: ChannelConfig, asker: Asker, isExpected = false): Promise<Channel> => {
      const known = await store.get(id);
      return known ? fresh(known, asker) : readNow(id, config, asker, isExpected);
    },
    /** The channel after another read. One that was read a moment ago is returned as it is. */
    reread: async (channel: Channel, asker: Asker): Promise<Channel> =>
      clock.nowMs() - channel.readAt < LEAST_AGE_MS ? channel : readNow(channel.id, channel, asker, true),
  };
}

export type ChannelBook = ReturnType<typeof createChannelBook>;
