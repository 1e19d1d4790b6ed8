import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { Channel, ChannelStore } from '../../../store/ports/channels.ts';
import type { MinedTransaction } from '../../operation.ts';
import type { ChannelReader } from './channel-reader.ts';
import { type Batch, type BatchOptions, type Due, sortOut } from './claim-batch.ts';
import { type ClaimOperationsOptions, createClaimOperations } from './claim-operations.ts';
import { type ClaimLimits, isDue, rowOf, shortfallOf } from './claim-rows.ts';
import { readByTwo } from './states-by-two.ts';
import type { WithdrawalAlarms } from './withdrawal-alarms.ts';
import { unclaimedPages } from './withdrawal-warnings.ts';

/** Rows of one transaction, as the scheme's own seller claims them. 100 rows use 2.4 million gas and 48 KB of calldata. */
const MOST_ROWS = 100;
/** An agreed block this far behind an alarm's does not deny it. A payer's withdrawal in between is not shown there. */
const FAR_BLOCKS = 20;
/**
 * Milliseconds after which a row that was set aside is simulated again. Its channel sells nothing until nothing is left
 * to claim.
 */
const ASIDE_MS = 60_000;

const REFUSED =
  'ALERT: the contract refuses a claim of a payment channel; it takes no voucher until nothing is left to claim';

interface ClaimsOptions
  extends Omit<ClaimOperationsOptions, 'store' | 'scheme' | 'chain' | 'reader'>,
    Omit<BatchOptions, 'scheme' | 'log' | 'chain'> {
  readonly chain: ClaimOperationsOptions['chain'] & BatchOptions['chain'];
  readonly store: ClaimOperationsOptions['store'] &
    Pick<ChannelStore, 'listUnclaimed' | 'note' | 'writeOff' | 'refuseClaim' | 'begin' | 'operation'>;
  readonly scheme: ClaimOperationsOptions['scheme'] & BatchOptions['scheme'];
  readonly network: string;
  readonly limits: ClaimLimits;
  readonly reader: ClaimOperationsOptions['reader'] & Pick<ChannelReader, 'readEach'>;
  /** The channels that are claimed early. */
  readonly alarms: WithdrawalAlarms;
  readonly log: { warn(detail: object, message: string): void; error(detail: object, message: string): void };
}

/** What a round did. Amounts in base units of the token. */
export interface ClaimReport {
  readonly claimed: bigint;
  readonly writtenOff: bigint;
  /** Channels that could not be claimed and were set aside. */
  readonly setAside: number;
}

/**
 * Claims what vouchers have charged, for many channels in one transaction, and sweeps it to the receiver in the same transaction. Rounds follow one
 * another: a second call waits for the first. Each row claims what was charged, and never what the payer signed for beyond that.
 */
export function createClaims(options: ClaimsOptions) {
  const { limits, alarms, clock } = options;
  const { operations, aside, early, claimSome } = createTransactions(options);
  let running: Promise<unknown> = Promise.resolve();

  async function round(takesAll: boolean, signal: AbortSignal): Promise<ClaimReport> {
    await operations.resume(signal);
    await early.note();
    const isTaken = (channel: Channel): boolean =>
      !aside.has(channel) && (takesAll || alarms.isDue(channel.id) || isDue(channel, limits, clock.nowMs()));
    const channels = await listUnclaimed(options, isTaken);
    const total = { claimed: 0n, writtenOff: 0n, setAside: 0 };
    for (let start = 0; start < channels.length && !signal.aborted; start += MOST_ROWS) {
      const part = await claimSome(channels.slice(start, start + MOST_ROWS), takesAll, signal);
      total.claimed += part.claimed;
      total.writtenOff += part.writtenOff;
      total.setAside += part.setAside;
    }
    return total;
  }

  return {
    /**
     * One round: ends what an earlier round left open, then claims the channels that are due, or all (`takesAll`). Rejects when the chain or the
     * ledger cannot be read; the next round goes on.
     */
    run(takesAll: boolean, signal: AbortSignal): Promise<ClaimReport> {
      const next = running.catch(() => {}).then(() => round(takesAll, signal));
      running = next;
      return next;
    },
  };
}

