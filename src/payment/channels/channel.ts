import type { SettleResponse } from '@x402/core/types';
import type { Hex } from 'viem';
import { decodeFunctionResult, encodeFunctionData, parseAbi, toFunctionSelector } from 'viem/utils';
import { readAtBlock } from '../../chain/named-block.ts';
import type { ChainClient } from '../../chain/rpc/client.ts';
import { isChainBusy } from '../../chain/rpc/failover.ts';
import {
  data,
  parseAnswer,
  type Rank,
  type RpcCall,
  type RpcOptions,
  type RpcOutcome,
  resultOf,
  toQuantity,
} from '../../chain/rpc/wire.ts';
import { Unconfirmed } from '../../chain/rpc/witnesses.ts';
import type { Config } from '../../config.ts';
import { Unavailable, UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { bytesToHex } from '../../lib/hex.ts';
import { createSharedReads } from '../../lib/limits/queue.ts';
import type { ChannelConfig, ChannelState } from '../../store/ports/channel-state.ts';
import type { Channel, ChannelStore } from '../../store/ports/channels.ts';
import type { ChannelAfter, Payment } from '../../store/ports/payments.ts';
import { isSameBuyer } from '../known-payment.ts';
import { hashClient } from '../ledger.ts';
import type { Identifier } from '../protocol.ts';
import type { Asker, MakeRequirement, UsdcCall } from '../rail.ts';
import { type Correction, PaymentRefused } from '../refusal.ts';
import type { SaleContext } from '../sale.ts';
import { type SettlerStatus, transactionText } from '../settler.ts';
import { hexWord, MULTICALL3 } from '../usdc/token.ts';
import { type ChannelPayload, type ChannelTerms, reason, SCHEME, type Scheme, SETTLEMENT } from './scheme.ts';
import type { Turns } from './turns.ts';

// A channel's state on the chain, its row in the ledger, and what its payer is shown of both.
// 1. The book: rows with a state that is young enough to sell on, and confirmed by two providers.
// 2. The reader: states of many channels at one block that we name. Buyers share requests.
// 3. The end of rows without a sale. Receipts and corrections. Who the buyer of an earlier sale is.

/** Milliseconds for which a state counts without a new read, at the most. A third of a short delay counts instead. */
const MOST_FRESH_MS = 300_000;
/** Milliseconds in which a state is not read again: a buyer may ask at every block. */
const LEAST_AGE_MS = 2000;

type ReadChannel = (id: Uint8Array, asker: Asker) => Promise<ChannelState>;

/** A channel without a sale. */
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

/** A state so many blocks beyond our head is not believed: ten seconds on Arc. Another process may have a newer one. */
const AHEAD_BLOCKS = 20;
/** Seconds until a buyer may ask again while the channel is not sold on. */
const RETRY_SECONDS = 5;

interface ChannelBookOptions {
  store: Pick<ChannelStore, 'get' | 'note'>;
  read: ReadChannel;
  network: string;
  withdrawDelaySeconds: number;
  /** The head that two providers agreed on last; null where it is not known. */
  lastHead(): number | null;
  clock: Clock;
}

/** Channels to sell on. Throws Unavailable (`settlement_unavailable`) for an unconfirmed state and a refused claim. */
export function createChannelBook(options: ChannelBookOptions) {
  const { store, read, network, clock } = options;
  const { readNow, fresh } = createFreshStates(options);

  const keep = (channel: Channel): Promise<Channel> => store.note(channel, channel.state, channel.readAt);

  /** Not in the ledger. A channel with claims was charged by a ledger that is lost, and gets its row at once. */
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
    /** Reads the chain where needed. A request can name any channel: a new one (`isNew`) has no row before `keep`. */
    look,
    fresh,
    keep,
    /** Looks and keeps. A new channel without a deposit gets no row: throws PaymentRefused (`channel_not_found`). */
    open: async (id: Uint8Array, config: ChannelConfig, asker: Asker): Promise<Channel> => {
      const { channel, isNew } = await look(id, config, asker);
      if (isNew && channel.state.balance === 0n) throw new PaymentRefused(reason('channel_not_found'));
      return isNew ? keep(channel) : channel;
    },
    reread: async (channel: Channel, asker: Asker): Promise<Channel> =>
      clock.nowMs() - channel.readAt < LEAST_AGE_MS ? channel : readNow(channel.id, channel, asker),
  };
}

