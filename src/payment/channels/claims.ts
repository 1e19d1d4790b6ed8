import { randomUUID } from 'node:crypto';
import type { ChainClient } from '../../chain/rpc/client.ts';
import { RpcError, toQuantity } from '../../chain/rpc/wire.ts';
import { UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/common.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import { signRecoverable } from '../../lib/secp256k1.ts';
import type { Channel, ChannelOperation, ChannelStore, OperationEnd } from '../../store/ports/channels.ts';
import type { MinedTransaction, Operation, OperationDone, Relayer } from '../settler.ts';
import { receiptOf } from '../usdc/evidence.ts';
import { isRevert } from '../usdc/payer-reads.ts';
import {
  type ClaimRow,
  channelEvents,
  claimCalldata,
  claimedRows,
  eventTransactionHashes,
  multicallCalldata,
  settleCalldata,
} from './calldata.ts';
import type { ChannelReader } from './channel.ts';
import { type ClaimBounds, isDue, rowOf, shortfallOf, type WithdrawalAlarms } from './claim-health.ts';
import { type Scheme, SETTLEMENT } from './scheme.ts';
import { readByTwo, unclaimedPages } from './withdrawals.ts';

// Claims what vouchers have charged, many channels in one transaction, and sweeps it to the receiver. A round:
// 1. Ends the claims that an earlier round or process left open.
// 2. Reads the due channels by two providers. Writes off what their balances no longer cover.
// 3. Simulates the rows, and sets aside those that the contract refuses.
// 4. Stores the claim and hands it to the relayer. The chain's logs show its end.
// 5. Claims early, as the ledger has them, the channels that one provider alone says are in danger.

/** Rows of one transaction, as the scheme's own seller claims them. 100 use 2.4 million gas and 48 KB of calldata. */
const MOST_ROWS = 100;
/** An agreed block this far behind an alarm's denies nothing: the payer's withdrawal may lie in between. */
const FAR_BLOCKS = 20;
/** Milliseconds until a row that was set aside is tried again. One that the contract refused sells nothing. */
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
  readonly bounds: ClaimBounds;
  readonly reader: ClaimOperationsOptions['reader'] & Pick<ChannelReader, 'readEach'>;
  readonly alarms: WithdrawalAlarms;
  readonly log: Pick<Log, 'warn' | 'error'>;
}

/** What a round did. Base units of the token. */
export interface ClaimReport {
  readonly claimed: bigint;
  readonly writtenOff: bigint;
  readonly setAside: number;
}

/** Rounds of claims. A second call waits for the first. */
export function createClaims(options: ClaimsOptions) {
  const { store, network, bounds, alarms, clock } = options;
  const { operations, aside, early, claimBatch } = createTransactions(options);
  let running: Promise<unknown> = Promise.resolve();

  async function round(takesAll: boolean, signal: AbortSignal): Promise<ClaimReport> {
    await operations.resume(signal);
    await early.note();
    const isTaken = (channel: Channel): boolean =>
      !aside.has(channel) && (takesAll || alarms.isDue(channel.id) || isDue(channel, bounds, clock.nowMs()));
    const channels: Channel[] = [];
    for await (const page of unclaimedPages(store, network)) channels.push(...page.filter(isTaken));
    const total = { claimed: 0n, writtenOff: 0n, setAside: 0 };
    for (let start = 0; start < channels.length && !signal.aborted; start += MOST_ROWS) {
      const part = await claimBatch(channels.slice(start, start + MOST_ROWS), takesAll, signal);
      total.claimed += part.claimed;
      total.writtenOff += part.writtenOff;
      total.setAside += part.setAside;
    }
    return total;
  }

  return {
    /** Over due channels, or all (`takesAll`). Rejects when chain or ledger cannot be read; the next round goes on. */
    run(takesAll: boolean, signal: AbortSignal): Promise<ClaimReport> {
      const next = running.catch(() => {}).then(() => round(takesAll, signal));
      running = next;
      return next;
    },
  };
}

