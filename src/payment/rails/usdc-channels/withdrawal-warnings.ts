import { z } from 'zod';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import { index } from '../../../chain/rpc/wire.ts';
import { allTried } from '../../../lib/all-tried.ts';
import type { Clock } from '../../../lib/clock.ts';
import { hexToBytes } from '../../../lib/hex.ts';
import type { ChannelState } from '../../../store/ports/channel-state.ts';
import type { Channel, ChannelStore } from '../../../store/ports/channels.ts';
import type { ChannelReader } from './channel-reader.ts';
import { isEndangered } from './claim-rows.ts';
import { withdrawalLogs } from './event-logs.ts';
import type { WithdrawalAlarms } from './withdrawal-alarms.ts';

/** Channels that are listed and read at a time: one request of the chain. */
export const PAGE = 500;
/** A head this many blocks beyond the agreed one is far: ten seconds on Arc. Nearer blocks are soon agreed on. */
const FAR_BLOCKS = 20;
/** The newest blocks whose logs are read. What is older is seen by the reads of all channels. */
const WARNED_BLOCKS = 1000;

const heights = z.tuple([z.object({ result: index })]);

interface WarningsOptions {
  readonly store: Pick<ChannelStore, 'get' | 'listUnclaimed'>;
  readonly reader: Pick<ChannelReader, 'readEach'>;
  readonly chain: Pick<ChainClient, 'each' | 'agreed'>;
  readonly alarms: Pick<WithdrawalAlarms, 'raise'>;
  readonly network: string;
  /** How often every unclaimed channel is read, in milliseconds, whatever the logs show. */
  readonly staleMs: number;
  readonly clock: Clock;
}

/**
 * Warns of withdrawals where two providers agree on no head, or on one that another provider has left far behind: one
 * that is silent or stands still must not hide them. Nothing here is noted. A provider that says a head of its own
 * alone is asked there alone, because an honest one refuses what is beyond its head.
 */
export function createWithdrawalWarnings(options: WarningsOptions) {
  const { chain, staleMs, clock } = options;
  /** When all unclaimed channels were read here. */
  let readAt = Number.NEGATIVE_INFINITY;

  /** The heads of the providers, the highest first, where the agreed one shows too little. */
  async function farHeads(): Promise<number[]> {
    const { witnesses, lastHead, providers } = chain.agreed;
    const agreed = lastHead();
    const isFar = providers().some(({ isApart, aheadBlocks }) => !isApart && (aheadBlocks ?? 0) > FAR_BLOCKS);
    if (witnesses < 2 || (agreed !== null && !isFar)) return [];
    const answers = await chain.each([{ method: 'eth_blockNumber', params: [] }], { rank: 'collect' });
    const heads = answers.flatMap((answer) => heights.safeParse(answer).data?.map(({ result }) => result) ?? []);
    const least = agreed === null ? 0 : agreed + FAR_BLOCKS + 1;
    return [...new Set(heads)].filter((head) => head >= least).sort((one, other) => other - one);
  }

  return {
    /** Warns of what any provider's newest logs up to this head name. Then rejects with the failure that led here. */
    async byLogs(head: number, failure: unknown): Promise<never> {
      await warnByLogs(options, head).catch(() => {});
      throw failure;
    },
    /**
     * One round. Raises an alarm for each channel whose charges a provider says are in danger at its own head. Asks
     * nothing while the agreed head shows all. Then rejects with the first failure.
     */
    async run(): Promise<void> {
      const heads = await farHeads();
      const isDue = clock.nowMs() - readAt >= staleMs;
      const parts: Promise<void>[] = [];
      // The lowest last: a claim is simulated where a warning stands, and more providers have that block.
      for (const head of heads) {
        parts.push(warnByLogs(options, head), ...(isDue ? [warnOfAll(options, head)] : []));
        await Promise.allSettled(parts);
      }
      await allTried(parts);
      if (isDue && heads.length > 0) readAt = clock.nowMs();
    },
  };
}

/** Reads the channels of ours that any provider's newest logs name. */
async function warnByLogs(options: WarningsOptions, head: number): Promise<void> {
  const { logs } = await withdrawalLogs(options.chain, Math.max(0, head - WARNED_BLOCKS + 1), head);
  const ids = new Set(logs.flat().map(({ topics }) => topics[1] ?? ''));
  const channels = await Promise.all([...ids].map((id) => options.store.get(hexToBytes(id))));
  await warnOf(
    options,
    channels.filter((channel) => channel !== null),
    head,
  );
}

/** Reads every channel with unclaimed charges. */
async function warnOfAll(options: WarningsOptions, head: number): Promise<void> {
  const { store, network } = options;
  for await (const page of unclaimedPages(store, network)) await warnOf(options, page, head);
}

async function warnOf({ reader, alarms }: WarningsOptions, channels: readonly Channel[], head: number): Promise<void> {
  for (let start = 0; start < channels.length; start += PAGE) {
    const page = channels.slice(start, start + PAGE);
    const ids = page.map(({ id }) => id);
    const each = await reader.readEach(ids, head, 'collect');
    for (const [at, channel] of page.entries())
      if (each.some((said) => endangers(channel, said[at] ?? null))) alarms.raise(channel.id, head);
  }
}

/** Lists the channels with unclaimed charges, page by page, the oldest charges first. */
export async function* unclaimedPages(store: Pick<ChannelStore, 'listUnclaimed'>, network: string) {
  for (let after: Parameters<ChannelStore['listUnclaimed']>[2]; ; ) {
    const page = await store.listUnclaimed(network, PAGE, after);
    yield page;
    const last = page.at(-1);
    if (page.length < PAGE || !last || last.unclaimedSince === null) return;
    after = { unclaimedSince: last.unclaimedSince, id: last.id };
  }
}

/** Whether charges are in danger if this is the channel's state. */
export const endangers = (channel: Channel, state: ChannelState | null): boolean =>
  state !== null && channel.unclaimedSince !== null && isEndangered({ ...channel, state });
