import { encodeFunctionResult, parseAbi } from 'viem';
import { afterEach, describe, expect, test } from 'vitest';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { tryOut } from '../../../../../src/payment/relayer/requests.ts';
import { judgeTrial, learnPayers, planRound } from '../../../../../src/payment/relayer/sending.ts';
import type { Prepared } from '../../../../../src/payment/relayer/state.ts';
import type { Job } from '../../../../../src/payment/relayer/transactions.ts';
import { createChainCheck } from '../../../../../src/payment/usdc/checks.ts';
import { MULTICALL3 } from '../../../../../src/payment/usdc/token.ts';
import { openClient } from '../../../../support/chain/client.ts';
import { RpcFault } from '../../../../support/chain/rpc-server.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { randomJob, startTokenNode } from '../../../../support/usdc/token-node.ts';

const RELAYER = `0x${'aa'.repeat(20)}` as const;
const abi = parseAbi([
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(uint256) view returns (Result[] memory returnData)',
]);

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

interface Trial {
  readonly to: string;
  readonly gas: string;
  readonly gasPrice?: string;
  readonly from?: string;
}

/** A node on which the test says who has code and how trials end; `trials` are those that were asked for. */
async function bench() {
  const node = await startTokenNode();
  const chain = openClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 60_000 });
  closing.push(
    () => chain.close(),
    () => node.server.stop(),
  );
  const coded = new Set<string>();
  const trials: Trial[] = [];
  const blocks: unknown[] = [];
  const said = { alone: (): unknown => '0x', together: (_count: number): boolean[] => [] };
  const honest = node.server.methods.eth_call;
  node.server.methods.eth_getCode = ([account]) => (coded.has(String(account)) ? '0x60' : '0x');
  node.server.methods.eth_call = (params) => {
    const [call] = params as [Trial & { data: string }];
    if (call.from !== RELAYER) return honest?.(params);
    trials.push(call);
    blocks.push(params[1]);
    if (call.to !== MULTICALL3) return said.alone();
    // Each payment of a batch names the token once, as a whole word: a signature may end like it.
    const results = said.together(call.data.split(USDC.slice(2).padStart(64, '0')).length - 1);
    const result = results.map((success) => ({ success, returnData: '0x' as const }));
    return encodeFunctionResult({ abi, functionName: 'aggregate3', result });
  };
  const options = {
    chain,
    usdc: USDC,
    relayer: RELAYER,
    signal: new AbortController().signal,
    check: createChainCheck(chain, USDC, () => RELAYER),
  };
  const grow = ({ intent }: Job) => void coded.add(bytesToHex(intent.authorization.from));
  /** Plans a round, simulates it where that is needed, and judges the answers. */
  const run = async (jobs: readonly Job[], { isCareful = false } = {}): Promise<Prepared> => {
    const plan = planRound(jobs, {
      gas: 18_000_000n,
      gasPrice: 20_000_000_000n,
      isCareful,
      most: () => 100,
      callWeight: 2,
    });
    const trial = plan.free.length > 0 ? await tryOut(options, plan) : { readings: new Map(), simulated: [] };
    learnPayers(plan.free, trial.readings);
    return judgeTrial(plan, trial);
  };
  /** Reads of these payers fail from now on, until the test says otherwise. */
  const unreadable = new Set<Job>();
  const read = node.server.methods.eth_call;
  node.server.methods.eth_call = (params) => {
    const [{ from, data }] = params as [{ from?: string; data: string }];
    const isOf = ({ intent }: Job) => data.includes(bytesToHex(intent.authorization.from).slice(2));
    if (from !== RELAYER && [...unreadable].some(isOf)) throw new RpcFault(-32000, 'missing trie node');
    return read?.(params);
  };
  return { node, said, trials, blocks, grow, run, unreadable };
}

const jobs = (count: number, more: Parameters<typeof randomJob>[0] = {}) =>
  Array.from({ length: count }, () => randomJob(more));
const through = () => true;

