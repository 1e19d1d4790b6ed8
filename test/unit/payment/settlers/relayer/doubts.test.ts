import { afterEach, describe, expect, test } from 'vitest';
import type { Job } from '../../../../../src/payment/relayer/transactions.ts';
import type { TransactionReceipt } from '../../../../../src/payment/usdc/evidence.ts';
import { RpcFault } from '../../../../support/chain/rpc-server.ts';
import { openRelayerBench } from '../../../../support/usdc/relayer-bench.ts';
import { paidReceipt, randomAuthorization, randomJob } from '../../../../support/usdc/token-node.ts';

// What becomes of payments in doubt, by the machine with its real reads of a node.

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function bench() {
  const opened = await openRelayerBench();
  closing.push(opened.close);
  return opened;
}

const authorizations = (jobs: readonly Job[]) => jobs.map(({ intent }) => intent.authorization);
const hex = (gas: bigint) => `0x${gas.toString(16)}`;
const FAILED = { kind: 'failed', reason: 'invalid_exact_evm_transaction_failed' };
const paying =
  (...jobs: Job[]) =>
  () =>
    paidReceipt(authorizations(jobs));
const reverted =
  (changes: Partial<TransactionReceipt> = {}) =>
  () =>
    paidReceipt([], { status: '0x0', ...changes });
const settledIn = ({ transactionHash }: TransactionReceipt) => ({
  kind: 'settled',
  block: 100,
  paid: 1000n,
  transaction: Buffer.from(transactionHash.slice(2), 'hex'),
});

describe('a mined batch', () => {
  test('settles at once the payments whose transfer it holds; the others are tried again in half the size', async () => {
    const { mined, rest, outcomes, state } = await bench();
    const jobs = Array.from({ length: 6 }, () => randomJob());
    const receipt = mined(jobs, paying(...jobs.slice(0, 2)));
    for (const job of jobs.slice(0, 2)) expect(outcomes(job)).toEqual([settledIn(receipt)]);
    await rest();
    expect(state.queue).toEqual(jobs.slice(2));
    expect(state.queue.map(({ maxGroup, wasInFailedBatch }) => [maxGroup, wasInFailedBatch])).toEqual(
      Array(4).fill([2, false]),
    );
  });

  test('that did not pay for one settles it only if a third party’s transaction did', async () => {
    const { mined, rest, node, outcomes, state } = await bench();
    const [ours, theirs, cancelled] = [randomJob(), randomJob(), randomJob()];
    const other = node.pay(theirs.intent.authorization);
    node.cancel(cancelled.intent.authorization);
    mined([ours, theirs, cancelled], paying(ours));
    await rest();
    expect(outcomes(theirs)).toEqual([settledIn(other)]);
    expect(outcomes(cancelled)).toEqual([{ kind: 'failed', reason: 'invalid_exact_evm_nonce_already_used' }]);
    expect(state.queue).toEqual([]);
  });

  test('whose gas was used up makes the next batches smaller, and suspects its payers', async () => {
    const { mined, rest, state } = await bench();
    const jobs = Array.from({ length: 100 }, () => randomJob());
    mined(jobs, (gas) => paidReceipt([], { status: '0x0', gasUsed: hex(gas) }));
    await rest();
    expect(state.queue).toHaveLength(100);
    expect(state.queue.every(({ wasInFailedBatch, maxGroup }) => wasInFailedBatch && maxGroup === 50)).toBe(true);
    expect(state.gas.most(30_000_000n, 100)).toBe(50);
  });

  test('with a replacement looks up the payments that only the other transaction held', async () => {
    const { launch, state, prices, feed, rest, outcomes } = await bench();
    const [first, second] = [randomJob(), randomJob()];
    const [flight] = await launch([first, second]);
    if (!flight) throw new Error('nothing was sent');
    const [transaction] = flight.transactions;
    state.flights.replace(flight, [second], prices);
    const result = { ...paidReceipt(authorizations([second])), transactionHash: flight.transactions[1]?.hash ?? '' };
    const sent = flight.transactions.map((each) => ({ flight, transaction: each }));
    feed({
      kind: 'fetchReceipts',
      effect: { kind: 'fetchReceipts', sent, for: 'look' },
      answer: [{ result: null }, { result }],
    });
    await rest();
    expect([outcomes(first), outcomes(second), state.queue]).toEqual([[], [settledIn(result)], [first]]);
    expect(transaction?.jobs).toEqual([first, second]);
  });
});

