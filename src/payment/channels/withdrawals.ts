import { z } from 'zod';
import { MAX_LOG_SPAN } from '../../chain/block.ts';
import type { ChainClient } from '../../chain/rpc/client.ts';
import { index } from '../../chain/rpc/wire.ts';
import { Unavailable, UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/common.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import { allTried, createRounds } from '../../lib/tasks.ts';
import type { ChannelState } from '../../store/ports/channel-state.ts';
import type { Channel, ChannelStore } from '../../store/ports/channels.ts';
import { createBlockRanges, eventTransactionHashes, WITHDRAW_INITIATED, withdrawalLogs } from './calldata.ts';
import type { ChannelReader, ChannelStates } from './channel.ts';
import { isEndangered, type WithdrawalAlarms } from './claim-health.ts';

// The watch for payers who take their money back without us. One provider's word is enough to warn:
// 1. Each provider is asked for logs and states at one block; all logs count, and each state that shows danger.
// 2. What all say alike is noted. Where they differ, two must agree, and who contradicts them is set apart.
// 3. Where no two agree, a channel that one says is in danger is claimed early, once (`claim-health.ts`).
// 4. Where no two agree on a head, or another is far beyond it, each is asked at its own.
// 5. A settled deposit is looked at again once, 20 blocks later: a custom network may have taken it back.

/** `state`: what two say, and more than say anything else; undefined without. `isUnanimous`: all answers are alike. */
interface AgreedState {
  readonly state: ChannelState | null | undefined;
  readonly isUnanimous: boolean;
}

/** A lie about one channel touches no other. With one configured provider (`witnesses`) its word alone counts. */
function compareStates(each: readonly ChannelStates[], count: number, witnesses: number): readonly AgreedState[] {
  return Array.from({ length: count }, (_, at): AgreedState => {
    const groups = [...Map.groupBy(each, (states) => textOf(states[at])).values()];
    const [most, next] = groups.sort((one, other) => other.length - one.length);
    const isDecided = (most?.length ?? 0) >= Math.min(2, witnesses) && most?.length !== next?.length;
    return { state: isDecided ? (most?.[0]?.[at] ?? null) : undefined, isUnanimous: groups.length === 1 };
  });
}

const textOf = (state: ChannelState | null | undefined): string =>
  JSON.stringify(state ?? null, (_, value) => (typeof value === 'bigint' ? `${value}` : value));

/** Reads at the agreed head. Undefined where no two say the same of a channel; where so of all, rejects as `read`. */
export async function readByTwo(
  reader: Pick<ChannelReader, 'read' | 'readEach'>,
  { agreed }: Pick<ChainClient, 'agreed'>,
  ids: readonly Uint8Array[],
  signal: AbortSignal,
): Promise<readonly (ChannelState | null | undefined)[]> {
  try {
    return await reader.read(ids, { signal });
  } catch (error) {
    if (!(error instanceof Unavailable) || ids.length < 2) throw error;
    const head = await agreed.head({ rank: 'settle', signal });
    const verdicts = compareStates(await reader.readEach(ids, head, 'settle'), ids.length, agreed.witnesses);
    if (verdicts.every(({ state }) => state === undefined)) throw error;
    return verdicts.map(({ state }) => state);
  }
}

/** Channels of one page and one request. */
const PAGE = 500;
/** A head this many blocks beyond the agreed one is far: ten seconds on Arc. Nearer blocks are soon agreed on. */
const FAR_BLOCKS = 20;
/** Newest blocks whose logs are read. The reads of all channels see what is older. */
const WARNED_BLOCKS = 1000;

const heights = z.tuple([z.object({ result: index })]);

interface WarningsOptions {
  readonly store: Pick<ChannelStore, 'get' | 'listUnclaimed'>;
  readonly reader: Pick<ChannelReader, 'readEach'>;
  readonly chain: Pick<ChainClient, 'each' | 'agreed'>;
  readonly alarms: Pick<WithdrawalAlarms, 'raise'>;
  readonly network: string;
  /** Milliseconds between two reads of every unclaimed channel, whatever the logs show. */
  readonly staleMs: number;
  readonly clock: Clock;
}

/**
 * For where no two providers agree on a head, or one is far beyond it: a silent or standing one must not hide
 * withdrawals. Nothing is noted. A head that one alone says is read from it: honest ones refuse blocks beyond theirs.
 */
function createWithdrawalWarnings(options: WarningsOptions) {
  const { chain, staleMs, clock } = options;
  let readAt = Number.NEGATIVE_INFINITY;

  /** The providers' heads, the highest first, where the agreed one shows too little. */
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
    /** Raises alarms by the providers' own heads; none is asked while the agreed head shows all. Rejects at the end. */
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

/** Channels with unclaimed charges by pages, the oldest charges first. */
export async function* unclaimedPages(store: Pick<ChannelStore, 'listUnclaimed'>, network: string) {
  for (let after: Parameters<ChannelStore['listUnclaimed']>[2]; ; ) {
    const page = await store.listUnclaimed(network, PAGE, after);
    yield page;
    const last = page.at(-1);
    if (page.length < PAGE || !last || last.unclaimedSince === null) return;
    after = { unclaimedSince: last.unclaimedSince, id: last.id };
  }
}

const endangers = (channel: Channel, state: ChannelState | null): boolean =>
  state !== null && channel.unclaimedSince !== null && isEndangered({ ...channel, state });

/** Reads of an unclaimed channel within a withdrawal's delay, whatever the logs show. */
const READS_A_DELAY = 12;

/** Logs that a round compares by two. More would let one that forges many of them spend the allowances of all. */
const MOST_CHECKS = 3;
/** Differing logs are compared this near the head, in blocks: a node that has pruned older ones shows none. */
const CHECKED_BLOCKS = 1000;

/** Shown by some providers and not by others. */
interface Doubted {
  readonly id: Uint8Array;
  readonly block: number;
}

interface WithdrawalWatchOptions {
  readonly store: Pick<ChannelStore, 'get' | 'note' | 'listUnclaimed' | 'listToRead'>;
  readonly reader: ChannelReader;
  readonly chain: Pick<ChainClient, 'batch' | 'each' | 'agreed'>;
  readonly alarms: WithdrawalAlarms;
  readonly network: string;
  readonly withdrawDelaySeconds: number;
  readonly clock: Clock;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

interface Named {
  readonly block: number;
  shownBy: number;
}

export function createWithdrawalWatch(options: WithdrawalWatchOptions) {
  const { store, chain, network, withdrawDelaySeconds, clock } = options;
  const staleMs = (withdrawDelaySeconds * 1000) / READS_A_DELAY;
  // The logs need no history: the first round reads every unclaimed channel, for payers who asked while no process ran.
  const startedMs = clock.nowMs();
  const readRanges = createBlockRanges((from, to) => readRange(options, { from, to, head }, doubted), MAX_LOG_SPAN);
  const doubted: Doubted[] = [];
  const checkLogs = createRounds(async () => {
    for (const one of doubted.splice(0)) await checkLog(options, one);
  }, options.log);
  const warnings = createWithdrawalWarnings({ ...options, staleMs });
  let head = 0;
  const isStale = ({ readAt, isConfirmed }: Channel): boolean =>
    !isConfirmed || readAt < startedMs || clock.nowMs() - readAt >= staleMs;

  /** Old states with charges come first. Then rejects with the first failure: what is unread hides no other. */
  async function readStale(): Promise<void> {
    const read: Promise<void>[] = [];
    const refresh = async (channels: readonly Channel[]): Promise<void> => {
      read.push(refreshChannels(options, channels, head));
      await read.at(-1)?.catch(() => {});
    };
    for await (const page of unclaimedPages(store, network)) await refresh(page.filter(isStale));
    for (let after: Uint8Array | undefined; ; ) {
      const page = await store.listToRead(network, head, PAGE, after);
      // Stale ones with charges were read above.
      await refresh(page.filter((channel) => channel.unclaimedSince === null || !isStale(channel)));
      after = page.at(-1)?.id;
      if (page.length < PAGE) return allTried(read);
    }
  }

  async function confirmed(): Promise<void> {
    // The watch over the heads has read it a moment ago.
    head = chain.agreed.lastHead() ?? (await chain.agreed.head({ rank: 'collect' }));
    // The newest logs of any provider warn although older ones cannot be read.
    await allTried([readStale(), readRanges(head).catch((error: unknown) => warnings.byLogs(head, error))]);
  }

  return {
    /** Tries logs, states, and what one provider shows beyond the agreed head. Then rejects; the next round goes on. */
    async run(): Promise<void> {
      const parts = [confirmed()];
      await Promise.allSettled(parts);
      // The claims follow this round, and do not wait for that.
      if (doubted.length > 0) void checkLogs();
      await allTried([...parts, warnings.run()]);
    },
    /** Resolves when no log is compared any more. Never rejects. */
    idle: checkLogs.idle,
  };
}

/** Reads the channels of ours that any provider's logs of these blocks name. Other sellers use the same contract. */
async function readRange(
  options: WithdrawalWatchOptions,
  { from, to, head }: { from: number; to: number; head: number },
  doubted: Doubted[],
): Promise<void> {
  const { chain, store, log } = options;
  const { logs, refusal } = await withdrawalLogs(chain, from, to);
  // One that answers alone may hide logs that the others refuse to look for. A refused span is halved.
  if (logs.length < Math.min(2, chain.agreed.witnesses)) throw refusal ?? new UpstreamFailed('chain', 'malformed logs');
  const named = new Map<string, Named>();
  for (const own of logs)
    for (const [id, block] of new Map(own.map((one) => [one.topics[1] ?? '', one.blockNumber]))) {
      const known = named.get(id) ?? { block, shownBy: 0 };
      named.set(id, { block, shownBy: known.shownBy + 1 });
    }
  const channels = (await Promise.all([...named.keys()].map((id) => store.get(hexToBytes(id))))).filter(
    (channel) => channel !== null,
  );
  if (channels.length === 0) return;
  log.info({ channels: channels.length }, 'payers have asked to withdraw money from their channels');
  for (const { id } of channels) {
    const { block, shownBy } = named.get(bytesToHex(id)) as Named;
    const isNear = head - block < CHECKED_BLOCKS;
    if (isNear && shownBy < logs.length && doubted.length < MOST_CHECKS) doubted.push({ id, block });
  }
  // Not at the end of the range: after an outage that is old, and nodes forget old states.
  const pages: Promise<void>[] = [];
  for (let start = 0; start < channels.length; start += PAGE) {
    pages.push(refreshChannels(options, channels.slice(start, start + PAGE), head));
    await Promise.allSettled(pages);
  }
  await allTried(pages);
}

/** Two decide about the block; who contradicts them is set apart. Nothing waits for it: the state is known by now. */
async function checkLog({ chain, log }: WithdrawalWatchOptions, { id, block }: Doubted): Promise<void> {
  log.warn({ channel: bytesToHex(id), block }, 'RPC providers differ about the log of a withdrawal');
  const topics = [WITHDRAW_INITIATED, bytesToHex(id)];
  await inEachTurn(chain, (turn) =>
    eventTransactionHashes(chain, topics, block, { rank: 'collect', span: 1, turn }),
  ).catch(() => {});
}

/** Asks each provider first once, because two that agree are not asked against a third. Rejects when all fail. */
async function inEachTurn<T>({ agreed }: Pick<ChainClient, 'agreed'>, ask: (turn: number) => Promise<T>): Promise<T> {
  const answers: T[] = [];
  let failure: unknown;
  for (let turn = 0; turn < agreed.witnesses; turn++) {
    await ask(turn).then(
      (answer) => answers.push(answer),
      (error: unknown) => {
        failure = error;
      },
    );
  }
  const [first] = answers;
  if (first === undefined) throw failure;
  return first;
}

/** Notes what two agree on. Alarms where one sees danger and no two agree. Rejects at the end by the first failure. */
async function refreshChannels(
  options: WithdrawalWatchOptions,
  channels: readonly Channel[],
  block: number,
): Promise<void> {
  if (channels.length === 0) return;
  const { store, reader, chain, alarms, clock } = options;
  const ids = channels.map(({ id }) => id);
  const each = await reader.readEach(ids, block, 'collect');
  const verdicts = compareStates(each, channels.length, chain.agreed.witnesses);
  // The confirmed read sets apart who contradicts two, so it follows wherever they differ.
  const differing = ids.filter((_, at) => !verdicts[at]?.isUnanimous || verdicts[at]?.state === undefined);
  const again = new Map<string, Promise<ChannelState | null>>();
  const read = inEachTurn(chain, (turn) => reader.read(differing, { rank: 'collect', atBlock: block, turn }));
  for (const [at, id] of differing.entries())
    again.set(
      bytesToHex(id),
      read.then((states) => states[at] ?? null),
    );
  await allTried(
    channels.map(async (channel, at) => {
      const key = bytesToHex(channel.id);
      const confirmed = await again.get(key)?.catch((error: unknown) => {
        if (verdicts[at]?.state !== undefined) return undefined;
        if (each.some((said) => endangers(channel, said[at] ?? null))) alarms.raise(channel.id, block);
        throw error;
      });
      const state = confirmed ?? verdicts[at]?.state;
      if (!state) throw new Error(`the channel ${key} cannot be read`);
      await store.note(channel, state, clock.nowMs());
      alarms.end(channel.id);
    }),
  );
}
