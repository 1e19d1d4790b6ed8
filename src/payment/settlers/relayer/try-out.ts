import { readAtBlock } from '../../../chain/named-block.ts';
import type { RpcCall } from '../../../chain/rpc/call.ts';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import { RpcError, type RpcOutcome, toQuantity } from '../../../chain/rpc/wire.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import { type ChainCheck, settleCall } from '../../usdc/checks.ts';
import { isRevert } from '../../usdc/payer-reads.ts';
import type { Job, OperationJob } from './job.ts';
import { batchAnswer, batchCalldata, MULTICALL3 } from './multicall.ts';
import { type Plan, type Reading, type Trial, throughOf } from './plan.ts';

export interface TryOutOptions {
  readonly chain: ChainClient;
  readonly check: Pick<ChainCheck, 'read'>;
  readonly usdc: `0x${string}`;
  /** The relayer's own address. */
  readonly relayer: `0x${string}`;
  readonly signal: AbortSignal;
}

/** How many providers must refuse a payment before it counts as refused, where two or more are configured. */
const ENOUGH = 2;
/** The code with which geth and reth answer a revert. */
const REVERT_CODE = 3;
/** Simulations of one request to each provider. */
const MOST_AT_ONCE = 100;

/**
 * Reads a plan's payers and simulates its groups at the same time. Rejects when no payer could be read, because then the chain itself does not
 * answer. A refused payment ends without a transaction, while the provider that was asked holds its authorization. So
 * no provider refuses one alone: a group that it does not accept whole is simulated again by a provider of each host.
 */
export async function tryOut(options: TryOutOptions, { free, trialGroups, limits }: Plan): Promise<Trial> {
  const calls = trialGroups.map((group) => simulation(options, group, limits));
  // A node that answers reads may refuse a simulation of this size. Then the simulation has no result.
  const noResult = (): RpcOutcome[] => [];
  const simulating = options.chain.batch(calls, { signal: options.signal }).catch(noResult);
  const [readings, simulated] = await Promise.all([readSome(options, free), simulating]);
  if (options.chain.agreed.witnesses < ENOUGH) return { readings, simulated };
  return askElsewhere(options, { trialGroups, calls }, { readings, simulated });
}

/**
 * Simulates each group that is not accepted whole once more, by a provider of each host. Of each payment that the first
 * one does not accept:
 * 1. Two providers refuse it: it is refused.
 * 2. At most one refuses it, and another one accepts it: it is accepted.
 * 3. One alone says anything of it, and refuses it: its payer counts as unread. So it is tried again later and then
 *    sent, because a mined transaction shows its end.
 */
async function askElsewhere(
  { chain, signal }: TryOutOptions,
  { trialGroups, calls }: Pick<Plan, 'trialGroups'> & { readonly calls: readonly RpcCall[] },
  { readings, simulated }: Trial,
): Promise<Trial> {
  const asked = trialGroups.flatMap((group, at) => {
    const [call, through] = [calls[at], throughOf(simulated[at], group.length)];
    return call && !through?.every(Boolean) ? [{ at, group, call, through }] : [];
  });
  const [known, outcomes] = [new Map(readings), [...simulated]];
  for (let start = 0; start < asked.length; start += MOST_AT_ONCE) {
    const some = asked.slice(start, start + MOST_AT_ONCE);
    const questions = some.map(({ call }) => call);
    const heard = await chain.each(questions, { signal }).catch(() => []);
    for (const [index, { at, group, through }] of some.entries()) {
      const said = heard.map((answers) => throughOf(answers[index], group.length)).filter((one) => one !== null);
      if (said.length === 0 && through === null) continue;
      const judged = group.map((job, place) => {
        if (through?.[place]) return true;
        if (said.filter((one) => one[place] === false).length >= ENOUGH) return false;
        const isAccepted = said.some((one) => one[place]);
        if (!isAccepted && !known.get(job)?.used) known.delete(job);
        return isAccepted;
      });
      outcomes[at] = outcomeOf(judged);
    }
  }
  return { readings: known, simulated: outcomes };
}

/** The outcome of a simulation that shows this for the jobs of its group. */
function outcomeOf(judged: readonly boolean[]): RpcOutcome {
  if (judged.length > 1) return { result: batchAnswer(judged) };
  return judged[0] ? { result: '0x' } : { error: new RpcError(REVERT_CODE, 'execution reverted') };
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
 * Simulates an operation with the gas and the price of its transaction, from a node that has its least block. A revert
 * ends an operation that no node has seen, so where two or more providers are configured, two must say it. Rejects
 * when the chain does not answer, when no node has the block, and when one provider alone says that it reverts.
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
  if (!('error' in outcome) || !isRevert(outcome.error) || chain.agreed.witnesses < 2) return outcome;
  const answers = (await chain.each(callsAt(block === null ? 'latest' : toQuantity(block)), { signal })).flat();
  const refusals = answers.filter((one) => 'error' in one && isRevert(one.error));
  const taken = answers.find((one) => 'result' in one);
  if (taken && refusals.length < 2) return taken;
  if (refusals.length < 2) throw new Error('no two providers say that an operation reverts');
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
