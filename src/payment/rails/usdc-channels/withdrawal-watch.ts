import { MAX_LOG_SPAN } from '../../../chain/block-logs.ts';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import { toQuantity } from '../../../chain/rpc/wire.ts';
import { allTried } from '../../../lib/all-tried.ts';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../lib/hex.ts';
import type { Channel, ChannelStore } from '../../../store/ports/channels.ts';
import { createBlockRanges } from './block-ranges.ts';
import type { ChannelReader } from './channel-reader.ts';
import { SETTLEMENT } from './scheme.ts';

/** keccak256 of `WithdrawInitiated(bytes32,uint128,uint40)`. */
const WITHDRAW_INITIATED = '0xe4280d0d903c7f258f62b07c62f262377cbaa23f7791d78126e6446e0f0e3c23';
/** Unclaimed channels are read this many times within a withdrawal's delay, whatever the logs show. */
const READS_A_DELAY = 12;
/** Channels that are listed and read at a time: one request of the chain. */
const PAGE = 500;

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
  const { store, chain, network, withdrawDelaySeconds, clock, log } = options;
  const staleMs = (withdrawDelaySeconds * 1000) / READS_A_DELAY;
  // The logs need no history: the first round reads every unclaimed channel, because a payer may have asked while no process ran.
  const startedMs = clock.nowMs();
  // A node that refuses fewer is asked for half of them.
  const readRanges = createBlockRanges(readRange, MAX_LOG_SPAN);

  const refresh = (channels: readonly Channel[]) => refreshChannels(options, channels);

  /**
   * Reads every channel with unclaimed charges whose state is old or from before the start, whatever the logs show. A page or a channel that cannot be
   * read hides no other. Then rejects with the first failure.
   */
  async function readStale(): Promise<void> {
    const read: Promise<void>[] = [];
    for (let after: Parameters<ChannelStore['listUnclaimed']>[2]; ; ) {
      const page = await store.listUnclaimed(network, PAGE, after);
      read.push(refresh(page.filter(({ readAt }) => readAt < startedMs || clock.nowMs() - readAt >= staleMs)));
      await read.at(-1)?.catch(() => {});
      const last = page.at(-1);
      if (page.length < PAGE || !last || last.unclaimedSince === null) return allTried(read);
      after = { unclaimedSince: last.unclaimedSince, id: last.id };
    }
  }

  /** The channels of ours that these logs name. Other sellers use the same contract. */
  async function named(logs: readonly { topics: readonly string[] }[]): Promise<Channel[]> {
    const ids = new Set(logs.flatMap(({ topics: [, id] }) => id ?? []));
    const found = await Promise.all([...ids].map((id) => store.get(hexToBytes(id))));
    return found.filter((channel) => channel !== null);
  }

  async function readRange(from: number, to: number): Promise<void> {
    const range = { fromBlock: toQuantity(from), toBlock: toQuantity(to) };
    const filter = { address: SETTLEMENT, topics: [WITHDRAW_INITIATED], ...range };
    const logs = await chain.request<{ topics: string[] }[]>('eth_getLogs', [filter], { rank: 'collect' });
    const channels = await named(logs);
    if (channels.length > 0)
      log.info({ channels: channels.length }, 'payers have asked to withdraw money from their channels');
    await refresh(channels);
  }

  async function readLogs(): Promise<void> {
    const head = Number(await chain.request<string>('eth_blockNumber', [], { rank: 'collect' }));
    await readRanges(head);
  }

  return {
    /**
     * One round: the logs and the channels' states, each whatever happens to the other. Rejects when the chain or the ledger cannot be read; the next
     * round goes on where the reading of the logs ended.
     */
    run: (): Promise<void> => allTried([readStale(), readLogs()]),
  };
}

/** Reads these channels and notes their states. Each is noted whatever happens to the others. Then rejects with the first failure. */
async function refreshChannels(
  { store, reader, clock }: WithdrawalWatchOptions,
  channels: readonly Channel[],
): Promise<void> {
  if (channels.length === 0) return;
  const ids = channels.map(({ id }) => id);
  const states = await reader.read(ids, { rank: 'collect' });
  await allTried(
    channels.map(async (channel, at) => {
      const state = states[at];
      if (!state) throw new Error(`the channel ${bytesToHex(channel.id)} cannot be read`);
      await store.note(channel, state, clock.nowMs());
    }),
  );
}