function createTransactions(options: ClaimsOptions) {
  const { store, bounds, network, alarms, clock, log } = options;
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

  const isAlarmed = ({ id }: Channel): boolean => alarms.isDue(id);
  const isBehind = ({ id, state }: Channel): boolean => (alarms.blockOf(id) ?? 0) > state.block + FAR_BLOCKS;

  /** Two providers agree on these. One due by an alarm alone is not taken; `ahead`: they are too old to deny it. */
  function heedAlarms(fresh: readonly Channel[], takesAll: boolean) {
    const isDenied = (channel: Channel) => isAlarmed(channel) && !takesAll && !isDue(channel, bounds, clock.nowMs());
    const denied = new Set(fresh.filter(isDenied));
    const ahead = [...denied].filter(isBehind);
    for (const channel of fresh) if (!isBehind(channel)) alarms.end(channel.id);
    return { taken: fresh.filter((channel) => !denied.has(channel) && claimed.isShown(channel)), ahead };
  }

  async function setAside(bad: Sorted['bad']): Promise<void> {
    for (const { due, reason } of bad) {
      aside.add(due.channel);
      await store.refuseClaim(due.channel.id, clock.nowMs());
      const detail = { channel: bytesToHex(due.channel.id), charged: String(due.channel.charged), reason };
      if (due.channel.claimRefusedAt === null) log.error(detail, REFUSED);
    }
  }

  /** Steps 2 to 5, for the channels of one transaction. */
  async function claimBatch(channels: readonly Channel[], takesAll: boolean, signal: AbortSignal) {
    const fresh = await refresh(options, channels, signal).catch((error: unknown) => {
      if (!channels.some(isAlarmed)) throw error;
      return null;
    });
    // No two providers agree. Only what one of them says is in danger is claimed, as the ledger has it.
    if (!fresh) return early.claim(channels.filter(isAlarmed), signal);
    const read = new Set(fresh.map(({ id }) => bytesToHex(id)));
    const unread = channels.filter((channel) => isAlarmed(channel) && !read.has(bytesToHex(channel.id)));
    const { taken, ahead } = heedAlarms(fresh, takesAll);
    let writtenOff = 0n;
    for (const channel of fresh) writtenOff += await writeOff(options, channel);
    const { good, bad } = await sortOut(options, taken.flatMap(dueOf), signal);
    await setAside(bad);
    const amount = good ? await carryOut(good) : 0n;
    const more = await early.claim([...ahead, ...unread], signal);
    await refresh(options, fresh, signal);
    return { claimed: amount + more.claimed, writtenOff, setAside: bad.length + more.setAside };
  }

  return { operations, aside, early, claimBatch };
}

/** Carries out a claim of these rows. Returns what was claimed; 0 unless it ended as done. */
type CarryOut = (batch: Batch, more?: CarryOutHow & { readonly id?: string }) => Promise<bigint>;

