import { Unavailable, UpstreamFailed } from '../../../errors.ts';
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

/**
 * A state this many blocks beyond the head that we know is not believed: ten seconds on Arc. Another process may have a
 * newer head than ours.
 */
const AHEAD_BLOCKS = 20;
/** How soon a buyer may ask again while the channel is not sold on, in seconds. */
const RETRY_SECONDS = 5;

interface ChannelBookOptions {
  store: Pick<ChannelStore, 'get' | 'note'>;
  read: ReadChannel;
  network: string;
  withdrawDelaySeconds: number;
  /** The head that two providers agree on, as it was read last; null where it is not known. */
  lastHead(): number | null;
  clock: Clock;
}

/**
 * The channels as the ledger knows them, with a state of the chain that is young enough to sell on, and that two
 * providers gave where two are configured. Throws Unavailable (`settlement_unavailable`) for a channel whose state
 * nobody can confirm, and for one whose claim the contract refuses.
 */
export function createChannelBook(options: ChannelBookOptions) {
  const { store, read, network, clock } = options;
  const { readNow, fresh } = createFreshStates(options);

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

/** Reads the states of channels, and judges whether one is young enough and believed. */
function createFreshStates({ store, read, network, withdrawDelaySeconds, lastHead, clock }: ChannelBookOptions) {
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

  /** An older release may have noted one provider's lie, and so may this one while it had one provider. */
  function isBelieved({ isConfirmed, state }: Channel): boolean {
    return isConfirmed && state.block <= (lastHead() ?? state.block) + AHEAD_BLOCKS;
  }

  async function confirmed(known: Channel, asker: Asker): Promise<Channel> {
    const now = await readNow(known.id, known, asker).catch((error: unknown) => {
      throw error instanceof UpstreamFailed ? unconfirmed(error) : error;
    });
    if (!isBelieved(now)) throw unconfirmed();
    return now;
  }

  /** A read of a block before the ledger's own state leaves that state, which is then as old as before. */
  function stillFresh(channel: Channel): Channel {
    if (clock.nowMs() - channel.readAt > freshMs) throw unconfirmed();
    return channel;
  }

  /**
   * The channel that was read from the ledger a moment ago. Reads the chain where its state is too old, or is not to be
   * believed.
   */
  async function fresh(known: Channel, asker: Asker): Promise<Channel> {
    if (known.claimRefusedAt !== null) throw refused();
    if (!isBelieved(known)) return confirmed(known, asker);
    const ageMs = clock.nowMs() - known.readAt;
    if (ageMs > freshMs) return stillFresh(await readNow(known.id, known, asker));
    if (ageMs > freshMs / 2) readBehind(known.id, known, asker);
    return known;
  }

  return { readNow, fresh };
}

const unconfirmed = (cause?: unknown): Unavailable =>
  Object.assign(unavailable('what the chain holds of this channel is not confirmed yet; try again shortly'), { cause });

const refused = (): Unavailable =>
  unavailable('the contract refuses to record the charges of this channel; the operator is told');

const unavailable = (detail: string): Unavailable => new Unavailable('settlement_unavailable', detail, RETRY_SECONDS);

export type ChannelBook = ReturnType<typeof createChannelBook>;
