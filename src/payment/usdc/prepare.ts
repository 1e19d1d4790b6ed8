import type { ChainClient, RpcOutcome } from '../../chain/client.ts';
import { toQuantity } from '../../chain/wire.ts';
import type { ChainCheck } from './chain-check.ts';
import { cutGroups, halve } from './grouping.ts';
import type { Job } from './job.ts';
import { batchCalldata, batchOutcomes, MULTICALL3 } from './multicall.ts';

interface PrepareOptions {
  chain: ChainClient;
  check: Pick<ChainCheck, 'read'>;
  usdc: `0x${string}`;
  relayer: `0x${string}`;
  signal: AbortSignal;
}

/** What may be sent now, each group in one transaction, and what must be looked at or tried again first. */
export interface Prepared {
  readonly groups: readonly Job[][];
  /** The chain has used these, or would not run them. */
  readonly doubtful: readonly Job[];
  /** The simulation of their batch said nothing: to be sent in smaller ones. */
  readonly again: readonly Job[];
}

/**
 * Looks at the chain just before sending, because a payer may have moved its money or grown code since its call was verified:
 * 1. one alone is sent as it is, since looking would cost more than it saves;
 * 2. used authorizations are set aside, payers with code go alone;
 * 3. each batch is simulated, and what would not go through is set aside.
 */
export function createPrepare({ chain, check, usdc, relayer, signal }: PrepareOptions) {
  /** With all the gas of a block: what a batch runs out of says nothing about its payments. */
  function simulation(group: readonly Job[], blockGas: bigint) {
    const data = batchCalldata(
      usdc,
      group.map(({ intent }) => intent.authorization),
    );
    const call = { from: relayer, to: MULTICALL3, data, gas: toQuantity(blockGas) };
    return { method: 'eth_call', params: [call, 'latest'] };
  }

  return async (jobs: readonly Job[], most: number, blockGas: bigint): Promise<Prepared> => {
    const [only] = jobs;
    if (only && jobs.length === 1) return { groups: [[only]], doubtful: [], again: [] };
    const readings = await Promise.all(jobs.map(({ intent }) => check.read(intent.authorization, signal)));
    const doubtful = jobs.filter((_, index) => readings[index]?.used);
    const good = jobs.filter((_, index) => !readings[index]?.used);
    const withCode = new Set(jobs.filter((_, index) => readings[index]?.hasCode));
    for (const job of withCode) job.maxGroup = 1;
    const groups = cutGroups(good, most);
    const batches = groups.filter((group) => group.length > 1);
    const outcomes = await chain.batch(
      batches.map((group) => simulation(group, blockGas)),
      { signal },
    );
    const again: Job[] = [];
    const passed = batches.map((group, index) => {
      const through = readOutcome(outcomes[index], group.length);
      if (through === null) {
        halve(group);
        again.push(...group);
        return [];
      }
      doubtful.push(...group.filter((_, at) => !through[at]));
      return group.filter((_, at) => through[at]);
    });
    const ready = [...groups.filter((group) => group.length === 1), ...passed.filter((group) => group.length > 0)];
    return { groups: ready, doubtful, again };
  };
}

/** Null when the whole batch failed, as one that is burnt out of gas does. */
function readOutcome(outcome: RpcOutcome | undefined, count: number): boolean[] | null {
  if (!outcome || 'error' in outcome || typeof outcome.result !== 'string') return null;
  try {
    return batchOutcomes(outcome.result as `0x${string}`, count);
  } catch {
    return null;
  }
}