/** Claims channels as the ledger has them, once. What fails is set aside: a liar must not burn gas each round. */
function createEarlyClaims(options: ClaimsOptions, aside: ReturnType<typeof createAside>, carryOut: CarryOut) {
  const { store, alarms } = options;
  const open = new Map<string, readonly Channel[]>();

  /** Notes which early claims have ended, also in a later round. One that failed counts for none. */
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

/** The blocks of the last claims. A provider behind one shows the channel as before, and it would be claimed twice. */
function createClaimedBlocks() {
  const blocks = new Map<string, number>();

  return {
    note(due: readonly Due[], block: number): void {
      for (const { channel } of due) blocks.set(bytesToHex(channel.id), block);
    },
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

/** Reads channels and notes their states. Returns those that could be read; the others wait for the next round. */
async function refresh(options: ClaimsOptions, channels: readonly Channel[], signal: AbortSignal) {
  const { store, reader, chain, clock } = options;
  const ids = channels.map(({ id }) => id);
  const states = await readByTwo(reader, chain, ids, signal);
  const noted = channels.flatMap((channel, at) => {
    const state = states[at];
    return state ? [store.note(channel, state, clock.nowMs())] : [];
  });
  return Promise.all(noted);
}

async function writeOff({ store, log }: ClaimsOptions, channel: Channel): Promise<bigint> {
  const amount = shortfallOf(channel);
  if (amount === 0n || !(await store.writeOff(channel.id, amount, channel.charged))) return 0n;
  const detail = { channel: bytesToHex(channel.id), amount: String(amount) };
  log.error(detail, 'charges of a payment channel are written off: its balance is gone');
  return amount;
}

interface BatchOptions {
  readonly chain: Pick<ChainClient, 'each' | 'agreed'>;
  readonly scheme: Pick<Scheme, 'claimDigest'>;
  /** The key of `receiverAuthorizer`, 32 bytes. It needs no funds. */
  readonly authorizerKey: Uint8Array;
  /** 20 bytes each. */
  readonly receiver: Uint8Array;
  readonly token: Uint8Array;
  /** The relayer's address, which simulations have as the sender. */
  readonly sender: `0x${string}`;
  readonly log: Pick<Log, 'warn'>;
}

export interface Due {
  readonly channel: Channel;
  readonly row: ClaimRow;
}

interface Batch {
  readonly due: readonly Due[];
  readonly calldata: Uint8Array;
  /** Where they were simulated: not older than the channels' states. */
  readonly block: number;
}

interface Sorted {
  /** Null when no row is left. */
  readonly good: Batch | null;
  readonly bad: readonly { readonly due: Due; readonly reason: string }[];
}

/**
 * One refused row reverts all, so rows are split until it is alone. At `alarmBlock` one provider's word is enough, as
 * it alone may have that block. Where only the sweep is refused (a blocked receiver), the claim goes without.
 */
export async function sortOut(
  options: BatchOptions,
  due: readonly Due[],
  signal: AbortSignal,
  alarmBlock?: number,
): Promise<Sorted> {
  const good: Due[] = [];
  const bad: { due: Due; reason: string }[] = [];
  if (due.length === 0) return { good: null, bad };
  const head = alarmBlock ?? (await options.chain.agreed.head({ rank: 'settle', signal }));
  const block = due.reduce((newest, { channel }) => Math.max(newest, channel.state.block), head);
  const enough = alarmBlock === undefined ? 2 : 1;
  const refusal = (calldata: Uint8Array, rows: number) =>
    whyRefused(options, { calldata, gas: claimGas(rows), block, enough }, signal);
  async function sort(some: readonly Due[]): Promise<void> {
    const reason = some.length === 0 ? null : await refusal(claimOf(options, some), some.length);
    if (reason === null) return void good.push(...some);
    const [only] = some;
    if (some.length === 1 && only) return void bad.push({ due: only, reason });
    const half = Math.ceil(some.length / 2);
    await sort(some.slice(0, half));
    await sort(some.slice(half));
  }
  await sort(due);
  if (good.length === 0) return { good: null, bad };
  const claim = claimOf(options, good);
  const swept = multicallCalldata([claim, settleCalldata(options.receiver, options.token)]);
  const reason = await refusal(swept, good.length);
  if (reason !== null) options.log.warn({ reason }, 'claims are not paid out: the sweep is refused');
  return { good: { due: good, calldata: reason === null ? swept : claim, block }, bad };
}

interface Simulated {
  readonly calldata: Uint8Array;
  readonly gas: bigint;
  readonly block: number;
  /** Providers that must refuse it, where that many are configured: it stops a channel's sales. 2 by default. */
  readonly enough?: number;
}

/** Null when the contract takes it. `enough` must refuse it, and more than take it. Rejects when too few answer. */
export async function whyRefused(
  { chain, sender }: Pick<BatchOptions, 'chain' | 'sender'>,
  { calldata, gas, block, enough = 2 }: Simulated,
  signal?: AbortSignal,
): Promise<string | null> {
  const call = { from: sender, to: SETTLEMENT, data: bytesToHex(calldata), gas: toQuantity(gas) };
  const calls = [{ method: 'eth_call', params: [call, toQuantity(block)] }];
  const outcomes = (await chain.each(calls, { rank: 'settle', ...(signal && { signal }) })).map(([outcome]) => outcome);
  const errors = outcomes.flatMap((outcome) => (outcome && 'error' in outcome ? [outcome.error] : []));
  const refusals = errors.filter((error) => error instanceof RpcError && isRevert(error));
  const taken = outcomes.filter((outcome) => outcome && 'result' in outcome).length;
  if (taken > 0 && taken >= refusals.length) return null;
  const [first] = refusals;
  if (first && refusals.length >= Math.min(enough, chain.agreed.witnesses)) return first.message;
  throw (
    errors.find((error) => !refusals.includes(error)) ?? new UpstreamFailed('chain', 'too few providers simulate it')
  );
}

function claimOf({ scheme, authorizerKey }: BatchOptions, due: readonly Due[]): Uint8Array {
  const entries = due.map(({ channel, row }) => ({ channelId: channel.id, ...row }));
  const rows = due.map(({ row }) => row);
  return claimCalldata(rows, signRecoverable(scheme.claimDigest(entries), authorizerKey));
}

/** The embedded network uses 23,900 a row and 75,000 besides. Arc's USDC makes the sweep dearer. Unused gas is free. */
const CLAIM_GAS = { base: 250_000n, row: 40_000n };
/** keccak256 of `Claimed(bytes32,address,uint128,uint128)`. */
const CLAIMED = '0x36bd546bb573e8921fdbfd934bbed62d872796b01792cd240cce27f79dd3eddd';
const RECORDED = 'its rows are recorded by a transaction that the logs do not show';

interface ClaimOperationsOptions {
  readonly store: Pick<ChannelStore, 'noteBroadcast' | 'end' | 'openOperations' | 'findDone'>;
  readonly relayer: Pick<Relayer, 'operate'>;
  readonly reader: Pick<ChannelReader, 'read'>;
  readonly chain: Pick<ChainClient, 'batch'>;
  readonly scheme: Pick<Scheme, 'channelId'>;
  readonly fencingToken?: number | undefined;
  readonly clock: Clock;
}

interface Recorded {
  readonly channelId: Uint8Array;
  readonly totalClaimed: bigint;
}

/** `leastBlock`: of the simulation; null where no two providers are there. `onMined`: for each transaction with it. */
interface CarryOutHow {
  readonly leastBlock?: number | null;
  readonly onMined?: (receipt: MinedTransaction) => void;
}

export function claimGas(rows: number): bigint {
  return CLAIM_GAS.base + BigInt(rows) * CLAIM_GAS.row;
}

export function createClaimOperations(options: ClaimOperationsOptions) {
  const { store, relayer, clock, fencingToken } = options;

  function operationOf({ id, transaction }: ChannelOperation, calldata: Uint8Array, more: CarryOutHow): Operation {
    const rows = rowsOf(options, calldata);
    const { leastBlock = 0 } = more;
    return {
      id,
      to: hexToBytes(SETTLEMENT),
      data: calldata,
      gas: claimGas(rows.length),
      broadcast: transaction !== null,
      ...(leastBlock !== null && { leastBlock }),
      readReceipt: (receipt) => {
        more.onMined?.(receipt);
        return claimedIn(receipt, rows);
      },
      lookUp: async (signal) => {
        const found = await lookUp(options, rows, signal);
        return found === 'recorded' ? null : found;
      },
      note: async (noted) => (await store.noteBroadcast([{ id, transaction: noted }], fencingToken)).has(id),
    };
  }

  /** An unknown end leaves the claim's row open. Returns what was claimed; null unless it ended as done. */
  async function carryOut(row: ChannelOperation, more: CarryOutHow = {}): Promise<OperationDone | null> {
    const { id, calldata } = row;
    if (!calldata) return null;
    const outcome = await relayer.operate(operationOf(row, calldata, more));
    if (outcome.kind === 'unknown') return null;
    await store.end(id, endOf(outcome, clock.nowMs()));
    return outcome.kind === 'done' ? outcome : null;
  }

  return {
    carryOut,
    /**
     * Ends the open claims that the chain shows and sends the others: the contract skips what is recorded. Rejects when
     * an end is unread: a second claim could take the first one's transaction for its own.
     */
    async resume(signal: AbortSignal): Promise<void> {
      const open = (await store.openOperations(MOST_OPEN)).filter(({ kind }) => kind === 'claim');
      for (const row of open) {
        const shown = await shownEnd(options, row, signal);
        const end = shown === 'recorded' ? ({ kind: 'failed', reason: RECORDED } as const) : shown;
        if (end) await store.end(row.id, endOf(end, clock.nowMs()));
        else await carryOut(row);
      }
    },
  };
}

function rowsOf({ scheme }: Pick<ClaimOperationsOptions, 'scheme'>, calldata: Uint8Array): Recorded[] {
  return claimedRows(calldata).map(({ config, totalClaimed }) => ({
    channelId: scheme.channelId(config),
    totalClaimed,
  }));
}

/** Open operations that a round looks at. There is one at a time, unless rounds ended as unknown. */
const MOST_OPEN = 100;

function endOf(
  outcome: OperationDone | { readonly kind: 'failed'; readonly reason: string },
  endedAt: number,
): OperationEnd {
  if (outcome.kind === 'failed') return { state: 'failed', reason: outcome.reason, endedAt };
  return { state: 'done', amount: outcome.amount, transaction: outcome.transaction, endedAt };
}

/** Null where it recorded nothing: a row from before has no event. A transaction records all of its rows or none. */
function claimedIn(receipt: MinedTransaction, rows: readonly Recorded[]): OperationDone | null {
  const wanted = new Map(rows.map(({ channelId, totalClaimed }) => [bytesToHex(channelId), totalClaimed]));
  const claimed = channelEvents(receipt).flatMap((event) =>
    event.kind === 'Claimed' && wanted.get(bytesToHex(event.channelId)) === event.totalClaimed ? [event.amount] : [],
  );
  if (claimed.length === 0) return null;
  const transaction = hexToBytes(receipt.transactionHash);
  const amount = claimed.reduce((sum, each) => sum + each, 0n);
  return { kind: 'done', transaction, block: Number(receipt.blockNumber), amount };
}

/** Null without a noted transaction or a shown end. A noted one counts, unless another operation has ended by it. */
async function shownEnd(
  options: ClaimOperationsOptions,
  { transaction, calldata }: ChannelOperation,
  signal: AbortSignal,
): Promise<OperationDone | 'recorded' | null> {
  if (!transaction || !calldata) return null;
  const rows = rowsOf(options, calldata);
  const noted = await receiptOf(options.chain, bytesToHex(transaction), { rank: 'settle', signal });
  const done = noted && claimedIn(noted, rows);
  if (done && !(await options.store.findDone(transaction))) return done;
  return lookUp(options, rows, signal);
}

/**
 * Done: all rows are recorded, and the logs show a transaction with one that ended no other operation. `recorded`: no
 * such transaction, and nothing to send. Null: a row is not recorded. Rejects when chain or ledger are unread.
 */
async function lookUp(
  options: ClaimOperationsOptions,
  rows: readonly Recorded[],
  signal: AbortSignal,
): Promise<OperationDone | 'recorded' | null> {
  const { chain, reader, store } = options;
  const states = await reader.read(
    rows.map(({ channelId }) => channelId),
    { signal },
  );
  const isRecorded = rows.every(({ totalClaimed }, at) => (states[at]?.totalClaimed ?? 0n) >= totalClaimed);
  if (!isRecorded) return null;
  const readAt = states[0]?.block ?? 0;
  const topics = [CLAIMED, rows.map(({ channelId }) => bytesToHex(channelId))];
  for (const hash of new Set((await eventTransactionHashes(chain, topics, readAt, { signal })).reverse())) {
    if (await store.findDone(hexToBytes(hash))) continue;
    const receipt = await receiptOf(chain, hash, { rank: 'settle', signal });
    if (!receipt) throw new UpstreamFailed('chain', 'the transaction of a claim cannot be read');
    const done = claimedIn(receipt, rows);
    if (done) return done;
  }
  return 'recorded';
}
