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

/** What a channel without a sale has. */
const UNUSED = {
  charged: 0n,
  writtenOff: 0n,
  signature: null,
  unclaimedSince: null,
  isConfirmed: true,
  claimRefusedAt: null,
};

interface Looked {
  readonly channel: Channel;
  readonly isNew: boolean;
}

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

  async function readNow(id: Uint8Array, config: ChannelConfig, asker: Asker): Promise<Channel> {
    return store.note({ ...config, id, network }, await read(id, asker), clock.nowMs());
  }

  /** Reads the chain while the sale goes on, so that the next sales need not wait for it. */
  function readBehind(id: Uint8Array, config: ChannelConfig, asker: Asker): void {
    const key = bytesToHex(id);
    if (reading.has(key)) return;
    reading.add(key);
    const unhurried = { ...asker, signal: new AbortController().signal };
    readNow(id, config, unhurried)
      // A later sale tries again, and waits for the read once the state is too old.
      .catch(() => {})
      .finally(() => reading.delete(key));
  }

  /** The channel that was read from the ledger a moment ago. Reads the chain where its state is too old. */
  async function fresh(known: Channel, asker: Asker): Promise<Channel> {
    const ageMs = clock.nowMs() - known.readAt;
    if (ageMs > freshMs) return readNow(known.id, known, asker);
    if (ageMs > freshMs / 2) readBehind(known.id, known, asker);
    return known;
  }

  const keep = (channel: Channel): Promise<Channel> => store.note(channel, channel.state, channel.readAt);

  /** A channel that the ledger does not know. One with claims was charged by a ledger that is lost, and gets its row at once. */
  async function unknown(id: Uint8Array, config: ChannelConfig, asker: Asker): Promise<Looked> {
    const [state, readAt] = [await read(id, asker), clock.nowMs()];
    const channel = { ...config, id, network, ...UNUSED, usedAt: readAt, state, readAt };
    return state.totalClaimed > 0n ? { channel: await keep(channel), isNew: false } : { channel, isNew: true };
  }

  async function look(id: Uint8Array, config: ChannelConfig, asker: Asker): Promise<Looked> {
    const known = await store.get(id);
    return known ? { channel: await fresh(known, asker), isNew: false } : unknown(id, config, asker);
  }

  return {
    /**
     * The channel, with a state that is fresh enough. Reads the chain where the ledger's is missing or too old. A request can name any channel, so one
     * that is new to the ledger (`isNew`) has no row before `keep` is called with it.
     */
    look,
    ...{ fresh, keep },
    /** The same with its row. Throws PaymentRefused (`channel_not_found`) for a new channel without a deposit, which gets no row. */
    open: async (id: Uint8Array, config: ChannelConfig, asker: Asker): Promise<Channel> => {
      const { channel, isNew } = await look(id, config, asker);
      if (isNew && channel.state.balance === 0n) throw new PaymentRefused(reason('channel_not_found'));
      return isNew ? keep(channel) : channel;
    },
    /** The channel after another read. One that was read a moment ago is returned as it is. */
    reread: async (channel: Channel, asker: Asker): Promise<Channel> =>
      clock.nowMs() - channel.readAt < LEAST_AGE_MS ? channel : readNow(channel.id, channel, asker),
  };
}

export type ChannelBook = ReturnType<typeof createChannelBook>;
