import { bigintOf, countOf, fieldsOf, listOf } from './fields.ts';
import { type LinkedHeader, readLinkedHeader } from './full-block.ts';
import type { RpcCall } from './rpc/call.ts';
import { Contradiction, resultOrRefusal } from './rpc/checked.ts';
import { type RpcOutcome, toQuantity } from './rpc/wire.ts';

/** reth's cap on the blocks of one eth_feeHistory; Arc's is not known to differ. */
export const MAX_FEE_SPAN = 1024;

/** What fee history reports of one block. */
export interface BlockFee {
  readonly number: number;
  /** Unix seconds, interpolated between the span's ends: fee history carries no times. */
  readonly at: number;
  readonly baseFee: bigint;
  /** gasUsed / gasLimit. */
  readonly utilisation: number;
}

/** The three calls for the fees of blocks `from` to `to`: the history, and the headers of both ends for their times. */
export function feeSpanCalls(from: number, to: number): RpcCall[] {
  const header = (block: number) => ({ method: 'eth_getBlockByNumber', params: [toQuantity(block), false] });
  const history = { method: 'eth_feeHistory', params: [toQuantity(to - from + 1), toQuantity(to), []] };
  return [history, header(from), header(to)];
}

/** Reads the answers to `feeSpanCalls`. Throws Contradiction when history and headers do not agree. Null when the history was refused. */
export function readFeeSpan(outcomes: readonly RpcOutcome[], from: number, to: number): BlockFee[] | null {
  const result = resultOrRefusal(outcomes[0]);
  if (result === undefined) return null;
  const history = fieldsOf(result, 'fee history');
  const fees = listOf(history.baseFeePerGas, 'baseFeePerGas').map((fee) => bigintOf(fee, 'a base fee'));
  const ratios = listOf(history.gasUsedRatio, 'gasUsedRatio');
  const count = to - from + 1;
  // The answer ends with the fee of the block after its newest one.
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