function createFreshStates({ store, read, network, withdrawDelaySeconds, lastHead, clock }: ChannelBookOptions) {
  const freshMs = Math.min(MOST_FRESH_MS, (withdrawDelaySeconds * 1000) / 3);
  const reading = new Set<string>();

  async function readNow(id: Uint8Array, config: ChannelConfig, asker: Asker): Promise<Channel> {
    return store.note({ ...config, id, network }, await read(id, asker), clock.nowMs());
  }

  /** Reads while the sale goes on, so that the next sales need not wait. */
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

  /** A read of a block before the ledger's own state leaves that state, as old as before. */
  function stillFresh(channel: Channel): Channel {
    if (clock.nowMs() - channel.readAt > freshMs) throw unconfirmed();
    return channel;
  }

  /** Of a row read a moment ago. Reads the chain where its state is too old, or is not to be believed. */
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

const views = parseAbi([
  'function channels(bytes32 id) view returns (uint128 balance, uint128 totalClaimed)',
  'function pendingWithdrawals(bytes32 id) view returns (uint128 amount, uint40 initiatedAt)',
  'function refundNonce(bytes32 id) view returns (uint256)',
]);
const multicall = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) payable returns (Result[] returnData)',
  'function getBlockNumber() view returns (uint256)',
]);
/** Selectors. A library's encoder hashes each function's name again at every call. */
const VIEWS = ['channels', 'pendingWithdrawals', 'refundNonce'].map((name) => toFunctionSelector(`${name}(bytes32)`));
const BLOCK = {
  allowFailure: false,
  target: MULTICALL3 as Hex,
  callData: encodeFunctionData({ abi: multicall, functionName: 'getBlockNumber' }),
};
/** Channels of one request. Each costs about 12,000 gas to read; nodes give a read 50 million. */
const MOST_AT_ONCE = 500;

/** Tries of a read, each at a new head. A node that makes a block meanwhile may answer from that one. */
const MOST_TRIES = 3;

class OtherBlock extends UpstreamFailed {
  constructor() {
    super('chain', `${STATE} at another block`);
  }
}

interface ReadOptions {
  readonly rank?: Rank;
  readonly signal?: AbortSignal;
  /** The agreed head by default. */
  readonly atBlock?: number;
  /** How many places after the best provider the first asked one stands; 0 by default. */
  readonly turn?: number;
}

/** In the order of the question. Null for a channel that cannot be read although the others can. */
export type ChannelStates = readonly (ChannelState | null)[];

/** Reads channels at a block that we name. A provider that answers from another one is not believed. */
export function createChannelReader(chain: Pick<ChainClient, 'batch' | 'each' | 'agreed'>) {
  async function readSome(ids: readonly Uint8Array[], block: number, rpc: RpcOptions) {
    const callsAt = (tag: string): RpcCall[] => [callOf(ids, tag)];
    const read = await readAtBlock(chain, block, callsAt, { ...rpc, isConfirmed: true });
    if (!read && chain.agreed.witnesses < 2) throw new UpstreamFailed('chain', `the provider lacks block ${block}`);
    if (!read) throw new Unavailable('settlement_unavailable', `no two RPC providers have block ${block}`, 1);
    return statesOf(read.outcomes[0], ids.length, block);
  }

  async function readAll(ids: readonly Uint8Array[], block: number, rpc: RpcOptions) {
    const states: (ChannelState | null)[] = [];
    for (let start = 0; start < ids.length; start += MOST_AT_ONCE)
      states.push(...(await readSome(ids.slice(start, start + MOST_AT_ONCE), block, rpc)));
    return states;
  }

  return {
    /**
     * The states at one block; zeros without a deposit. Two providers gave each, if two are configured. Rejects when
     * the chain cannot be read; with Unavailable (`settlement_unavailable`) where no two agree.
     */
    async read(
      ids: readonly Uint8Array[],
      { rank = 'settle', signal, atBlock, turn = 0 }: ReadOptions = {},
    ): Promise<ChannelStates> {
      if (ids.length === 0) return [];
      const rpc = { rank, turn, ...(signal && { signal }) };
      for (let tries = 1; ; tries++) {
        const block = atBlock ?? (await chain.agreed.head(rpc));
        try {
          return await readAll(ids, block, rpc);
        } catch (error) {
          if (!(error instanceof OtherBlock) || atBlock !== undefined || tries === MOST_TRIES) throw error;
        }
      }
    },
    /** What each provider says, MOST_AT_ONCE channels at most. It may only warn. Rejects when nobody answers. */
    async readEach(ids: readonly Uint8Array[], atBlock: number, rank: Rank): Promise<readonly ChannelStates[]> {
      const answers = await chain.each([callOf(ids, toQuantity(atBlock))], { rank });
      return answers.flatMap(([outcome]) => {
        try {
          return [statesOf(outcome, ids.length, atBlock)];
        } catch {
          return [];
        }
      });
    },
  };
}

