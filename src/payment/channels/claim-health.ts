import type { Config } from '../../config.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Common, Log } from '../../lib/common.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import { addressOf } from '../../lib/secp256k1.ts';
import { shareRun } from '../../lib/tasks.ts';
import type { Channel, ChannelStore } from '../../store/ports/channels.ts';
import type { RelayerMetrics } from '../relayer/gas.ts';
import type { MinedTransaction, OperationOutcome, Relayer } from '../settler.ts';
import type { ClaimRow } from './calldata.ts';

// When charges are claimed, and what follows while they are not: the risk that is bounded, the alarm that logs errors
// and ends the offers, the channels that are claimed early on one provider's word, and the metrics. Before all of it:
// whose key may sign claims.

export interface ClaimBounds {
  /** Unclaimed charges of one channel, in base units. A row costs about 24,000 gas: 0.0005 USDC at 20 gwei. */
  readonly threshold: bigint;
  /** The longest that a charge waits, in milliseconds. */
  readonly ageMs: number;
}

export function claimBounds({ claimFrom, claimAfterSeconds }: NonNullable<Config['rails']['channels']>): ClaimBounds {
  return { threshold: claimFrom, ageMs: claimAfterSeconds * 1000 };
}

/**
 * The authorizer's key is on this machine and must not hold the sales. Its address is part of every channel's id: only
 * a ledger without a channel refuses it (the problem is returned), else claiming comes first.
 */
export async function checkAuthorizer(
  { rails: { channels }, seller, network }: Config,
  { channels: store }: { readonly channels: Pick<ChannelStore, 'hasAny'> },
  log: Pick<Log, 'warn'>,
): Promise<string | null> {
  if (!channels || addressOf(hexToBytes(channels.authorizerKey)) !== seller.toLowerCase()) return null;
  if (!(await store.hasAny(network.caip2)))
    return 'SELLER_ADDRESS is the address of CHANNELS_AUTHORIZER_KEY: its key signs here and must not hold the sales';
  const way = 'run `npm run ledger -- claim` until nothing is left, then set another CHANNELS_AUTHORIZER_KEY';
  log.warn(
    { seller },
    `SELLER_ADDRESS is the address of CHANNELS_AUTHORIZER_KEY, whose key would hold the sales: ${way}`,
  );
  return null;
}

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** Charged, neither claimed nor written off; in base units. */
function unclaimedOf({ charged, writtenOff, state }: Channel): bigint {
  return charged - writtenOff - state.totalClaimed;
}

/** Whether a pending withdrawal could take charged money: the rest of the balance does not cover all charges. */
export function isEndangered({ charged, writtenOff, state }: Channel): boolean {
  return charged - writtenOff > state.balance - state.withdrawAmount;
}

/** Whether a channel is claimed now: by threshold, by age, for a withdrawal, or after the contract has refused it. */
export function isDue(channel: Channel, { threshold, ageMs }: ClaimBounds, nowMs: number): boolean {
  if (unclaimedOf(channel) <= 0n || channel.unclaimedSince === null) return false;
  const isOld = nowMs - channel.unclaimedSince >= ageMs;
  const isRefused = channel.claimRefusedAt !== null;
  return unclaimedOf(channel) >= threshold || isOld || isRefused || isEndangered(channel);
}

/** What a fresh state's balance no longer covers, and is not written off yet, in base units. */
export function shortfallOf({ charged, writtenOff, state: { balance, totalClaimed } }: Channel): bigint {
  const covered = balance > totalClaimed ? balance : totalClaimed;
  const missing = charged - covered - writtenOff;
  return missing > 0n ? missing : 0n;
}

/** Claims what the balance covers; null without that or a voucher. A voucher's ceiling is its channel's `charged`. */
export function rowOf(channel: Channel): ClaimRow | null {
  const { charged, signature, state } = channel;
  const totalClaimed = least(charged, state.balance);
  if (!signature || totalClaimed <= state.totalClaimed) return null;
  return { config: channel, maxClaimableAmount: charged, signature, totalClaimed };
}

/** What may be charged while claims fail, in thresholds of a claim: what ten channels may owe by plan. */
const MOST_AT_RISK = 10n;
/** Milliseconds after which the sums are read again, beside the sales. */
const FRESH_MS = 1000;
/** Milliseconds after which the sums judge no sale any more. */
const MOST_AGE_MS = 5000;
/** Milliseconds without trouble after which claims count as working. A round is tried every 5 s by default. */
const CALM_MS = 60_000;

