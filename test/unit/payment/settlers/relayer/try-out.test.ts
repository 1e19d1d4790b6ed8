import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { tryOut } from '../../../../../src/payment/relayer/requests.ts';
import { judgeTrial, learnPayers, planRound } from '../../../../../src/payment/relayer/sending.ts';
import { batchAnswer, type Job } from '../../../../../src/payment/relayer/transactions.ts';
import { createChainCheck } from '../../../../../src/payment/usdc/checks.ts';
import { MULTICALL3 } from '../../../../../src/payment/usdc/token.ts';
import { openClient } from '../../../../support/chain/client.ts';
import { RpcFault } from '../../../../support/chain/rpc-server.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { randomJob, startTokenNode, type TokenNode } from '../../../../support/usdc/token-node.ts';

// Simulations over several providers of different hosts, of which one may lie. A payment that is refused here ends
// without a transaction, although the provider that was asked holds its authorization.

const RELAYER = `0x${'aa'.repeat(20)}` as const;
interface Call {
  readonly from?: string;
  readonly to: string;
}
/** How a provider answers the simulation of a batch: for each payment, whether it succeeds. For a lone one the first counts. */
type Says = () => readonly boolean[];

let nodes: TokenNode[];
let closing: (() => Promise<unknown>)[];
beforeEach(() => {
  [nodes, closing] = [[], []];
});
afterEach(async () => {
  for (const close of closing) await close();
});

const isTrial = (params: readonly unknown[]): boolean => (params[0] as Call | undefined)?.from === RELAYER;
const trialsOf = ({ server }: TokenNode): number =>
  server.bodies.flat().filter((body) => isTrial((body as { params: unknown[] }).params)).length;
const noResult = (): never => {
  throw new RpcFault(-32000, 'no');
};

/** Opens one provider for each of these, in the order in which they are asked, and returns what a round is judged by. */
async function over(...providers: readonly Says[]) {
  for (const says of providers) {
    const node = await startTokenNode();
    const honest = node.server.methods.eth_call;
    node.server.methods.eth_call = (params) => {
      if (!isTrial(params)) return honest?.(params);
      const said = says();
      if ((params[0] as Call).to === MULTICALL3) return batchAnswer(said);
      if (!said[0]) throw new RpcFault(3, 'execution reverted');
      return '0x';
    };
    nodes.push(node);
    closing.push(() => node.server.stop());
  }
  const chain = openClient({
    rpcUrls: nodes.map(({ server }) => server.url),
    chainId: 5042,
    timeoutMs: 60_000,
  });
  closing.push(() => chain.close());
  const check = createChainCheck(chain, USDC, () => RELAYER);
  const options = { chain, usdc: USDC, relayer: RELAYER, signal: new AbortController().signal, check };
  const limits = { gas: 18_000_000n, gasPrice: 1n, isCareful: true, most: () => 100, callWeight: 2 };
  return async (jobs: readonly Job[]) => {
    const plan = planRound(jobs, limits);
    const trial = await tryOut(options, plan);
    learnPayers(plan.free, trial.readings);
    return judgeTrial(plan, trial);
  };
}

const yes: Says = () => [true];
const no: Says = () => [false];

describe('a lone payment that the first provider refuses', () => {
  test('is sent when another one accepts it', async () => {
    const run = await over(no, yes);
    const job = randomJob();
    expect(await run([job])).toEqual({ groups: [[job]], doubtful: [], again: [] });
  });

  test.each([
    ['of two', [no, no]],
    ['of three', [no, yes, no]],
  ])('is refused when two refuse it, %s', async (_, providers) => {
    const run = await over(...providers);
    const job = randomJob();
    expect(await run([job])).toEqual({ groups: [], doubtful: [job], again: [] });
  });

  test('is not refused while no other one says anything, and is sent alone at the third time', async () => {
    const run = await over(no, noResult);
    const job = randomJob();
    for (const times of [1, 2]) {
      expect(await run([job])).toEqual({ groups: [], doubtful: [], again: [job] });
      expect(job.unread).toBe(times);
    }
    expect(await run([job])).toEqual({ groups: [[job]], doubtful: [], again: [] });
  });

  test('and whose authorization is used is looked up all the same', async () => {
    const run = await over(no, noResult);
    const job = randomJob();
    nodes[0]?.pay(job.intent.authorization);
    expect(await run([job])).toEqual({ groups: [], doubtful: [job], again: [] });
  });

  test('is refused by a lone provider’s word', async () => {
    const run = await over(no);
    const job = randomJob();
    expect(await run([job])).toEqual({ groups: [], doubtful: [job], again: [] });
    expect(nodes.map(trialsOf)).toEqual([1]);
  });
});

describe('a batch', () => {
  test('loses only those payments that two providers refuse', async () => {
    const run = await over(
      () => [false, false, true],
      () => [true, false, true],
    );
    const [denied, poor, good] = [randomJob(), randomJob(), randomJob()];
    const jobs = [denied, poor, good];
    expect(await run(jobs)).toEqual({ groups: [[denied, good]], doubtful: [poor], again: [] });
  });

  test('without a result at the first provider has that of another one', async () => {
    const run = await over(noResult, () => [true, true]);
    const jobs = [randomJob(), randomJob()];
    expect(await run(jobs)).toEqual({ groups: [jobs], doubtful: [], again: [] });
  });

  test('without a result anywhere is tried again in smaller groups', async () => {
    const run = await over(noResult, noResult);
    const jobs = [randomJob(), randomJob()];
    expect(await run(jobs)).toEqual({ groups: [], doubtful: [], again: jobs });
    expect(jobs.map(({ maxGroup }) => maxGroup)).toEqual([1, 1]);
  });

  test('that the first provider accepts costs one request', async () => {
    const run = await over(
      () => [true, true],
      () => [false, false],
    );
    const jobs = [randomJob(), randomJob()];
    expect((await run(jobs)).groups).toEqual([jobs]);
    expect(nodes.map(trialsOf)).toEqual([1, 0]);
  });
});