export type ChannelReader = ReturnType<typeof createChannelReader>;

function callOf(ids: readonly Uint8Array[], tag: string): RpcCall {
  const asked = ids.flatMap((id) => VIEWS.map((selector): Hex => `${selector}${hexWord(id)}`));
  // One channel that cannot be read must not hide the others.
  const args = [[BLOCK, ...asked.map((callData) => ({ target: SETTLEMENT, allowFailure: true, callData }))]] as const;
  const call = { to: MULTICALL3, data: encodeFunctionData({ abi: multicall, functionName: 'aggregate3', args }) };
  return { method: 'eth_call', params: [call, tag] };
}

interface CallResult {
  readonly success: boolean;
  readonly returnData: `0x${string}`;
}

/** Throws for an answer that is not confirmed, not readable, or not from the named block. */
function statesOf(outcome: RpcOutcome | undefined, count: number, block: number): (ChannelState | null)[] {
  if (outcome && 'error' in outcome && outcome.error instanceof Unconfirmed)
    throw new Unavailable('settlement_unavailable', 'no two RPC providers say the same of payment channels');
  const raw = parseAnswer(data, resultOf(outcome, STATE), STATE) as `0x${string}`;
  const [first, ...answers] = decode(raw);
  if (decodeBlock(first) !== BigInt(block)) throw new OtherBlock();
  return Array.from({ length: count }, (_, at) => {
    const own = answers.slice(VIEWS.length * at, VIEWS.length * (at + 1));
    return own.length === VIEWS.length && own.every(({ success }) => success) ? stateOf(own, block) : null;
  });
}

const STATE = 'state of payment channels';

function decode(raw: `0x${string}`): readonly CallResult[] {
  try {
    return decodeFunctionResult({ abi: multicall, functionName: 'aggregate3', data: raw });
  } catch (error) {
    throw new UpstreamFailed('chain', `malformed ${STATE}`, error);
  }
}

const decodeBlock = (answer: CallResult | undefined): bigint =>
  decodeFunctionResult({ abi: multicall, functionName: 'getBlockNumber', data: answer?.returnData ?? '0x' });

function stateOf(answers: readonly CallResult[], block: number): ChannelState {
  const [channel = '0x', withdrawal = '0x', nonce = '0x'] = answers.map(({ returnData }) => returnData);
  const [balance, totalClaimed] = decodeFunctionResult({ abi: views, functionName: 'channels', data: channel });
  const [withdrawAmount, withdrawAt] = decodeFunctionResult({
    abi: views,
    functionName: 'pendingWithdrawals',
    data: withdrawal,
  });
  const refundNonce = decodeFunctionResult({ abi: views, functionName: 'refundNonce', data: nonce });
  return { balance, totalClaimed, withdrawAmount, withdrawAt, refundNonce, block };
}

/** Channels in one read: each takes three calls of some 5,000 gas. */
const MOST_CHANNELS = 50;
/** Reads that may wait, for eight requests. A client without a place is refused at once. */
const PLACES = 400;
/** Milliseconds that such a read waits. Then it is refused. */
const WAIT_MS = 3000;
/** Precedence of a read whose client has had no uncharged failure in this minute. Others have 0. */
const WITHOUT_FAILURE = 1;

/** For buyers, in turns. Clients without a failure have a quarter of the places. Throws Unavailable (`chain_busy`). */
export function createSharedChannelReads(
  chain: Pick<ChainClient, 'batch' | 'each' | 'agreed' | 'ready'>,
  clock: Clock,
): ReadChannel {
  const reader = createChannelReader(chain);
  const ask = async (ids: readonly Uint8Array[]) =>
    (await reader.read(ids, { rank: 'offer' })).map((state) => state ?? unreadable());
  const places = () => PLACES;
  const queue = { places, waitMs: WAIT_MS, refusal: busy, isRefusal: isChainBusy, preferredFrom: WITHOUT_FAILURE };
  const read = createSharedReads<Uint8Array, ChannelState>(clock, ask, MOST_CHANNELS, queue, () =>
    chain.ready('offer'),
  );
  return (id, { client, signal, hasFailed }) => read(id, signal, client, hasFailed ? 0 : WITHOUT_FAILURE);
}

function unreadable(): UpstreamFailed {
  return new UpstreamFailed('chain', 'the channel could not be read');
}

