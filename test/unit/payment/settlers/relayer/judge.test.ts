import { afterEach, describe, expect, test, vi } from 'vitest';
import { createChainClient } from '../../../../../src/chain/rpc/client.ts';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { createChainCheck } from '../../../../../src/payment/evm/chain-check.ts';
import { createEvidence, type Receipt } from '../../../../../src/payment/evm/evidence.ts';
import { createPayerBans } from '../../../../../src/payment/evm/payer-bans.ts';
import { createTokenWatch } from '../../../../../src/payment/evm/token-watch.ts';
import { createGasModel } from '../../../../../src/payment/settlers/relayer/gas-model.ts';
import type { Job, Version } from '../../../../../src/payment/settlers/relayer/job.ts';
import { createJudge } from '../../../../../src/payment/settlers/relayer/judge.ts';
import { createNonces } from '../../../../../src/payment/settlers/relayer/nonces.ts';
import { RpcFault } from '../../../../support/chain/rpc-server.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { paidReceipt, randomAuthorization, randomJob, startTokenNode } from '../../../../support/usdc/token-node.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function bench() {
  const node = await startTokenNode();
  const chain = createChainClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 10_000 });
  closing.push(
    () => chain.close(),
    () => node.server.stop(),
  );
  const clock = createManualClock(1_800_000_000_000);
  const [gas, bans, nonces] = [createGasModel(60), createPayerBans(clock), createNonces()];
  const [queued, queuedLater]: [Job[], Job[]] = [[], []];
  const token = createTokenWatch({
    ...{ chain, usdc: USDC, payTo: USDC, sender: () => USDC, clock },
    log: { error: () => {}, info: () => {} },
  });
  const judge = createJudge({
    check: createChainCheck(chain, USDC, () => USDC),
    token,
    evidence: createEvidence(chain, USDC),
    ...{ usdc: USDC, gas, bans, nonces, clock, signal: new AbortController().signal },
    finish: (job, outcome) => {
      if (!job.ended) job.end(outcome);
      job.ended = true;
    },
    requeue: (jobs) => void queued.push(...jobs),
    requeueLater: (jobs) => void queuedLater.push(...jobs),
    log: { warn: () => {} },
  });
  const isBanned = ({ intent }: Job) => bans.has(bytesToHex(intent.authorization.from));
  return { node, token, judge, gas, nonces, clock, queued, queuedLater, isBanned };
}

/** Judges others from beginning to end, one after the other: whatever else was under way has had its turn, several times over. */
async function quiet({ judge, isBanned }: Awaited<ReturnType<typeof bench>>): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const wallet = randomJob({ hasCode: true });
    judge.mined(version([wallet]), reverted());
    await eventually(() => expect(isBanned(wallet)).toBe(true));
  }
}

/** The rest of the work goes on by itself; a machine that is busy must not fail the test. */
const eventually = (check: () => void) => vi.waitFor(check, { timeout: 10_000, interval: 5 });
const version = (jobs: readonly Job[], gas = 1_000_000n): Version => ({
  ...{ jobs, gas, raw: '0x', hash: '0x', price: { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n } },
});
const authorizations = (jobs: readonly Job[]) => jobs.map(({ intent }) => intent.authorization);
const FAILED = { kind: 'failed', reason: 'invalid_exact_evm_transaction_failed' };
const reverted = (changes: Partial<Receipt> = {}) => paidReceipt([], { status: '0x0', ...changes });
const settledIn = ({ transactionHash }: Receipt) => ({
  ...{ kind: 'settled', block: 100, paid: 1000n, transaction: Buffer.from(transactionHash.slice(2), 'hex') },
});