/** Charges from before this time, in Unix milliseconds, are overdue. */
export function overdueBefore({ ageMs }: Pick<ClaimBounds, 'ageMs'>, nowMs: number): number {
  return nowMs - 2 * ageMs;
}

/** Bounds what was charged since claims began to fail, and what is overdue, by MOST_AT_RISK thresholds each. */
export function createClaimRisk(
  clock: Clock,
  store: Pick<ChannelStore, 'totalsOverdue'>,
  network: string,
  bounds: ClaimBounds,
) {
  const most = MOST_AT_RISK * bounds.threshold;
  /** What waited when the failure began; null while claims work. */
  let before: bigint | null = null;
  let sums = { unclaimed: 0n, overdue: 0n, readAtMs: 0 };
  /** Sold by this process since the sums were read, in base units. */
  let sold = 0n;
  let calmSinceMs: number | null = null;

  async function readSums(): Promise<bigint> {
    const [soldBefore, readAtMs] = [sold, clock.nowMs()];
    const [unclaimed, overdue] = await Promise.all([
      store.totalsOverdue(network, Number.MAX_SAFE_INTEGER),
      store.totalsOverdue(network, overdueBefore(bounds, readAtMs)),
    ]);
    sold -= soldBefore;
    sums = { unclaimed, overdue, readAtMs };
    if (before === null || unclaimed < before) before = unclaimed;
    return overdue;
  }

  const readShared = shareRun(readSums);
  /** Reads the sums while claims fail. Returns what is overdue. Rejects when the ledger cannot be read. */
  async function read(): Promise<bigint> {
    calmSinceMs = null;
    return readShared();
  }

  return {
    read,
    /** Before a sale while claims fail: waits for a read where the trouble is new or the sums too old. May reject. */
    async look(): Promise<void> {
      const ageMs = clock.nowMs() - sums.readAtMs;
      if (before === null || calmSinceMs !== null || ageMs >= MOST_AGE_MS) await read();
      else if (ageMs >= FRESH_MS) void read().catch(() => {});
    },
    note(price: bigint): void {
      if (before !== null) sold += price;
    },
    /** Whether a sale at this price would pass a bound; calls under way are not counted. False while claims work. */
    isTooMuch: (price: bigint): boolean =>
      before !== null && (sums.overdue > most || sums.unclaimed + sold + price - before > most),
    /** No trouble is seen. Once that has lasted, the bounds begin anew. */
    calm(): void {
      if (before === null) return;
      calmSinceMs ??= clock.nowMs();
      if (clock.nowMs() - calmSinceMs >= CALM_MS) before = null;
    },
    worked(): void {
      before = null;
    },
  };
}

export type ClaimRisk = ReturnType<typeof createClaimRisk>;

/** Failed rounds in a row after which claims count as failing. A round is tried every RECONCILE_INTERVAL_MS. */
const MANY = 3;
/** Milliseconds between two errors in the log. */
const PAUSE_MS = 3_600_000;
const FAILING = 'claims of payment channels fail';

/** Logs hourly while charges are overdue or MANY rounds failed. A refused channel fails none, so it stops no sales. */
export function createClaimAlarm(
  { clock, log }: Common,
  store: Pick<ChannelStore, 'totalsOverdue'>,
  network: string,
  bounds: ClaimBounds,
) {
  const risk = createClaimRisk(clock, store, network, bounds);
  const readOverdue = () => store.totalsOverdue(network, overdueBefore(bounds, clock.nowMs()));
  let failures = 0;
  let hasFailed = false;
  let alertedMs = Number.NEGATIVE_INFINITY;

  const isFailing = (): boolean => failures >= MANY;
  const whyStopped = (): string | null => (isFailing() && risk.isTooMuch(0n) ? FAILING : null);

  async function judge(): Promise<void> {
    if (failures === 0) risk.worked();
    const overdue = await (failures === 0 ? readOverdue() : risk.read());
    if ((!isFailing() && overdue === 0n) || clock.nowMs() - alertedMs < PAUSE_MS) return;
    alertedMs = clock.nowMs();
    const detail = { overdue: String(overdue), failedRounds: failures, areSalesStopped: whyStopped() !== null };
    log.error(detail, 'ALERT: charges of payment channels are not claimed');
  }

  return {
    /** The relayer, whose operations are watched during a round. */
    watching: ({ operate }: Pick<Relayer, 'operate'>): Pick<Relayer, 'operate'> => ({
      operate: async (operation): Promise<OperationOutcome> => {
        const outcome = await operate(operation);
        if (outcome.kind !== 'done') hasFailed = true;
        return outcome;
      },
    }),
    /** Runs a round and judges it. Rejects when the round does. */
    async round(claim: () => Promise<unknown>): Promise<void> {
      hasFailed = false;
      try {
        await claim();
      } catch (error) {
        hasFailed = true;
        throw error;
      } finally {
        failures = hasFailed ? failures + 1 : 0;
        await judge();
      }
    },
    /** Why no claim can be counted on; null while rounds work. Deposits and refunds wait; the risk judges vouchers. */
    why: (): string | null => (isFailing() ? FAILING : null),
    /** Why the rail is not offered: rounds fail, and too much is at risk. Null while it is. */
    whyStopped,
  };
}

