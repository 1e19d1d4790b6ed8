import { readAtBlock } from '../../../chain/named-block.ts';
import type { RpcCall } from '../../../chain/rpc/call.ts';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import { type RpcOutcome, toQuantity } from '../../../chain/rpc/wire.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { ChainCheck } from '../../evm/chain-check.ts';
import { settleCall } from '../../evm/settle-call.ts';
import type { Job, OperationJob } from './job.ts';
import { batchCalldata, MULTICALL3 } from './multicall.ts';
import type { Plan, Reading, Trial } from './plan.ts';

export interface TryOutOptions {
  readonly chain: ChainClient;
  readonly check: Pick<ChainCheck, 'read'>;
  readonly usdc: `0x${string}`;
  /** The relayer's own address. */
  readonly relayer: `0x${string}`;
  readonly signal: AbortSignal;
}

/**
 * Reads a plan's payers and simulates its groups at the same time. Rejects when no payer could be read, because then the chain itself does not
 * answer.
 */
export async function tryOut(options: TryOutOptions, { free, trialGroups, limits }: Plan): Promise<Trial> {
  const calls = trialGroups.map((group) => simulation(options, group, limits));
  // A node that answers reads may refuse a simulation of this size. Then the simulation has no result.
  const noResult = (): RpcOutcome[] => [];
  const simulating = options.chain.batch(calls, { signal: options.signal }).catch(noResult);
  const [readings, simulated] = await Promise.all([readSome(options, free), simulating]);
  return { readings, simulated };
}

/** Simulates a batch with more gas than it will get. If it runs out of gas even so, one of its payers used it up. */
function simulation(
  { usdc, relayer }: TryOutOptions,
  group: readonly Job[],
  { gas, gasPrice }: Plan['limits'],
): RpcCall {
  const calls = group.map(({ intent }) => settleCall(usdc, intent));
  const [only] = calls;
  const call =
    only && group.length === 1
      ? { to: only.to, data: only.data, gas: toQuantity(only.gas), gasPrice: toQuantity(gasPrice) }
      : { to: MULTICALL3, data: batchCalldata(calls), gas: toQuantity(gas) };
  return { method: 'eth_call', params: [{ from: relayer, ...call }, 'latest'] };
}

/**
 * Simulates an operation with the gas and the price of its transaction, from a node that has its least block. Rejects
 * when the chain does not answer, and when no node has the block.
 */
export async function tryOperation(
  { chain, relayer, signal }: TryOutOptions,
  { operation: { to, data, gas, leastBlock } }: OperationJob,
  gasPrice: bigint,
): Promise<RpcOutcome> {
  const call = { to: bytesToHex(to), data: bytesToHex(data), gas: toQuantity(gas), gasPrice: toQuantity(gasPrice) };
  const callsAt = (tag: string): RpcCall[] => [{ method: 'eth_call', params: [{ from: relayer, ...call }, tag] }];
  const block = leastBlock === undefined ? null : Math.max(leastBlock, await chain.agreed.head({ signal }));
  const [outcome] =
    block === null
      ? await chain.batch(callsAt('latest'), { signal })
      : ((await readAtBlock(chain, block, callsAt, { signal, isConfirmed: false }))?.outcomes ?? []);
  if (!outcome) throw new Error('a simulation without an answer');
  return outcome;
}

async function readSome({ check, signal }: TryOutOptions, jobs: readonly Job[]): Promise<Map<Job, Reading>> {
  const outcomes = await Promise.allSettled(jobs.map(({ intent }) => check.read(intent.authorization, signal)));
  const readings = new Map<Job, Reading>();
  for (const [at, job] of jobs.entries()) {
    const outcome = outcomes[at];
    if (outcome?.status === 'fulfilled') readings.set(job, outcome.value);
  }
  const [first] = outcomes;
  if (readings.size === 0 && first?.status === 'rejected') throw first.reason;
  return readings;
}