describe('a mined batch in which all were paid', () => {
  test('shows the gas of a payment, and does not count as exhausted, however much of its gas it used', async () => {
    const { mined, state } = await bench();
    const jobs = Array.from({ length: 10 }, () => randomJob());
    const before = state.gas.expected();
    mined(jobs, () => paidReceipt(authorizations(jobs), { gasUsed: '0xf4240' }));
    expect(state.gas.expected()).toBeLessThan(before);
    expect(state.gas.most(30_000_000n, 1000)).toBeGreaterThan(50);
    expect(jobs.map(({ wasInFailedBatch }) => wasInFailedBatch)).toEqual(Array(10).fill(false));
  });

  test('is not learned from where one was not paid', async () => {
    const { mined, state, rest } = await bench();
    const jobs = Array.from({ length: 10 }, () => randomJob());
    const before = state.gas.expected();
    mined(jobs, () => paidReceipt(authorizations(jobs.slice(1)), { gasUsed: '0xf4240' }));
    await rest();
    expect(state.gas.expected()).toBe(before);
  });
});

describe('payments that nothing of ours is in flight for any more', () => {
  test('are looked up again where the chain does not show them, each once, and wait for five seconds', async () => {
    const { sort, node, state, queuedLater, clock, outcomes } = await bench();
    const jobs = Array.from({ length: 9 }, () => randomJob());
    for (const { intent } of jobs) node.hide(intent.authorization);
    await sort(jobs, 'reopen');
    expect([state.queue, queuedLater()]).toEqual([[], jobs]);
    expect(node.server.count('eth_getLogs')).toBe(9);
    await clock.advance(5000);
    await sort(jobs, 'reopen');
    expect(jobs.map(outcomes)).toEqual(Array(9).fill([]));
    await clock.advance(1);
    await sort(jobs, 'reopen');
    expect(jobs.map(outcomes)).toEqual(Array(9).fill([{ kind: 'unknown' }]));
    expect(queuedLater()).toHaveLength(18);
  });

  test('and have ended are not looked up, and do not go back to the queue', async () => {
    const { sort, node, state, queuedLater, outcomes } = await bench();
    const [ended, open, paid] = [randomJob(), randomJob(), randomJob()];
    ended.ended = true;
    node.pay(paid.intent.authorization);
    await sort([ended, open, paid], 'reopen');
    expect([state.queue, queuedLater(), outcomes(paid).length]).toEqual([[open], [], 1]);
  });
});