/** Claims channels that one transaction takes, and sets those aside that the contract refuses. */
function createTransactions(options: ClaimsOptions) {
  const { store, limits, network, alarms, clock, log } = options;
  const operations = createClaimOperations(options);
  const aside = createAside(clock);
  const claimed = createClaimedBlocks();

  const carryOut: CarryOut = async (
    { due, calldata, block },
    { id = randomUUID(), leastBlock = block, onMined } = {},
  ) => {
    const amount = due.reduce((sum, { channel, row }) => sum + row.totalClaimed - channel.state.totalClaimed, 0n);
    await store.begin({ id, network, kind: 'claim', channelId: null, amount, calldata, createdAt: clock.nowMs() });
    const row = await store.operation(id);
    const done = row && (await operations.carryOut(row, { leastBlock, ...(onMined && { onMined }) }));
    if (done) claimed.note(due, done.block);
    return done?.amount ?? 0n;
  };
  const early = createEarlyClaims(options, aside, carryOut);

  /** Claims some channels in one transaction. */
  async function claimSome(channels: readonly Channel[], takesAll: boolean, signal: AbortSignal): Promise<ClaimReport> {
    const isEarly = ({ id }: Channel) => alarms.isDue(id);
    const fresh = await refresh(options, channels, signal).catch((error: unknown) => {
      // No two providers agree. What one of them says is in danger is claimed as the ledger has it, and nothing else.
      if (!channels.some(isEarly)) throw error;
      return null;
    });
    if (!fresh) return early.claim(channels.filter(isEarly), signal);
    const known = new Set(fresh.map(({ id }) => bytesToHex(id)));
    const unread = channels.filter((channel) => isEarly(channel) && !known.has(bytesToHex(channel.id)));
    // Two agree now. A channel that was taken for an alarm alone is left where they deny it.
    const isDenied = (channel: Channel) => isEarly(channel) && !takesAll && !isDue(channel, limits, clock.nowMs());
    const denied = new Set(fresh.filter(isDenied));
    // What they agree on may be a block that the provider with the alarm has left far behind. That denies nothing.
    const isBehind = ({ id, state }: Channel) => (alarms.blockOf(id) ?? 0) > state.block + FAR_BLOCKS;
    const ahead = [...denied].filter(isBehind);
    for (const channel of fresh) if (!isBehind(channel)) alarms.end(channel.id);
    const taken = fresh.filter((channel) => !denied.has(channel) && claimed.isShown(channel));
    let writtenOff = 0n;
    for (const channel of fresh) writtenOff += await writeOff(options, channel);
    const { good, bad } = await sortOut(options, taken.flatMap(dueOf), signal);
    for (const { due, reason } of bad) {
      aside.add(due.channel);
      await store.refuseClaim(due.channel.id, clock.nowMs());
      const detail = { channel: bytesToHex(due.channel.id), charged: String(due.channel.charged), reason };
      if (due.channel.claimRefusedAt === null) log.error(detail, REFUSED);
    }
    const amount = good ? await carryOut(good) : 0n;
    const more = await early.claim([...ahead, ...unread], signal);
    await refresh(options, fresh, signal);
    return { claimed: amount + more.claimed, writtenOff, setAside: bad.length + more.setAside };
  }

  return { operations, aside, early, claimSome };
}

/** How a claim of these rows is carried out. Returns what was claimed; 0 unless it ended as done. */
type CarryOut = (
  batch: Batch,
  more?: {
    readonly id?: string;
    readonly leastBlock?: number | null;
    readonly onMined?: (receipt: MinedTransaction) => void;
  },
) => Promise<bigint>;

/**
 * Claims channels as the ledger has them, each once. A row that the contract refuses proves nothing about a state that
 * no two agree on. It waits, and so does one whose claim recorded nothing: a liar must not burn gas each round.
 */
