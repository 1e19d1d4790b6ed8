import { z } from 'zod';
import { UpstreamFailed } from '../errors.ts';
import { percentileOf } from '../lib/percentile.ts';
import { type Header, headerCall, type LinkedHeader, readHeader, readLinkedHeader } from './block.ts';
import { bigintOf, Contradiction, countOf, fieldsOf, listOf, resultOrRefusal } from './rpc/checked.ts';
import { type ChainClient, createChainCache } from './rpc/client.ts';
import {
  index,
  quantity,
  type RpcCall,
  type RpcOptions,
  type RpcOutcome,
  readOutcome,
  toQuantity,
} from './rpc/wire.ts';

// Base fees: the next block's; the rules by which a chain moves its fee, with an outlook over an hour; those of past
// blocks from fee history.

/** `exact` when the chain itself announced it. */
export interface NextBaseFee {
  readonly wei: bigint;
  readonly exact: boolean;
}

/** Throws UpstreamFailed for a header from before EIP-1559: such chains are not supported. */
export function baseFeeOf(header: Header): bigint {
  if (header.baseFeeWei === null) throw new UpstreamFailed('chain', `block ${header.number} has no base fee`);
  return header.baseFeeWei;
}

/** Arc's: the next base fee as 8 bytes, big-endian. */
const ARC_EXTRA_DATA = /^0x[0-9a-fA-F]{16}$/;

/** Exact on Arc. Elsewhere EIP-1559's estimate: a chain may have its own rule. */
export function nextBaseFee(header: Header): NextBaseFee {
  if (ARC_EXTRA_DATA.test(header.extraData)) {
    const announced = BigInt(header.extraData);
    // Arc's fees never fall below 1 wei.
    if (announced > 0n) return { wei: announced, exact: true };
  }
  return { wei: nextByEip1559(baseFeeOf(header), header.gasUsed, header.gasLimit), exact: false };
}

export function nextByEip1559(baseFee: bigint, gasUsed: bigint, gasLimit: bigint): bigint {
  return eip1559Rule({ gasLimit, floor: 0n })({ baseFee, smoothed: 0n }, gasUsed).baseFee;
}

// Arc's rule and mainnet parameters: the node's source, as `arc.md` of the project's facts (1.6) copies it.

const GWEI = 1_000_000_000n;
/** The newest block's weight in the smoothed use of gas, in percent. */
const ALPHA = 20n;
/** The fee's largest move in a block, in hundredths of a percent. */
const K_RATE_BPS = 200n;
const BPS = 10_000n;
const MAX_BASE_FEE = 20_000n * GWEI;
/** EIP-1559: the fee moves by at most an eighth in a block. */
const EIP1559_STEP = 8n;

interface FeeState {
  /** Wei. */
  readonly baseFee: bigint;
  /** Gas used, smoothed over blocks. Not for EIP-1559. */
  readonly smoothed: bigint;
}

type FeeRule = (state: FeeState, gasUsed: bigint) => FeeState;

interface FeeBounds {
  readonly gasLimit: bigint;
  readonly floor: bigint;
  /** In hundredths of a percent of the gas limit; half on Arc's mainnet. */
  readonly targetBps?: bigint;
}

/** The smoothed use moves the fee by at most 2 % a block. All divisions round down, as in the node. */
export function arcRule({ gasLimit, floor, targetBps = 5000n }: FeeBounds): FeeRule {
  const target = (gasLimit * targetBps) / BPS;
  const scale = (target * BPS) / K_RATE_BPS;
  return ({ baseFee, smoothed: before }, gasUsed) => {
    const smoothed = ((100n - ALPHA) * before + ALPHA * gasUsed) / 100n;
    if (scale === 0n || smoothed === target) return { baseFee: clamp(baseFee, floor), smoothed };
    if (smoothed < target) {
      return { baseFee: clamp(baseFee - (baseFee * (target - smoothed)) / scale, floor), smoothed };
    }
    const rise = (baseFee * (smoothed - target)) / scale;
    return { baseFee: clamp(baseFee + (rise > 1n ? rise : 1n), floor), smoothed };
  };
}

/** For chains that do not announce their fees. */
export function eip1559Rule({ gasLimit, floor }: FeeBounds): FeeRule {
  const target = gasLimit / 2n;
  return ({ baseFee, smoothed }, gasUsed) => {
    if (target === 0n) return { baseFee, smoothed };
    const step = (baseFee * abs(gasUsed - target)) / target / EIP1559_STEP;
    const moved = gasUsed > target ? baseFee + (step > 0n ? step : 1n) : baseFee - step;
    return { baseFee: moved < floor ? floor : moved, smoothed };
  };
}

function abs(value: bigint): bigint {
  return value < 0n ? -value : value;
}

function clamp(fee: bigint, floor: bigint): bigint {
  if (fee < floor) return floor;
  return fee > MAX_BASE_FEE ? MAX_BASE_FEE : fee;
}

