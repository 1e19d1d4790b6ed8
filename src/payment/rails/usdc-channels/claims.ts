import { randomUUID } from 'node:crypto';
import { type ChainClient, RpcError } from '../../../chain/rpc/client.ts';
import { toQuantity } from '../../../chain/rpc/wire.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import { signDigest } from '../../../lib/secp256k1.ts';
import type { Channel, ChannelStore } from '../../../store/ports/channels.ts';
import { isRevert } from '../../evm/is-revert.ts';
import { type ClaimRow, claimCalldata, multicallCalldata, settleCalldata } from './calldata.ts';
import { type ClaimOperationsOptions, claimGas, createClaimOperations } from './claim-operations.ts';
import { type ClaimLimits, isDue, rowOf, shortfallOf } from './claim-rows.ts';
import { type Scheme, SETTLEMENT } from './scheme.ts';

/** Rows of one transaction, as the scheme's own seller claims them. 100 rows use 2.4 million gas and 48 KB of calldata. */
const MOST_ROWS = 100;
/** Channels that are listed at a time. */
const PAGE = 500;
/** Milliseconds after which a row that was set aside is simulated again, although nothing was charged since. */
const ASIDE_MS = 3_600_000;

interface ClaimsOptions extends Omit<ClaimOperationsOptions, 'store' | 'chain' | 'scheme'> {
  readonly store: ClaimOperationsOptions['store'] &
    Pick<ChannelStore, 'listUnclaimed' | 'note' | 'writeOff' | 'begin' | 'operation'>;
  readonly chain: Pick<ChainClient, 'request'>;
  readonly scheme: Pick<Scheme, 'channelId' | 'claimDigest'>;
  /** The key of `receiverAuthorizer`, 32 bytes. It signs claims and needs no funds. */
  readonly authorizerKey: Uint8Array;
  readonly network: string;
  /** The relayer's address, which simulations use as the sender. */
  readonly sender: `0x${string}`;
  readonly limits: ClaimLimits;
  readonly log: { warn(detail: object, message: string): void; error(detail: object, message: string): void };
}

/** What a round did. Amounts in base units of the token. */
export interface ClaimReport {
  readonly claimed: bigint;
  readonly writtenOff: bigint;
  /** Channels that could not be claimed and were set aside. */
  readonly setAside: number;
}

interface Due {
  readonly channel: Channel;
  readonly row: ClaimRow;
}

/**
 * Claims what vouchers have charged, for many channels in one transaction, and sweeps it to the receiver in the same transaction. Rounds follow one
 * another: a second call waits for the first. Each row claims what was charged, and never what the payer signed for beyond that.
 */