describe('a mined transaction of one', () => {
  test('is judged at its own block, whatever the chain’s head says', async () => {
    const { mined, rest, node, outcomes } = await bench();
    const honest = node.server.methods.eth_getBlockByNumber;
    node.server.methods.eth_getBlockByNumber = (params) => ({
      ...(honest?.(params) as object),
      number: params[0] === 'latest' ? '0x64' : params[0],
    });
    const job = randomJob();
    mined([job], reverted({ blockNumber: '0x5f' }));
    await rest();
    expect(outcomes(job)).toEqual([FAILED]);
    const asked = node.server.bodies.flat() as { method: string; params: unknown[] }[];
    expect(asked.find(({ method }) => method === 'eth_call')?.params[1]).toBe('0x5f');
  });

  test('without its transfer has failed, unless a third party has used the authorization', async () => {
    const { mined, rest, node, isBanned, outcomes } = await bench();
    const [alone, elsewhere] = [randomJob(), randomJob()];
    const other = node.pay(elsewhere.intent.authorization);
    mined([alone], reverted());
    mined([elsewhere], reverted());
    await rest();
    expect([outcomes(alone), outcomes(elsewhere)]).toEqual([[FAILED], [settledIn(other)]]);
    // Its money was there, and the token lets others through.
    expect([isBanned(alone), isBanned(elsewhere)]).toEqual([true, false]);
  });

  test('is sent again, alone, while another one of ours with the same payment may still be mined, and has failed after that', async () => {
    const { mined, rest, state, isBanned, outcomes } = await bench();
    const job = randomJob();
    job.nonces.add(6).add(7);
    state.nonces.learn(6);
    mined([job], reverted());
    await rest();
    expect([outcomes(job), state.queue, job.mustSend, isBanned(job)]).toEqual([[], [job], true, true]);
    mined([job], reverted());
    await rest();
    expect(outcomes(job)).toEqual([FAILED]);
  });

  test('ends at once where its payer cancelled it, though another one of ours with it may still be mined', async () => {
    const { mined, rest, state, node, outcomes } = await bench();
    const job = randomJob();
    job.nonces.add(6).add(7);
    state.nonces.learn(6);
    node.cancel(job.intent.authorization);
    mined([job], reverted());
    await rest();
    expect([outcomes(job), state.queue]).toEqual([
      [{ kind: 'failed', reason: 'invalid_exact_evm_nonce_already_used' }],
      [],
    ]);
  });

  test('of an account with code bans its payer for a day, however little gas it used', async () => {
    const { mined, rest, node, isBanned } = await bench();
    const wallet = randomJob({ hasCode: true });
    mined([wallet], reverted({ gasUsed: '0x1' }));
    await rest();
    // Its code is enough to know whose doing it was: the balance is asked for by the reading of the payer alone.
    expect([isBanned(wallet), node.calls('balance at')]).toEqual([true, 1]);
  });

  test('of an account that got code since bans its payer for a day', async () => {
    const { mined, rest, node, isBanned } = await bench();
    const grown = randomJob();
    node.server.methods.eth_getCode = () => '0x60';
    mined([grown], reverted());
    await rest();
    expect([isBanned(grown), node.calls('balance at')]).toEqual([true, 1]);
  });

  test.each([
    ['less than the price', 999n, false],
    ['the price', 1000n, true],
  ])('of a plain account that had %s at that block refuses it: %s', async (_, balance, banned) => {
    const { mined, rest, node, isBanned, outcomes } = await bench();
    node.balanceAt = (block) => (block === '0x64' ? balance : 10n ** 9n);
    const job = randomJob();
    mined([job], reverted());
    await rest();
    expect([outcomes(job).length, node.calls('balance at')]).toEqual([1, 2]);
    expect([isBanned(job), node.calls('try the token')]).toEqual([banned, Number(banned)]);
  });

  test('while the token refuses every payment bans no payer: sales stop for all', async () => {
    const { mined, rest, node, token, isBanned, outcomes } = await bench();
    node.shut = true;
    const job = randomJob();
    mined([job], reverted());
    await rest();
    expect(token.refusal()).toMatch(/token is paused/);
    expect([outcomes(job), isBanned(job)]).toEqual([[FAILED], false]);
  });

  test('whose payer’s balance cannot be read bans no payer', async () => {
    const { mined, rest, node, token, isBanned, outcomes } = await bench();
    node.balanceAt = () => {
      throw new RpcFault(-32000, 'missing trie node');
    };
    const job = randomJob();
    mined([job], reverted());
    await rest();
    expect(outcomes(job)).toEqual([FAILED]);
    expect([isBanned(job), token.refusal(), node.calls('try the token')]).toEqual([false, null, 0]);
  });

  test('that used up its whole budget bans its payer for a day, paid or not; other transactions do not', async () => {
    const { mined, isBanned, outcomes } = await bench();
    const [paid, unpaid, modest] = [randomJob(), randomJob(), randomJob()];
    mined([paid], () => paidReceipt(authorizations([paid]), { gasUsed: '0x42000' }));
    mined([unpaid], reverted({ gasUsed: '0x493e0' }));
    mined([modest], () => paidReceipt(authorizations([modest]), { gasUsed: '0x1b000' }));
    expect([isBanned(paid), isBanned(unpaid), isBanned(modest)]).toEqual([true, true, false]);
    expect(outcomes(paid)).toHaveLength(1);
  });

  test('that the logs do not explain stays open, and is left to reconciliation when they never do', async () => {
    const { mined, rest, sort, node, queuedLater, clock, outcomes } = await bench();
    const job = randomJob();
    node.hide(job.intent.authorization);
    mined([job], reverted());
    await rest();
    expect([queuedLater(), job.unresolvedMs]).toEqual([[job], clock.nowMs()]);
    await clock.advance(4000);
    await sort([job], 'examine');
    expect(outcomes(job)).toEqual([]);
    await clock.advance(2000);
    await sort([job], 'examine');
    expect(outcomes(job)).toEqual([{ kind: 'unknown' }]);
  });
});