/** After these blocks (oldest first, 0 to 1). What was before weighs 0.8^n: nothing after 64. */
export function smoothedUse(utilisations: readonly number[], gasLimit: bigint): bigint {
  const [first = 0] = utilisations;
  return utilisations.reduce(
    (smoothed, use) => ((100n - ALPHA) * smoothed + ALPHA * toGas(use, gasLimit)) / 100n,
    toGas(first, gasLimit),
  );
}

/** Exact when the utilisation (0 to 1) is a header's own quotient. */
export function toGas(utilisation: number, gasLimit: bigint): bigint {
  return BigInt(Math.round(utilisation * Number(gasLimit)));
}

/** In wei. */
interface Outlook {
  readonly horizonSeconds: number;
  readonly low: bigint;
  readonly expected: bigint;
  readonly high: bigint;
}

interface OutlookInput {
  /** After the newest block; `baseFee` is the next block's. */
  readonly state: FeeState;
  readonly rule: FeeRule;
  readonly gasLimit: bigint;
  readonly blockTimeSeconds: number;
  /** Mean use (0 to 1) in each minute of the last day, oldest first; null without data. */
  readonly minutes: readonly (number | null)[];
}

/** From the time of a signature to an hour of planning. */
export const HORIZON_MINUTES = [1, 5, 15, 60];
const PERCENTS = { low: 5, expected: 50, high: 95 } as const;

/** At each horizon with data: the fee by the last day's 5th, 50th and 95th percentile of use. */
export function forecastFees(input: OutlookInput): Outlook[] {
  return HORIZON_MINUTES.flatMap((minutes) => {
    const means = meansOver(input.minutes, minutes);
    if (means.length === 0) return [];
    const blocks = Math.max(Math.round((minutes * 60) / input.blockTimeSeconds), 1);
    const at = (percent: number) => runRule(input, percentileOf(means, percent) ?? 0, blocks);
    return [
      { horizonSeconds: minutes * 60, low: at(PERCENTS.low), expected: at(PERCENTS.expected), high: at(PERCENTS.high) },
    ];
  });
}

/** Of every run of `length` minutes without a gap, ascending: sorting them again is cheap. */
function meansOver(minutes: readonly (number | null)[], length: number): number[] {
  const means: number[] = [];
  for (let from = 0; from + length <= minutes.length; from++) {
    const run = minutes.slice(from, from + length).filter((use) => use !== null);
    if (run.length === length) means.push(run.reduce((sum, use) => sum + use, 0) / length);
  }
  return means.sort((a, b) => a - b);
}

/** After `blocks` blocks of this utilisation, the next block's known fee included. */
function runRule({ state, rule, gasLimit }: OutlookInput, utilisation: number, blocks: number): bigint {
  const gasUsed = toGas(utilisation, gasLimit);
  let now = state;
  for (let block = 1; block < blocks; block++) {
    const next = rule(now, gasUsed);
    // Nothing changes any more.
    if (next.baseFee === now.baseFee && next.smoothed === now.smoothed) return next.baseFee;
    now = next;
  }
  return now.baseFee;
}

/** reth's cap for one eth_feeHistory; Arc's is not known to differ. */
export const MAX_FEE_SPAN = 1024;
/** Nine aligned spans hold at least 8,193 blocks; an hour on Arc has 7,200. */
const MAX_SPANS = 9;
/** What the newest span may lack before the head: five seconds on Arc. */
const MAX_MISSING_BLOCKS = 10;

/** The block that a window ends with; `at` in Unix seconds. */
interface Newest {
  readonly number: number;
  readonly at: number;
  readonly baseFee: bigint;
}

/** Oldest first; `seconds` are what the fees cover. */
interface FeeWindow {
  readonly fees: readonly bigint[];
  readonly toBlock: number;
  readonly seconds: number;
}

interface FeeSpan {
  readonly from: number;
  readonly fees: readonly bigint[];
  readonly startAt: number;
}

/** Finished spans never change. Three more than a window needs, for calls that see different heads. */
const spansOf = createChainCache<FeeSpan>(MAX_FEE_SPAN * (MAX_SPANS + 3), MAX_SPANS + 3);

/**
 * The base fees of the last `seconds` before `head`, by one batch of at most nine spans; finished ones are cached.
 * Histories end one block before the head: a node may give out the header first. Fee history carries no times, so the
 * window's begin within a span is interpolated. Throws UpstreamFailed (502) without the history of these blocks.
 */