export function createClaims(options: ClaimsOptions) {
  const { store, reader, limits, network, clock, log } = options;
  const operations = createClaimOperations(options);
  /** Channels whose row the contract refuses, with what was charged then and the time of the next try. */
  const aside = new Map<string, { charged: bigint; untilMs: number }>();
  let running: Promise<unknown> = Promise.resolve();

  function isAside({ id, charged }: Channel): boolean {
    const known = aside.get(bytesToHex(id));
    return known !== undefined && known.charged === charged && clock.nowMs() < known.untilMs;
  }

  async function dueChannels(takesAll: boolean): Promise<Channel[]> {
    const due: Channel[] = [];
    for (let after: { unclaimedSince: number; id: Uint8Array } | undefined; ; ) {
      const page = await store.listUnclaimed(network, PAGE, after);
      due.push(...page.filter((channel) => !isAside(channel) && (takesAll || isDue(channel, limits, clock.nowMs()))));
      const last = page.at(-1);
      if (page.length < PAGE || !last || last.unclaimedSince === null) return due;
      after = { unclaimedSince: last.unclaimedSince, id: last.id };
    }
  }

  /** Reads these channels from the chain and notes their states. Returns them as they are now. */
  async function refresh(channels: readonly Channel[], signal: AbortSignal): Promise<Channel[]> {
    const ids = channels.map(({ id }) => id);
    const states = await reader.read(ids, { signal });
    const noted = channels.map((channel, at) => {
      const state = states[at];
      return state ? store.note(channel, state, clock.nowMs()) : channel;
    });
    return Promise.all(noted);
  }

  /** Writes off what the channel's balance can no longer cover. */
  async function writeOff(channel: Channel): Promise<bigint> {
    const amount = shortfallOf(channel);
    if (amount === 0n || !(await store.writeOff(channel.id, amount, channel.charged))) return 0n;
    const detail = { channel: bytesToHex(channel.id), amount: String(amount) };
    log.error(detail, 'charges of a payment channel are written off: its balance is gone');
    return amount;
  }

  function setAside({ channel: { id, charged } }: Due, reason: string): void {
    aside.set(bytesToHex(id), { charged, untilMs: clock.nowMs() + ASIDE_MS });
    log.error({ channel: bytesToHex(id), charged: String(charged), reason }, 'a payment channel cannot be claimed');
  }

  /** Claims some channels in one transaction. */
  async function claimSome(channels: readonly Channel[], signal: AbortSignal): Promise<ClaimReport> {
    const fresh = await refresh(channels, signal);
    let writtenOff = 0n;
    for (const channel of fresh) writtenOff += await writeOff(channel);
    const due = fresh.flatMap((channel) => {
      const row = rowOf(channel);
      return row ? [{ channel, row }] : [];
    });
    const { good, bad } = await sortOut(options, due, signal);
    for (const { due: one, reason } of bad) setAside(one, reason);
    const claimed = good ? await carryOut(good) : 0n;
    await refresh(fresh, signal);
    return { claimed, writtenOff, setAside: bad.length };
  }

  async function carryOut({ due, calldata }: Batch): Promise<bigint> {
    for (const { channel } of due) aside.delete(bytesToHex(channel.id));
    const id = randomUUID();
    const amount = due.reduce((sum, { channel, row }) => sum + row.totalClaimed - channel.state.totalClaimed, 0n);
    await store.begin({ id, network, kind: 'claim', channelId: null, amount, calldata, createdAt: clock.nowMs() });
    const row = await store.operation(id);
    return (row && (await operations.carryOut(row)))?.amount ?? 0n;
  }

  async function round(takesAll: boolean, signal: AbortSignal): Promise<ClaimReport> {
    await operations.resume(signal);
    const channels = await dueChannels(takesAll);
    const total = { claimed: 0n, writtenOff: 0n, setAside: 0 };
    for (let start = 0; start < channels.length && !signal.aborted; start += MOST_ROWS) {
      const part = await claimSome(channels.slice(start, start + MOST_ROWS), signal);
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

/** Rows that pass the simulation together, and the calldata that claims them. */
interface Batch {
  readonly due: readonly Due[];
  readonly calldata: Uint8Array;
}

interface Sorted {
  /** Null when no row is left. */
  readonly good: Batch | null;
  readonly bad: readonly { readonly due: Due; readonly reason: string }[];
}

/**
 * Simulates the claim of these rows. One row that the contract refuses reverts all. So rows that revert are split until each refused row is alone.
 * Without the sweep where the contract refuses the sweep alone: the receiver may be blocked, and the claim still records the money.
 */
async function sortOut(options: ClaimsOptions, due: readonly Due[], signal: AbortSignal): Promise<Sorted> {
  const good: Due[] = [];
  const bad: { due: Due; reason: string }[] = [];
  async function sort(some: readonly Due[]): Promise<void> {
    const reason = some.length === 0 ? null : await refusal(options, claimOf(options, some), some.length, signal);
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
  const reason = await refusal(options, swept, good.length, signal);
  if (reason !== null) options.log.warn({ reason }, 'claims are not paid out: the sweep is refused');
  return { good: { due: good, calldata: reason === null ? swept : claim }, bad };
}

/** Why the contract refuses the call; null when it takes it. Throws when no node simulates it. */
async function refusal(
  { chain, sender }: ClaimsOptions,
  calldata: Uint8Array,
  rows: number,
  signal: AbortSignal,
): Promise<string | null> {
  const call = { from: sender, to: SETTLEMENT, data: bytesToHex(calldata), gas: toQuantity(claimGas(rows)) };
  try {
    await chain.request('eth_call', [call, 'latest'], { rank: 'settle', signal });
    return null;
  } catch (error) {
    if (error instanceof RpcError && isRevert(error)) return error.message;
    throw error;
  }
}

function claimOf({ scheme, authorizerKey }: ClaimsOptions, due: readonly Due[]): Uint8Array {
  const entries = due.map(({ channel, row }) => ({ channelId: channel.id, ...row }));
  const { signature, recovery } = signDigest(scheme.claimDigest(entries), authorizerKey);
  const rows = due.map(({ row }) => row);
  return claimCalldata(rows, Buffer.concat([signature, Buffer.from([27 + recovery])]));
}