describe('a payment that would not go through', () => {
  test('and that no node has seen ends without a transaction, and the token is tested, because it may refuse every payment', async () => {
    const { sort, node, state, token, outcomes } = await bench();
    const job = randomJob();
    node.shut = true;
    await sort([job], 'examine');
    expect([outcomes(job), state.queue]).toEqual([[FAILED], []]);
    expect(token.refusal()).not.toBeNull();
  });

  test('as only a simulation says, after a batch left it unpaid, refuses no plain payer: no transaction was spent on it alone', async () => {
    const { sort, node, state, isBanned, outcomes } = await bench();
    const job = randomJob();
    job.nonces.add(6);
    state.nonces.passed(6, 100);
    await sort([job], 'examine');
    expect([outcomes(job), isBanned(job), node.calls('try the token')]).toEqual([[FAILED], false, 1]);
  });

  test('of an account with code proves nothing about the token', async () => {
    const { sort, node, outcomes } = await bench();
    const wallet = randomJob({ hasCode: true });
    await sort([wallet], 'examine');
    expect([outcomes(wallet), node.calls('try the token')]).toEqual([[FAILED], 0]);
  });

  test('but that a third party may hold is sent alone, because only a mined transaction decides it', async () => {
    const { sort, state, outcomes } = await bench();
    const [before, inFlight, past] = [randomJob({ broadcast: true }), randomJob(), randomJob()];
    inFlight.nonces.add(7);
    past.nonces.add(6);
    state.nonces.passed(6, 100);
    await sort([before, inFlight, past], 'examine');
    expect(state.queue).toEqual([before, inFlight]);
    expect(state.queue.every(({ mustSend, maxGroup }) => mustSend && maxGroup === 1)).toBe(true);
    expect([before, inFlight, past].map(outcomes)).toEqual([[], [], [FAILED]]);
  });

  test('as a node says that lags behind our own receipts, is paid if these hold it', async () => {
    const { sort, node, state, outcomes } = await bench();
    const job = randomJob();
    job.nonces.add(6);
    state.nonces.passed(6, 100);
    const receipt = node.pay(job.intent.authorization);
    const honest = node.server.methods.eth_call;
    node.server.methods.eth_call = (params) => (params[1] === 'latest' ? `0x${'0'.repeat(64)}` : honest?.(params));
    await sort([job], 'examine');
    expect(outcomes(job)).toEqual([settledIn(receipt)]);
    // The token has let it through.
    expect(node.calls('try the token')).toBe(0);
  });

  test('after a failed batch, of a payer with code, is the gas griefer’s: that payer alone is refused', async () => {
    const { sort, isBanned } = await bench();
    const [griefer, bystander, wallet] = [randomJob(), randomJob(), randomJob()];
    Object.assign(griefer, { wasInFailedBatch: true, hasCode: true });
    Object.assign(bystander, { wasInFailedBatch: true });
    Object.assign(wallet, { hasCode: true });
    await sort([griefer, bystander, wallet], 'examine');
    expect([griefer, bystander, wallet].map(isBanned)).toEqual([true, false, false]);
  });

  test('while the chain does not answer stays open', async () => {
    const { sort, node, queuedLater, outcomes } = await bench();
    const job = randomJob();
    node.server.fault = '500';
    await sort([job], 'examine');
    expect([outcomes(job), queuedLater()]).toEqual([[], [job]]);
  });
});

describe('a payment whose authorization has expired', () => {
  const runOut = () => randomJob({ authorization: { ...randomAuthorization(), validBefore: 1n } });

  test('has failed once the chain’s own time says so', async () => {
    const { plan, queuedLater, outcomes } = await bench();
    const job = runOut();
    await plan([job]);
    const failed = { kind: 'failed', reason: 'invalid_exact_evm_payload_authorization_valid_before' };
    expect([outcomes(job), queuedLater()]).toEqual([[failed], []]);
  });

  test('is looked at again until then, and is not sent', async () => {
    const { plan, state, queuedLater, clock, noted } = await bench();
    // The chain's time is some seconds behind ours.
    const validBefore = BigInt(Math.floor(clock.nowMs() / 1000));
    const job = randomJob({ authorization: { ...randomAuthorization(), validBefore } });
    await plan([job]);
    expect([noted, state.queue, queuedLater()]).toEqual([[], [], [job]]);
    expect(job.unresolvedMs).toBe(clock.nowMs());
  });

  test('is paid if a third party sent it in time; each of many is looked at', async () => {
    const { plan, node, outcomes } = await bench();
    const jobs = Array.from({ length: 20 }, runOut);
    const receipt = node.pay(...authorizations(jobs.slice(0, 2)));
    await plan(jobs);
    expect(jobs.slice(0, 2).map(outcomes)).toEqual([[settledIn(receipt)], [settledIn(receipt)]]);
    expect(jobs.every((job) => outcomes(job).length === 1)).toBe(true);
    // The head, then the state of each with the header of its block, once.
    expect(node.server.count('eth_getBlockByNumber')).toBe(40);
    expect(node.server.count('eth_call')).toBe(20);
  });
});