function createEarlyClaims(options: ClaimsOptions, aside: ReturnType<typeof createAside>, carryOut: CarryOut) {
  const { store, alarms } = options;
  /** The channels of each early claim whose end is not noted, by operation. */
  const open = new Map<string, readonly Channel[]>();

  /**
   * Notes the early claims that have ended, also those that a later round carried out. One that failed counts for none.
   */
  async function note(): Promise<void> {
    for (const [id, channels] of open) {
      const state = (await store.operation(id))?.state;
      if (state === 'open') continue;
      open.delete(id);
      if (state === 'done') for (const channel of channels) alarms.noteClaim(channel.id);
    }
  }

  async function claimAt(block: number | null, channels: readonly Channel[], signal: AbortSignal) {
    const { good, bad } = await sortOut(options, channels.flatMap(dueOf), signal, block ?? undefined);
    for (const { due } of bad) aside.add(due.channel);
    if (!good) return { claimed: 0n, setAside: bad.length };
    const id = randomUUID();
    const taken = good.due.map(({ channel }) => channel);
    open.set(id, taken);
    const isReached = good.block <= (options.chain.agreed.lastHead() ?? 0);
    const more = { id, onMined: alarms.noteCost, leastBlock: isReached ? good.block : null };
    const claimed = await carryOut(good, more);
    await note();
    if (claimed === 0n) for (const channel of taken) aside.add(channel);
    return { claimed, setAside: bad.length };
  }

  async function claim(channels: readonly Channel[], signal: AbortSignal): Promise<ClaimReport> {
    const total = { claimed: 0n, writtenOff: 0n, setAside: 0 };
    const failures: unknown[] = [];
    // A block that one provider alone invents must not keep the others from being simulated.
    for (const [block, some] of Map.groupBy(channels, ({ id }) => alarms.blockOf(id))) {
      const part = await claimAt(block, some, signal).catch((error: unknown) => void failures.push(error));
      total.claimed += part?.claimed ?? 0n;
      total.setAside += part?.setAside ?? 0;
    }
    if (failures.length > 0) throw failures[0];
    return total;
  }

  return { note, claim };
}

/** Channels whose row the contract refuses, with what was charged then and the time of the next try. */
function createAside(clock: Clock) {
  const aside = new Map<string, { charged: bigint; untilMs: number }>();

  return {
    add: ({ id, charged }: Channel): void =>
      void aside.set(bytesToHex(id), { charged, untilMs: clock.nowMs() + ASIDE_MS }),
    /** Forgets a channel that is to be tried again. */
    has({ id, charged }: Channel): boolean {
      const key = bytesToHex(id);
      const known = aside.get(key);
      const isAside = known !== undefined && known.charged === charged && clock.nowMs() < known.untilMs;
      if (!isAside) aside.delete(key);
      return isAside;
    },
  };
}

/** The blocks of the last claims. A provider that is behind shows a channel as it was before its claim, which would then be sent once more. */
function createClaimedBlocks() {
  const blocks = new Map<string, number>();

  return {
    note(due: readonly Due[], block: number): void {
      for (const { channel } of due) blocks.set(bytesToHex(channel.id), block);
    },
    /** Whether the channel's state is one from after its last claim. */
    isShown({ id, state }: Channel): boolean {
      const key = bytesToHex(id);
      const isShown = state.block >= (blocks.get(key) ?? 0);
      if (isShown) blocks.delete(key);
      return isShown;
    },
  };
}

function dueOf(channel: Channel): Due[] {
  const row = rowOf(channel);
  return row ? [{ channel, row }] : [];
}

/** Lists the channels with unclaimed charges that are taken, page by page. */
async function listUnclaimed({ store, network }: ClaimsOptions, isTaken: (channel: Channel) => boolean) {
  const taken: Channel[] = [];
  for await (const page of unclaimedPages(store, network)) taken.push(...page.filter(isTaken));
  return taken;
}

/** Reads these channels from the chain and notes their states. Returns those that could be read, as they are now. The others wait for the next round. */
async function refresh(
  { store, reader, chain, clock }: ClaimsOptions,
  channels: readonly Channel[],
  signal: AbortSignal,
) {
  const ids = channels.map(({ id }) => id);
  const states = await readByTwo(reader, chain, ids, signal);
  const noted = channels.flatMap((channel, at) => {
    const state = states[at];
    return state ? [store.note(channel, state, clock.nowMs())] : [];
  });
  return Promise.all(noted);
}

/** Writes off what the channel's balance can no longer cover. Returns the amount. */
async function writeOff({ store, log }: ClaimsOptions, channel: Channel): Promise<bigint> {
  const amount = shortfallOf(channel);
  if (amount === 0n || !(await store.writeOff(channel.id, amount, channel.charged))) return 0n;
  const detail = { channel: bytesToHex(channel.id), amount: String(amount) };
  log.error(detail, 'charges of a payment channel are written off: its balance is gone');
  return amount;
}