describe('a mined batch', () => {
  test('settles those whose transfer it holds at once; the others try again in half the company', async () => {
    const { judge, queued } = await bench();
    const jobs = Array.from({ length: 6 }, () => randomJob());
    const receipt = paidReceipt(authorizations(jobs.slice(0, 2)));
    expect(judge.mined(version(jobs), receipt)).toBe(2);
    for (const { outcomes } of jobs.slice(0, 2)) expect(outcomes).toEqual([settledIn(receipt)]);
    await eventually(() => expect(queued).toEqual(jobs.slice(2)));
    expect(queued.map(({ maxGroup, spoilt }) => [maxGroup, spoilt])).toEqual(Array(4).fill([2, false]));
  });

  test('that did not pay for one leaves it to whoever did, or to nobody', async () => {
    const { judge, node, queued } = await bench();
    const [ours, theirs, cancelled] = [randomJob(), randomJob(), randomJob()];
    const other = node.pay(theirs.intent.authorization);
    node.cancel(cancelled.intent.authorization);
    judge.mined(version([ours, theirs, cancelled]), paidReceipt(authorizations([ours])));
    await eventually(() => expect([theirs.ended, cancelled.ended]).toEqual([true, true]));
    expect(theirs.outcomes).toEqual([settledIn(other)]);
    expect(cancelled.outcomes).toEqual([{ kind: 'failed', reason: 'invalid_exact_evm_nonce_already_used' }]);
    expect(queued).toEqual([]);
  });

  test('of which all the gas was burnt makes the next ones smaller, and its own suspects', async () => {
    const { judge, gas, queued } = await bench();
    const jobs = Array.from({ length: 100 }, () => randomJob());
    judge.mined(version(jobs, 1_000_000n), reverted({ gasUsed: '0xf4240' }));
    await eventually(() => expect(queued).toHaveLength(100));
    expect(queued.every(({ spoilt, maxGroup }) => spoilt && maxGroup === 50)).toBe(true);
    expect(gas.most(30_000_000n, 100)).toBe(50);
  });
});

describe('a mined batch in which all were paid', () => {
  test('tells what a payment takes, and burns nothing, however much of its gas it used', async () => {
    const { judge, gas } = await bench();
    const jobs = Array.from({ length: 10 }, () => randomJob());
    const before = gas.expected();
    judge.mined(version(jobs, 1_000_000n), paidReceipt(authorizations(jobs), { gasUsed: '0xf4240' }));
    expect(gas.expected()).toBeLessThan(before);
    expect(gas.most(30_000_000n, 1000)).toBeGreaterThan(50);
    expect(jobs.map(({ spoilt }) => spoilt)).toEqual(Array(10).fill(false));
  });

  test('is not learned from where one was not paid', async () => {
    const { judge, gas } = await bench();
    const jobs = Array.from({ length: 10 }, () => randomJob());
    const before = gas.expected();
    judge.mined(version(jobs, 10_000_000n), paidReceipt(authorizations(jobs.slice(1)), { gasUsed: '0xf4240' }));
    expect(gas.expected()).toBe(before);
  });
});

describe('payments that nothing of ours is in flight for any more', () => {
  test('are looked at again where the chain does not tell of them, each once, and wait for five seconds', async () => {
    const { judge, node, queued, queuedLater, clock } = await bench();
    const jobs = Array.from({ length: 9 }, () => randomJob());
    for (const { intent } of jobs) node.hide(intent.authorization);
    await judge.reopen(jobs);
    expect([queued, queuedLater]).toEqual([[], jobs]);
    expect(node.server.count('eth_getLogs')).toBe(9);
    await clock.advance(5000);
    await judge.reopen(jobs);
    expect(jobs.map(({ outcomes }) => outcomes)).toEqual(Array(9).fill([]));
    await clock.advance(1);
    await judge.reopen(jobs);
    expect(jobs.map(({ outcomes }) => outcomes)).toEqual(Array(9).fill([{ kind: 'unknown' }]));
    expect(queuedLater).toHaveLength(18);
  });

  test('and have ended are not looked at, nor given back to the queue', async () => {
    const { judge, node, queued, queuedLater } = await bench();
    const [ended, open, paid] = [randomJob(), randomJob(), randomJob()];
    ended.ended = true;
    node.pay(paid.intent.authorization);
    await judge.reopen([ended, open, paid]);
    expect([queued, queuedLater, paid.outcomes.length]).toEqual([[open], [], 1]);
    const found = randomJob();
    node.pay(found.intent.authorization);
    expect(await judge.sort([ended, open, paid, found])).toEqual({ unused: [open], untold: [] });
  });
});

