import { describe, expect, test } from 'vitest';
import type { Job, Transaction } from '../../../../../src/payment/relayer/transactions.ts';
import {
  isGriefer,
  judgeLookUp,
  judgePayer,
  judgeReceipt,
  judgeRefused,
  judgeUnresolved,
} from '../../../../../src/payment/relayer/verdicts.ts';
import type { TransactionReceipt } from '../../../../../src/payment/usdc/evidence.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { paidReceipt, randomJob } from '../../../../support/usdc/token-node.ts';

const FAILED = { kind: 'failed', reason: 'invalid_exact_evm_transaction_failed' } as const;
const transactionOf = (jobs: readonly Job[], gas: bigint): Transaction => ({
  jobs,
  operationJob: null,
  gas,
  raw: '0x',
  hash: '0x',
  price: { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n },
});
const paying = (jobs: readonly Job[], gasUsed: bigint): TransactionReceipt =>
  paidReceipt(
    jobs.map(({ intent }) => intent.authorization),
    { gasUsed: `0x${gasUsed.toString(16)}` },
  );
const judge = (jobs: readonly Job[], gas: bigint, receipt: TransactionReceipt) =>
  judgeReceipt(transactionOf(jobs, gas), receipt, USDC);
const kindsOf = (job: Job, { rulings }: ReturnType<typeof judge>) =>
  rulings.filter((ruling) => ruling.job === job).map(({ verdict }) => verdict.kind);

describe('a receipt of a batch', () => {
  test('settles those whose transfer it holds, and reads the others once more for half as many together', () => {
    const jobs = Array.from({ length: 6 }, () => randomJob());
    const receipt = paying(jobs.slice(0, 1), 100_000n);
    const { rulings, paid, gasExhausted } = judge(jobs, 1_000_000n, receipt);
    const transaction = Buffer.from(receipt.transactionHash.slice(2), 'hex');
    const outcome = { kind: 'settled', transaction, block: 100, paid: 1000n };
    const again = { kind: 'requeue', maxGroup: 3, gasExhausted: false };
    expect(rulings.map(({ verdict }) => verdict)).toEqual([{ kind: 'end', outcome }, ...Array(5).fill(again)]);
    expect([rulings.map(({ job }) => job), paid, gasExhausted]).toEqual([jobs, 1, false]);
  });

  test.each([
    [899_999n, 9, false],
    [900_000n, 9, true],
    [900_000n, 10, false],
  ])('that used %d of a million gas and paid %d of 10 has run out of gas: %s', (gasUsed, paid, gasExhausted) => {
    const jobs = Array.from({ length: 10 }, () => randomJob());
    expect(judge(jobs, 1_000_000n, paying(jobs.slice(0, paid), gasUsed))).toMatchObject({ paid, gasExhausted });
  });

  test('gives no verdict on a payment that has ended already', () => {
    const [ended, open] = [randomJob(), randomJob()];
    ended.ended = true;
    const judged = judge([ended, open], 1_000_000n, paying([], 1n));
    expect([kindsOf(ended, judged), judged.rulings]).toMatchObject([[], [{ job: open, verdict: { maxGroup: 1 } }]]);
  });
});

describe('a receipt of a lone payment', () => {
  test('proves nothing about batches, however much of its gas it used', () => {
    const job = randomJob();
    expect(judge([job], 300_000n, paying([], 300_000n))).toMatchObject({ paid: 0, gasExhausted: false });
  });

  test.each([
    [179_999n, false],
    [180_000n, true],
  ])('that used %d of 300,000 gas bans its payer: %s, paid or not', (gasUsed, isBanned) => {
    const [paid, unpaid] = [randomJob(), randomJob()];
    const ban = isBanned ? ['ban'] : [];
    expect(kindsOf(paid, judge([paid], 300_000n, paying([paid], gasUsed)))).toEqual(['end', ...ban]);
    expect(kindsOf(unpaid, judge([unpaid], 300_000n, paying([], gasUsed)))).toEqual([...ban, 'lookUp']);
  });

  test('without its transfer is looked up at its block, unless it has ended', () => {
    const [job, ended] = [randomJob(), randomJob()];
    ended.ended = true;
    const receipt = paying([], 1n);
    expect(judge([job], 300_000n, receipt).rulings).toEqual([{ job, verdict: { kind: 'lookUp', atBlock: 100 } }]);
    expect(judge([ended], 300_000n, receipt).rulings).toEqual([]);
  });
});

