import type { ChainClient } from '../../../chain/rpc/client.ts';
import { toQuantity } from '../../../chain/rpc/wire.ts';
import type { Clock } from '../../../lib/clock.ts';
import { hexToBytes } from '../../../lib/hex.ts';
import type { Channel, ChannelStore } from '../../../store/ports/channels.ts';
import type { ChannelReader } from './channel-reader.ts';
import { SETTLEMENT } from './scheme.ts';

/** keccak256 of `WithdrawInitiated(bytes32,uint128,uint40)`. */
const WITHDRAW_INITIATED = '0xe4280d0d903c7f258f62b07c62f262377cbaa23f7791d78126e6446e0f0e3c23';
/** Public nodes refuse `eth_getLogs` over 10,000 blocks and more. */
const LOG_SPAN = 9_999;
/** Unclaimed channels are read this many times within a withdrawal's delay, whatever the logs show. */
const READS_A_DELAY = 12;
/** Channels that one round reads: one request of the chain. */
const MOST_CHANNELS = 500;

interface WithdrawalWatchOptions {
  readonly store: Pick<ChannelStore, 'get' | 'note' | 'listUnclaimed'>;
  readonly reader: ChannelReader;
  readonly chain: Pick<ChainClient, 'request'>;
  readonly network: string;
  readonly withdrawDelaySeconds: number;
  readonly clock: Clock;
  readonly log: { info(detail: object, message: string): void };
}

/**
 * Watches for payers who ask for their money back, by the contract's events and by reads of the channels' states. The states are noted, and the next
 * round of claims takes what is charged there.
 */
export function createWithdrawalWatch(options: WithdrawalWatchOptions) {
  const { store, reader, chain, network, withdrawDelaySeconds, clock, log } = options;
  const staleMs = (withdrawDelaySeconds * 1000) / READS_A_DELAY;
  let fromBlock: number | null = null;

  async function refresh(channels: readonly Channel[]): Promise<void> {
    if (channels.length === 0) return;
    const states = await reader.read(
      channels.map(({ id }) => id),
      { rank: 'collect' },
    );
    const noted = channels.map((channel, at) => {
      const state = states[at];
      return state && store.note(channel, state, clock.nowMs());
    });
    await Promise.all(noted);
  }

  /** The channels of ours that these logs name. */
  async function named(logs: readonly { topics: readonly string[] }[]): Promise<Channel[]> {
    const ids = new Set(logs.flatMap(({ topics: [, id] }) => id ?? []));
    const found = await Promise.all([...ids].map((id) => store.get(hexToBytes(id))));
    return found.filter((channel) => channel !== null);
  }

  async function readLogs(): Promise<void> {
    const head = Number(await chain.request<string>('eth_blockNumber', [], { rank: 'collect' }));
    // At the start the timer below reads the channels, so that the logs need no history.
    const from = Math.max(fromBlock ?? head, head - LOG_SPAN + 1);
    if (from > head) return;
    const range = { fromBlock: toQuantity(from), toBlock: toQuantity(head) };
    const filter = { address: SETTLEMENT, topics: [WITHDRAW_INITIATED], ...range };
    const logs = await chain.request<{ topics: string[] }[]>('eth_getLogs', [filter], { rank: 'collect' });
    const channels = await named(logs);
    if (channels.length > 0) log.info({ channels: channels.length }, 'payers ask for money of their channels');
    await refresh(channels);
    fromBlock = head + 1;
  }

  return {
    /** One round. Rejects when the chain or the ledger cannot be read; the next round reads the same logs again. */
    run: async (): Promise<void> => {
      const unclaimed = await store.listUnclaimed(network, MOST_CHANNELS);
      await refresh(unclaimed.filter(({ readAt }) => clock.nowMs() - readAt >= staleMs));
      await readLogs();
    },
  };
}