describe('a mined transaction of one', () => {
  test('is judged at its own block, whatever the chain’s head says', async () => {
    const { judge, node } = await bench();
    const honest = node.server.methods.eth_getBlockByNumber;
    node.server.methods.eth_getBlockByNumber = (params) => ({
      ...(honest?.(params) as object),
      number: params[0] === 'latest' ? '0x64' : params[0],
    });
    const job = randomJob();
    judge.mined(version([job]), reverted({ blockNumber: '0x5f' }));
    await eventually(() => expect(job.outcomes).toEqual([FAILED]));
    const asked = node.server.bodies.flat() as { method: string; params: unknown[] }[];
    expect(asked.find(({ method }) => method === 'eth_call')?.params[1]).toBe('0x5f');
  });

  test('that used six tenths of its gas bars its payer for a day, paid or not', async () => {
    const { judge, isBanned } = await bench();
    const [just, less] = [randomJob(), randomJob()];
    judge.mined(version([just], 300_000n), paidReceipt(authorizations([just]), { gasUsed: '0x2bf20' }));
    judge.mined(version([less], 300_000n), paidReceipt(authorizations([less]), { gasUsed: '0x2bf1f' }));
    expect([isBanned(just), isBanned(less)]).toEqual([true, false]);
  });

  test('without its transfer has failed, as far as nobody used it otherwise', async () => {
    const { judge, node, isBanned } = await bench();
    const [alone, elsewhere] = [randomJob(), randomJob()];
    const other = node.pay(elsewhere.intent.authorization);
    expect(judge.mined(version([alone]), reverted())).toBe(0);
    judge.mined(version([elsewhere]), reverted());
    await eventually(() => expect([alone.ended, elsewhere.ended]).toEqual([true, true]));
    expect([alone.outcomes, elsewhere.outcomes]).toEqual([[FAILED], [settledIn(other)]]);
    // Its money was there, and the token lets others through.
    await eventually(() => expect(isBanned(alone)).toBe(true));
    expect(isBanned(elsewhere)).toBe(false);
  });

  test('is not judged while another one of ours with the same payment may still be mined', async () => {
    const opened = await bench();
    const { judge, nonces, isBanned, queuedLater } = opened;
    const job = randomJob();
    job.nonces.add(6).add(7);
    nonces.passed(6, 100);
    expect(judge.mined(version([job]), reverted())).toBe(0);
    await quiet(opened);
    expect([job.outcomes, queuedLater, isBanned(job)]).toEqual([[], [], false]);
    nonces.passed(7, 100);
    judge.mined(version([job]), reverted());
    await eventually(() => expect(job.outcomes).toEqual([FAILED]));
  });

  test('of an account with code costs its payer a day, however little gas it used', async () => {
    const { judge, node, isBanned } = await bench();
    const wallet = randomJob({ hasCode: true });
    judge.mined(version([wallet], 300_000n), reverted({ gasUsed: '0x1' }));
    await eventually(() => expect(isBanned(wallet)).toBe(true));
    // Its code is enough to know whose doing it was.
    expect(node.calls('balance at')).toBe(0);
  });

  test('of an account that has grown code since costs its payer a day', async () => {
    const { judge, node, isBanned } = await bench();
    const grown = randomJob();
    node.server.methods.eth_getCode = () => '0x60';
    judge.mined(version([grown]), reverted());
    await eventually(() => expect(isBanned(grown)).toBe(true));
    expect(node.calls('balance at')).toBe(0);
  });

  test.each([
    ['less than the price', 999n, false],
    ['the price', 1000n, true],
  ])('of a plain account that had %s at that block refuses it: %s', async (_, balance, banned) => {
    const opened = await bench();
    const { judge, node, isBanned } = opened;
    node.balanceAt = (block) => (block === '0x64' ? balance : 10n ** 9n);
    const job = randomJob();
    judge.mined(version([job]), reverted());
    await eventually(() => expect(job.ended).toBe(true));
    if (banned) await eventually(() => expect(isBanned(job)).toBe(true));
    else await eventually(() => expect(node.calls('balance at')).toBe(1));
    await quiet(opened);
    expect([isBanned(job), node.calls('try the token')]).toEqual([banned, Number(banned)]);
  });

  test('while the token refuses every payment bans no payer: sales stop for all', async () => {
    const opened = await bench();
    const { judge, node, token, isBanned } = opened;
    node.shut = true;
    const job = randomJob();
    judge.mined(version([job]), reverted());
    await eventually(() => expect(token.refusal()).toMatch(/token is paused/));
    await quiet(opened);
    expect([job.outcomes, isBanned(job)]).toEqual([[FAILED], false]);
  });

  test('whose payer’s balance cannot be read bans no payer', async () => {
    const opened = await bench();
    const { judge, node, token, isBanned } = opened;
    node.balanceAt = () => {
      throw new RpcFault(-32000, 'missing trie node');
    };
    const job = randomJob();
    judge.mined(version([job]), reverted());
    await eventually(() => expect(job.ended).toBe(true));
    await quiet(opened);
    expect([isBanned(job), token.refusal(), node.calls('try the token')]).toEqual([false, null, 0]);
  });

  test('that burnt its whole budget costs its payer a day, paid or not; others burn nothing', async () => {
    const { judge, isBanned } = await bench();
    const [paid, unpaid, modest] = [randomJob(), randomJob(), randomJob()];
    judge.mined(version([paid], 300_000n), paidReceipt(authorizations([paid]), { gasUsed: '0x42000' }));
    judge.mined(version([unpaid], 300_000n), reverted({ gasUsed: '0x493e0' }));
    judge.mined(version([modest], 300_000n), paidReceipt(authorizations([modest]), { gasUsed: '0x1b000' }));
    expect([isBanned(paid), isBanned(unpaid), isBanned(modest)]).toEqual([true, true, false]);
    expect(paid.outcomes).toHaveLength(1);
  });

  test('of which the logs do not tell stays open, and is left to reconciliation when they never do', async () => {
    const { judge, node, queuedLater, clock } = await bench();
    const job = randomJob();
    node.hide(job.intent.authorization);
    judge.mined(version([job]), reverted());
    await eventually(() => expect(queuedLater).toEqual([job]));
    expect(job.untoldMs).toBe(clock.nowMs());
    await clock.advance(4000);
    await judge.examine([job]);
    expect(job.outcomes).toEqual([]);
    await clock.advance(2000);
    await judge.examine([job]);
    expect(job.outcomes).toEqual([{ kind: 'unknown' }]);
  });
});