describe('a payment that waits alone', () => {
  test('of a plain account is sent without a simulation', async () => {
    const { node, run } = await bench();
    const [job] = jobs(1);
    expect(await run([job as Job])).toEqual({ groups: [[job]], doubtful: [], again: [] });
    expect(node.server.bodies).toEqual([]);
  });

  test('of an account with code is simulated first, at the gas price of its transaction', async () => {
    const { trials, run } = await bench();
    const [wallet] = jobs(1, { hasCode: true });
    expect((await run([wallet as Job])).groups).toEqual([[wallet]]);
    expect(trials).toMatchObject([{ from: RELAYER, to: USDC, gas: '0x493e0', gasPrice: '0x4a817c800' }]);
  });

  test('of an account with code is not sent when its simulation fails', async () => {
    const { said, run, grow } = await bench();
    const [wallet] = jobs(1, { hasCode: true });
    grow(wallet as Job);
    said.alone = () => {
      throw new RpcFault(3, 'execution reverted');
    };
    expect(await run([wallet as Job])).toEqual({ groups: [], doubtful: [wallet], again: [] });
  });

  test('of a plain account is simulated when it was in a failed batch, or when today’s failures have cost enough', async () => {
    const { trials, run } = await bench();
    const [careful, suspected] = jobs(2);
    expect((await run([careful as Job], { isCareful: true })).groups).toEqual([[careful]]);
    (suspected as Job).wasInFailedBatch = true;
    expect((await run([suspected as Job])).groups).toEqual([[suspected]]);
    expect(trials).toHaveLength(2);
  });

  test('and may be with a third party already is sent without a simulation, with code or without', async () => {
    const { node, run } = await bench();
    const [forced] = jobs(1, { hasCode: true });
    (forced as Job).mustSend = true;
    expect((await run([forced as Job], { isCareful: true })).groups).toEqual([[forced]]);
    expect(node.server.bodies).toEqual([]);
  });

  test('and cannot be read on the chain is examined, not sent', async () => {
    const { run } = await bench();
    const [unread, other] = jobs(2);
    (unread as Job).unresolvedMs = 1;
    expect(await run([unread as Job, other as Job])).toEqual({ groups: [[other]], doubtful: [unread], again: [] });
  });
});

describe('payments that wait together', () => {
  test('share a transaction when all simulations succeed, and each account with code has its own transaction', async () => {
    const { said, grow, run } = await bench();
    said.together = (count) => Array.from({ length: count }, through);
    const [plain, wallets] = [jobs(3), jobs(2, { hasCode: true })];
    for (const wallet of wallets) grow(wallet);
    const { groups, doubtful, again } = await run([...plain, ...wallets]);
    expect(groups).toHaveLength(3);
    expect(groups).toEqual(expect.arrayContaining([plain, ...wallets.map((wallet) => [wallet])]));
    expect([doubtful, again]).toEqual([[], []]);
  });

  test('leave out one whose nonce is used, and one whose simulation fails', async () => {
    const { node, said, run } = await bench();
    const [used, poor, ...good] = jobs(5);
    node.pay((used as Job).intent.authorization);
    said.together = () => [true, false, true, true, true];
    const all = [used as Job, poor as Job, ...good];
    expect(await run(all)).toEqual({ groups: [good], doubtful: [used, poor], again: [] });
  });

  test('whose simulation failed beside an account with code are simulated again without it, because it may have used up their gas', async () => {
    const { said, grow, run } = await bench();
    const [before, grown, after] = [jobs(2), randomJob(), jobs(2)];
    // It grew code after its call was verified, and burns what it is given.
    grow(grown);
    said.together = () => [true, true, false, false, false];
    const { groups, doubtful, again } = await run([...before, grown, ...after]);
    expect(groups).toEqual([before]);
    for (const job of after) expect([doubtful.includes(job), again.includes(job)]).toEqual([false, true]);
  });
});