function busy(): Unavailable {
  return new Unavailable('chain_busy', 'Too many channels wait to be looked at; try again shortly.', 1);
}

/** Milliseconds between two rounds. */
const PAUSE_MS = 600_000;
/** Milliseconds that a row without a sale is kept after its last read. A sale reads again after five minutes. */
const KEEP_MS = 3_600_000;
/** Rows of one write, so that it does not hold up others. */
const MOST_DELETED = 500;

/** Deletes rows without a sale: a payer can name any number of channels. Rejects when the ledger cannot be written. */
export function createChannelPruning(store: Pick<ChannelStore, 'prune'>, clock: Clock) {
  let nextMs = 0;

  return async (): Promise<void> => {
    const nowMs = clock.nowMs();
    if (nowMs < nextMs) return;
    while ((await store.prune(nowMs - KEEP_MS, MOST_DELETED)) === MOST_DELETED);
    nextMs = nowMs + PAUSE_MS;
  };
}

/** What everyone can read from the chain, as the scheme shows it. Amounts are decimal strings of base units. */
function chainState(channelId: Uint8Array, state: ChannelAfter) {
  return {
    channelId: bytesToHex(channelId),
    balance: state.balance.toString(),
    totalClaimed: state.totalClaimed.toString(),
    withdrawRequestedAt: state.withdrawAt,
    refundNonce: state.refundNonce.toString(),
  };
}

/** As the scheme shows a channel to its payer. */
function channelState(channelId: Uint8Array, charged: bigint, state: ChannelAfter) {
  return { ...chainState(channelId, state), chargedCumulativeAmount: charged.toString() };
}

/** For the next voucher: the charges, and the client's last one as their proof. `isPublic`: what the chain shows. */
export function correctionOf(channel: Channel, isForgiven: boolean, isPublic: boolean): Correction {
  const { id, charged, state, signature } = channel;
  if (isPublic) return { scheme: SCHEME, isForgiven, extra: { channelState: chainState(id, state) } };
  const voucherState = signature && {
    signedMaxClaimable: charged.toString(),
    signature: bytesToHex(signature),
  };
  return {
    scheme: SCHEME,
    isForgiven,
    extra: { channelState: channelState(id, charged, state), ...(voucherState && { voucherState }) },
  };
}

/** Every delivery of a sale has this receipt. A voucher's has no transaction and no amount; a deposit's has its own. */
export function channelReceipt({ payer, network, amount, price, transaction, channel }: Payment): SettleResponse {
  const hash = transactionText(transaction);
  const shown = channel?.after && channelState(channel.channelId, channel.max, channel.after);
  return {
    success: true,
    payer: bytesToHex(payer),
    transaction: hash ?? '',
    network: network as SettleResponse['network'],
    amount: hash ? amount.toString() : '',
    extra: { chargedAmount: String(price ?? 0n), ...(shown && { channelState: shown }) },
  };
}

export function refundReceipt(channel: Channel, transaction: Uint8Array, amount: bigint): SettleResponse {
  return {
    success: true,
    payer: bytesToHex(channel.payer),
    transaction: transactionText(transaction) ?? '',
    network: channel.network as SettleResponse['network'],
    amount: amount.toString(),
    extra: { channelState: channelState(channel.id, channel.charged, channel.state) },
  };
}

/** What a configuration makes of the scheme. */
export interface ChannelSetup {
  readonly channels: NonNullable<Config['rails']['channels']>;
  readonly network: string;
  readonly scheme: Scheme;
  readonly terms: ChannelTerms;
}

/** What every sale over channels shares. */
export interface ChannelContext {
  readonly sales: SaleContext;
  readonly setup: ChannelSetup;
  readonly store: ChannelStore;
  readonly book: ChannelBook;
  readonly turns: Turns;
  readonly status: SettlerStatus;
  readonly requirement: MakeRequirement;
}

/** A message of the scheme that is presented for a call. Its signature is valid. */
export interface ChannelMessage {
  readonly channelId: Uint8Array;
  readonly payload: ChannelPayload;
  readonly call: UsdcCall;
  readonly identifier: Identifier | null;
  readonly asker: Asker;
}

/** Whether a sale's client asks now: by its address or its payment identifier. Neither can be read from the chain. */
export function isSaleOf(sale: Payment, { call, identifier }: Pick<ChannelMessage, 'call' | 'identifier'>): boolean {
  // Channels are sold by one protocol.
  const credential = { protocol: sale.protocol };
  return isSameBuyer(sale, { clientHash: hashClient(sale.nonce, call.identity), identifier, credential });
}