describe('a payment that would not go through', () => {
  test('and that no node has seen is given back without a transaction, and the token is tried, because it may refuse every payment', async () => {
    const { judge, node, queued, token } = await bench();
    const job = randomJob();
    node.shut = true;
    await judge.examine([job]);
    expect([job.outcomes, queued]).toEqual([[FAILED], []]);
    await eventually(() => expect(token.refusal()).not.toBeNull());
  });

  test('as only a trial says, after a batch left it unpaid, refuses no plain payer: no transaction was spent on it alone', async () => {
    const opened = await bench();
    const { judge, nonces, isBanned } = opened;
    const job = randomJob();
    job.nonces.add(6);
    nonces.passed(6, 100);
    await judge.examine([job]);
    await quiet(opened);
    expect([job.outcomes, isBanned(job)]).toEqual([[FAILED], false]);
    expect(opened.node.calls('try the token')).toBe(1);
  });

  test('of an account with code says nothing of the token', async () => {
    const opened = await bench();
    const { judge, node } = opened;
    const wallet = randomJob({ hasCode: true });
    await judge.examine([wallet]);
    await quiet(opened);
    expect([wallet.outcomes, node.calls('try the token')]).toEqual([[FAILED], 0]);
  });

  test('but may be in other hands is sent alone: only a mined transaction tells its end', async () => {
    const { judge, queued, nonces } = await bench();
    const [before, inFlight, past] = [randomJob({ broadcast: true }), randomJob(), randomJob()];
    inFlight.nonces.add(7);
    past.nonces.add(6);
    nonces.passed(6, 100);
    await judge.examine([before, inFlight, past]);
    expect(queued).toEqual([before, inFlight]);
    expect(queued.every(({ mustSend, maxGroup }) => mustSend && maxGroup === 1)).toBe(true);
    expect([before.outcomes, inFlight.outcomes]).toEqual([[], []]);
    expect(past.outcomes).toEqual([FAILED]);
  });

  test('as a node says that lags behind our own receipts, is paid if these hold it', async () => {
    const opened = await bench();
    const { judge, node, nonces } = opened;
    const job = randomJob();
    job.nonces.add(6);
    nonces.passed(6, 100);
    const receipt = node.pay(job.intent.authorization);
    const honest = node.server.methods.eth_call;
    node.server.methods.eth_call = (params) => (params[1] === 'latest' ? `0x${'0'.repeat(64)}` : honest?.(params));
    await judge.examine([job]);
    expect(job.outcomes).toEqual([settledIn(receipt)]);
    // The token has let it through.
    await quiet(opened);
    expect(node.calls('try the token')).toBe(0);
  });

  test('after a spoilt batch, of a payer with code, is the spoiler: he is refused', async () => {
    const { judge, isBanned } = await bench();
    const [spoiler, bystander, wallet] = [randomJob(), randomJob(), randomJob()];
    Object.assign(spoiler, { spoilt: true, hasCode: true });
    Object.assign(bystander, { spoilt: true });
    Object.assign(wallet, { hasCode: true });
    await judge.examine([spoiler, bystander, wallet]);
    expect([spoiler, bystander, wallet].map(isBanned)).toEqual([true, false, false]);
  });

  test('while the chain does not answer ends nowhere', async () => {
    const { judge, node, queuedLater } = await bench();
    const job = randomJob();
    node.server.fault = '500';
    await judge.examine([job]);
    expect([job.outcomes, queuedLater]).toEqual([[], [job]]);
  });
});