export async function readFeeWindow(
  chain: ChainClient,
  head: Newest,
  seconds: number,
  options: RpcOptions,
): Promise<FeeWindow> {
  const cache = spansOf(chain);
  const newest = head.number - 1;
  const last = Math.floor(newest / MAX_FEE_SPAN);
  const wanted = Array.from({ length: Math.min(MAX_SPANS, last + 1) }, (_, back) => last - back).reverse();
  const missing = wanted.filter((span) => cache.get(String(span), newest) === undefined);
  const callsFor = (span: number) => [
    historyCall(span * MAX_FEE_SPAN, lastOf(span, newest)),
    headerCall(span * MAX_FEE_SPAN),
  ];
  const outcomes = await chain.batch(missing.flatMap(callsFor), options);
  const fresh = new Map(missing.map((span, at) => [span, toSpan(span, newest, outcomes.slice(2 * at, 2 * at + 2))]));
  const spans = wanted.flatMap((span) => fresh.get(span) ?? cache.get(String(span), newest) ?? []);
  for (const [span, read] of fresh) {
    if (read.from + read.fees.length === (span + 1) * MAX_FEE_SPAN) cache.set(String(span), newest, read);
  }
  return cut(spans, head, seconds);
}

/** The answer ends with the fee of the block after its newest one. */
function historyCall(from: number, to: number): RpcCall {
  return { method: 'eth_feeHistory', params: [toQuantity(to - from + 1), toQuantity(to), []] };
}

function lastOf(span: number, newest: number): number {
  return Math.min((span + 1) * MAX_FEE_SPAN - 1, newest);
}

const historySchema = z.object({ oldestBlock: index, baseFeePerGas: z.array(quantity).min(1) });

function toSpan(span: number, newest: number, [history, first]: readonly RpcOutcome[]): FeeSpan {
  const { oldestBlock, baseFeePerGas } = readOutcome(history, historySchema, 'fee history');
  const fees = baseFeePerGas.slice(0, -1);
  const last = lastOf(span, newest);
  const lacking = last - (oldestBlock + fees.length - 1);
  if (oldestBlock < span * MAX_FEE_SPAN || lacking < 0 || lacking > (last === newest ? MAX_MISSING_BLOCKS : 0)) {
    throw new UpstreamFailed('chain', 'gave fee history of other blocks than asked for');
  }
  return { from: oldestBlock, fees, startAt: readHeader(first, span * MAX_FEE_SPAN).at };
}

function cut(spans: readonly FeeSpan[], head: Newest, seconds: number): FeeWindow {
  const since = head.at - seconds;
  const begun = spans.findLastIndex(({ startAt }) => startAt <= since);
  const at = Math.max(begun, 0);
  const span = spans[at];
  // The chain's first block.
  if (span === undefined) return { fees: [head.baseFee], toBlock: head.number, seconds: 0 };
  const endAt = spans[at + 1]?.startAt ?? head.at;
  const share = endAt > span.startAt ? Math.max(since - span.startAt, 0) / (endAt - span.startAt) : 0;
  const fees = spans.slice(at).flatMap((part) => part.fees);
  const kept = [...fees.slice(Math.floor(share * span.fees.length)), head.baseFee];
  return { fees: kept, toBlock: head.number, seconds: head.at - Math.max(since, span.startAt) };
}

interface BlockFee {
  readonly number: number;
  /** Unix seconds, interpolated between the span's ends. */
  readonly at: number;
  readonly baseFee: bigint;
  readonly utilisation: number;
}

/** The history of blocks `from` to `to`, and the headers of both ends for their times. */
export function feeSpanCalls(from: number, to: number): RpcCall[] {
  return [historyCall(from, to), headerCall(from), headerCall(to)];
}

/** Null when refused. Throws Contradiction when history and headers disagree. */
export function readFeeSpan(outcomes: readonly RpcOutcome[], from: number, to: number): BlockFee[] | null {
  const result = resultOrRefusal(outcomes[0]);
  if (result === undefined) return null;
  const history = fieldsOf(result, 'fee history');
  const fees = listOf(history.baseFeePerGas, 'baseFeePerGas').map((fee) => bigintOf(fee, 'a base fee'));
  const ratios = listOf(history.gasUsedRatio, 'gasUsedRatio');
  const count = to - from + 1;
  if (countOf(history.oldestBlock, 'oldestBlock') !== from || fees.length !== count + 1 || ratios.length !== count) {
    throw new Contradiction('feeHistory', `another span than ${from} to ${to}`);
  }
  const first = readLinkedHeader(outcomes[1], from);
  const last = readLinkedHeader(outcomes[2], to);
  requireFee(first, fees[0]);
  requireFee(last, fees[count - 1]);
  const step = count > 1 ? (last.at - first.at) / (count - 1) : 0;
  return ratios.map((ratio, offset) => ({
    number: from + offset,
    at: Math.floor(first.at + offset * step),
    baseFee: fees[offset] ?? 0n,
    utilisation: toRatio(ratio),
  }));
}

function requireFee(header: LinkedHeader, fee: bigint | undefined): void {
  if (header.baseFeeWei !== null && header.baseFeeWei !== fee) {
    throw new Contradiction('feeHistory', `another base fee than block ${header.number} has`);
  }
}

function toRatio(value: unknown): number {
  if (typeof value !== 'number' || !(value >= 0 && value <= 1)) throw new Contradiction('shape', 'gasUsedRatio');
  return value;
}