const WEI_PER_USDC = 1e18;

/** Milliseconds after the end of its alarm in which a channel is not claimed early again. */
const QUIET_MS = 3_600_000;

/**
 * Channels whose charges one provider says are in danger while no two agree. Each is claimed early once until two
 * agree, and not within an hour of that: a liar costs one claim's gas a channel and hour. In memory only.
 */
export function createWithdrawalAlarms(clock: Clock) {
  /** By channel: the block at which a provider said it. */
  const raised = new Map<string, number>();
  /** Until when a channel is not claimed early again; without end while the alarm of its claim lasts. */
  const quiet = new Map<string, number>();
  const costs = new Map<string, number>();

  return {
    raise: (id: Uint8Array, block: number): void => void raised.set(bytesToHex(id), block),
    blockOf: (id: Uint8Array): number | null => raised.get(bytesToHex(id)) ?? null,
    /** Two providers agree about the channel. */
    end(id: Uint8Array): void {
      const key = bytesToHex(id);
      raised.delete(key);
      // A later alarm makes the wait no longer.
      if (quiet.get(key) === Number.POSITIVE_INFINITY) quiet.set(key, clock.nowMs() + QUIET_MS);
    },
    isDue(id: Uint8Array): boolean {
      const key = bytesToHex(id);
      const isQuiet = clock.nowMs() < (quiet.get(key) ?? 0);
      if (!isQuiet) quiet.delete(key);
      return raised.has(key) && !isQuiet;
    },
    noteClaim(id: Uint8Array): void {
      const key = bytesToHex(id);
      quiet.set(key, raised.has(key) ? Number.POSITIVE_INFINITY : clock.nowMs() + QUIET_MS);
    },
    /** A transaction with an early claim was mined, reverted or not. */
    noteCost({ transactionHash, gasUsed, effectiveGasPrice }: MinedTransaction): void {
      costs.set(transactionHash, Number(BigInt(gasUsed ?? 0) * BigInt(effectiveGasPrice ?? 0)) / WEI_PER_USDC);
    },
    /** USDC of gas for early claims since the start. */
    costUsdc: (): number => [...costs.values()].reduce((sum, cost) => sum + cost, 0),
  };
}

export type WithdrawalAlarms = ReturnType<typeof createWithdrawalAlarms>;

const USDC_UNIT = 1_000_000;

/** Publishes what no claim has recorded yet, and since when the oldest of it waits. Read at each scrape. */
export function publishUnclaimed(
  { publish }: Pick<RelayerMetrics, 'publish'>,
  store: Pick<ChannelStore, 'totals' | 'listUnclaimed' | 'countRefused'>,
  network: string,
  alarms: Pick<WithdrawalAlarms, 'costUsdc'>,
): void {
  publish('channels_claimable_usdc', 'USDC that vouchers have charged and that is not claimed yet', async () => {
    const { charged, claimed, writtenOff } = await store.totals(network);
    return Number(charged - claimed - writtenOff) / USDC_UNIT;
  });
  const help = 'When the oldest unclaimed charge was made; no sample while all charges are claimed';
  publish('channels_oldest_unclaimed_timestamp_seconds', help, async () => {
    const since = (await store.listUnclaimed(network, 1))[0]?.unclaimedSince ?? null;
    return since === null ? null : since / 1000;
  });
  const refused = 'Channels whose claim the contract refuses; they take no voucher until nothing is left to claim';
  publish('channels_refused', refused, () => store.countRefused(network));
  const early = 'USDC of gas for claims that a single RPC provider’s alarm caused, since the start';
  publish('channels_early_claims_cost_usdc', early, async () => alarms.costUsdc());
}