describe('a payment that has run out', () => {
  const runOut = () => randomJob({ authorization: { ...randomAuthorization(), validBefore: 1n } });

  test('has failed once the chain’s own time says so', async () => {
    const { judge, queuedLater } = await bench();
    const job = runOut();
    await judge.expire([job]);
    const failed = { kind: 'failed', reason: 'invalid_exact_evm_payload_authorization_valid_before' };
    expect([job.outcomes, queuedLater]).toEqual([[failed], []]);
  });

  test('is looked at again until then, and is not sent', async () => {
    const { judge, queued, queuedLater, clock } = await bench();
    const job = randomJob();
    await judge.expire([job]);
    expect([job.outcomes, queued, queuedLater]).toEqual([[], [], [job]]);
    expect(job.untoldMs).toBe(clock.nowMs());
  });

  test('is paid if a third party sent it in time; each of many is looked at', async () => {
    const { judge, node } = await bench();
    const jobs = Array.from({ length: 20 }, runOut);
    const receipt = node.pay(...authorizations(jobs.slice(0, 2)));
    await judge.expire(jobs);
    expect(jobs.slice(0, 2).map(({ outcomes }) => outcomes)).toEqual([[settledIn(receipt)], [settledIn(receipt)]]);
    expect(jobs.every(({ outcomes }) => outcomes.length === 1)).toBe(true);
    // The head and the state of each, once.
    expect(node.server.count('eth_getBlockByNumber')).toBe(20);
  });
});