describe('a payer that cannot be read', () => {
  test('is read again while the other payers’ payments are sent; after three failures in a row its payment is sent alone', async () => {
    const { said, run, unreadable } = await bench();
    said.together = (count) => Array.from({ length: count }, through);
    const unread = randomJob();
    unreadable.add(unread);
    for (const times of [1, 2]) {
      const others = jobs(2);
      expect(await run([unread, ...others])).toEqual({ groups: [others], doubtful: [], again: [unread] });
      expect(unread.unread).toBe(times);
    }
    const others = jobs(2);
    const { groups, doubtful, again } = await run([unread, ...others]);
    expect([groups, doubtful, again]).toEqual([expect.arrayContaining([[unread], others]), [], []]);
    expect(groups).toHaveLength(2);
  });

  test('and then can be read is treated as any other payer', async () => {
    const { said, run, unreadable } = await bench();
    said.together = (count) => Array.from({ length: count }, through);
    const all = jobs(2);
    unreadable.add(all[0] as Job);
    await run(all);
    unreadable.clear();
    expect((await run(all)).groups).toEqual([all]);
    expect(all.map(({ unread }) => unread)).toEqual([0, 0]);
  });

  test('counts no failed read when no payer can be read: the chain does not answer, so the round ends', async () => {
    const { run, unreadable } = await bench();
    const all = jobs(2);
    for (const job of all) unreadable.add(job);
    await expect(run(all)).rejects.toThrow(/chain/);
    expect(all.map(({ unread }) => unread)).toEqual([0, 0]);
  });
});

describe('a payer that got code after its call was verified', () => {
  test('counts as an account with code from then on, and its payment is sent alone', async () => {
    const { said, grow, run } = await bench();
    said.together = (count) => Array.from({ length: count }, through);
    const [grown, ...others] = jobs(3);
    grow(grown as Job);
    const { groups } = await run([grown as Job, ...others]);
    expect(groups).toEqual([[grown], others]);
    expect([grown, ...others].map((job) => [job?.hasCode, job?.maxGroup])).toEqual([
      [true, 1],
      [false, Number.MAX_SAFE_INTEGER],
      [false, Number.MAX_SAFE_INTEGER],
    ]);
  });
});

describe('payments that a third party may hold', () => {
  test('are each sent alone, without a simulation, beside those that are simulated', async () => {
    const { said, trials, blocks, run } = await bench();
    said.together = (count) => Array.from({ length: count }, through);
    const [forced, other, ...free] = jobs(4);
    for (const job of [forced, other]) (job as Job).mustSend = true;
    const { groups, doubtful, again } = await run([forced as Job, ...free, other as Job]);
    expect([groups, doubtful, again]).toEqual([[free, [forced], [other]], [], []]);
    expect([trials.length, blocks]).toEqual([1, ['latest']]);
  });

  test('are sent where there is nothing else to simulate', async () => {
    const { node, run } = await bench();
    const all = jobs(2);
    for (const job of all) job.mustSend = true;
    expect((await run(all)).groups).toEqual(all.map((job) => [job]));
    expect(node.server.bodies).toEqual([]);
  });
});

describe('a simulation without a result', () => {
  test.each<[string, () => boolean[]]>([
    [
      'because the node does not run so much',
      () => {
        throw new RpcFault(-32000, 'out of gas: not enough for the call');
      },
    ],
    ['because its answer is of another batch', () => [true]],
  ])('of a batch, %s, is repeated for half the batch next time', async (_, together) => {
    const { said, run } = await bench();
    said.together = together;
    const all = jobs(5);
    expect(await run(all)).toEqual({ groups: [], doubtful: [], again: all });
    expect(all.map(({ maxGroup }) => maxGroup)).toEqual([3, 3, 3, 3, 3]);
  });

  test('of a batch with an account that got code is repeated without that account, in the same size', async () => {
    const { said, grow, run } = await bench();
    said.together = () => {
      throw new RpcFault(-32000, 'timeout');
    };
    const [grown, ...others] = jobs(4);
    grow(grown as Job);
    expect((await run([grown as Job, ...others])).again).toEqual([grown, ...others]);
    expect(others.map(({ maxGroup }) => maxGroup)).toEqual(Array(3).fill(Number.MAX_SAFE_INTEGER));
  });

  test('of one payment alone is repeated when the node itself fails', async () => {
    const { said, run } = await bench();
    const [wallet] = jobs(1, { hasCode: true });
    said.alone = () => {
      throw new RpcFault(-32000, 'header not found');
    };
    expect(await run([wallet as Job])).toEqual({ groups: [], doubtful: [], again: [wallet] });
  });

  test('is repeated when the node answers reads but no simulation', async () => {
    const { node, run } = await bench();
    const isTrial = (call: unknown) => (call as { params: [{ from?: string }] }).params[0]?.from === RELAYER;
    node.server.fault = (calls) => (calls.some(isTrial) ? '500' : null);
    const all = jobs(4);
    expect(await run(all)).toEqual({ groups: [], doubtful: [], again: all });
  });
});