describe('a lookup', () => {
  test('without a result makes a job wait for five seconds in all, and leaves it to reconciliation then', () => {
    const job = randomJob();
    expect(judgeUnresolved(job, 10_000).verdict).toEqual({ kind: 'wait' });
    job.unresolvedMs = 10_000;
    expect(judgeUnresolved(job, 15_000).verdict).toEqual({ kind: 'wait' });
    const left = { kind: 'end', outcome: { kind: 'unknown' } };
    expect(judgeUnresolved(job, 15_001).verdict).toEqual(left);
    expect(judgeLookUp(job, { kind: 'unknown' }, { nowMs: 15_001, isPending: true }).verdict).toEqual(left);
  });

  test('up to the block by which all of ours was mined ends a job: as it says, or as reverted where the authorization is unused', () => {
    const job = randomJob();
    const used = { kind: 'failed', reason: 'invalid_exact_evm_nonce_already_used' } as const;
    const known = { nowMs: 0, isPending: false };
    expect(judgeLookUp(job, used, known).verdict).toEqual({ kind: 'end', outcome: used });
    expect(judgeLookUp(job, { kind: 'open' }, known).verdict).toEqual({ kind: 'end', outcome: FAILED });
  });

  test('while another transaction of ours may still be mined ends a used job, and sends an unused one alone', () => {
    const job = randomJob();
    const used = { kind: 'failed', reason: 'invalid_exact_evm_nonce_already_used' } as const;
    const known = { nowMs: 0, isPending: true };
    expect(judgeLookUp(job, used, known).verdict).toEqual({ kind: 'end', outcome: used });
    expect(judgeLookUp(job, { kind: 'open' }, known).verdict).toEqual({ kind: 'sendAlone' });
  });
});

test('an unused job that would fail ends, is looked up or is sent alone, depending on who may hold it', () => {
  const known = { isPending: false, provenBlock: 77 };
  const [unseen, shown, mined, pending] = [randomJob(), randomJob({ broadcast: true }), randomJob(), randomJob()];
  mined.nonces.add(3);
  pending.nonces.add(4);
  expect(judgeRefused(unseen, known)).toEqual({ kind: 'end', outcome: FAILED });
  expect(judgeRefused(shown, known)).toEqual({ kind: 'sendAlone' });
  expect(judgeRefused(mined, known)).toEqual({ kind: 'lookUp', atBlock: 77 });
  expect(judgeRefused(pending, { ...known, isPending: true })).toEqual({ kind: 'sendAlone' });
});

test('a lone transaction that moved nothing is blamed on a payer with code, or on one that held the price while the token works', () => {
  const [plain, wallet] = [randomJob(), randomJob({ hasCode: true })];
  expect([judgePayer(wallet, { hasCode: false }), judgePayer(plain, { hasCode: true })]).toEqual(['ban', 'ban']);
  expect(judgePayer(plain, { hasCode: false })).toBe('ask');
  const balances = [null, 999n, 1000n].map((balance) => judgePayer(plain, { balance }));
  expect(balances).toEqual(['no', 'no', 'ask']);
});

test('a payer with code is the gas griefer of a batch that failed, another is not', () => {
  const jobs = [true, false].flatMap((hasCode) => [true, false].map((failed) => ({ hasCode, failed })));
  const found = jobs.map(({ hasCode, failed }) => isGriefer({ ...randomJob({ hasCode }), wasInFailedBatch: failed }));
  expect(found).toEqual([true, false, false, false]);
});
