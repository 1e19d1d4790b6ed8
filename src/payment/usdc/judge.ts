import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { ChainCheck } from './chain-check.ts';
import { type Evidence, paymentsIn, type Receipt } from './evidence.ts';
import type { GasModel } from './gas-model.ts';
import { halve } from './grouping.ts';
import type { Job, Version } from './job.ts';
import type { PayerBans } from './payer-bans.ts';
import { type Outcome, REVERTED } from './settler.ts';

interface JudgeOptions {
  check: Pick<ChainCheck, 'read'>;
  evidence: Evidence;
  usdc: `0x${string}`;
  gas: GasModel;
  bans: PayerBans;
  signal: AbortSignal;
  finish(job: Job, outcome: Outcome): void;
  requeue(jobs: readonly Job[]): void;
  log: { warn(detail: object, message: string): void };
}

/** Says how jobs ended, from the chain alone; what it does not tell stays open. */
export function createJudge({ check, evidence, usdc, gas, bans, signal, finish, requeue, log }: JudgeOptions) {
  /** Ends a job that the logs tell of; true when it is over. */
  async function endedByLogs(job: Job, atBlock?: number): Promise<boolean> {
    const { authorization, fromBlock } = job.intent;
    const verdict = await evidence
      .lookup(authorization, fromBlock, atBlock)
      .catch(() => ({ kind: 'unknown' }) as const);
    if (verdict.kind === 'settled' || verdict.kind === 'failed') finish(job, verdict);
    return job.ended;
  }

  /** What the chain knows of waiting jobs: those whose authorization is unused, and those of which it does not tell yet. The others it has ended. */
  async function sort(jobs: readonly Job[]): Promise<{ unused: Job[]; untold: Job[] }> {
    const waiting = jobs.filter((job) => !job.ended);
    const readings = await Promise.all(
      waiting.map(({ intent }) => check.read(intent.authorization, signal).catch(() => null)),
    );
    const used = waiting.filter((_, index) => readings[index]?.used !== false);
    for (const job of used) await endedByLogs(job);
    const unused = waiting.filter((job) => !used.includes(job) && !job.ended);
    return { unused, untold: used.filter((job) => !job.ended) };
  }

  /** The jobs that are not over, as far as the chain tells. */
  async function stillOpen(jobs: readonly Job[]): Promise<Job[]> {
    const { unused, untold } = await sort(jobs);
    return [...unused, ...untold];
  }

  /**
   * A transaction of ours was mined; throws while its end cannot be told, and is asked again. Each job by its own logs, never by the call's success:
   * 1. the transfer is there: settled;
   * 2. it is not, in a batch: what is unused tries again in half the company, so that whatever spoilt the batch ends up alone;
   * 3. it is not, alone: the logs tell who used it, or else it was reverted; one that burnt its whole budget is not sold to for a day.
   */
  async function mined(version: Version, receipt: Receipt): Promise<void> {
    const { jobs } = version;
    const block = Number(receipt.blockNumber);
    const transaction = hexToBytes(receipt.transactionHash);
    const isPaid = paymentsIn(receipt, usdc);
    for (const job of jobs) if (isPaid(job.intent.authorization)) finish(job, { kind: 'settled', transaction, block });
    const unpaid = jobs.filter((job) => !job.ended);
    const gasUsed = BigInt(receipt.gasUsed);
    if (unpaid.length === 0 && jobs.length > 1) gas.learn(gasUsed, jobs.length);
    const [only] = unpaid;
    if (only === undefined) return;
    if (jobs.length > 1) {
      log.warn(
        { unpaid: unpaid.length, batch: jobs.length, transaction: receipt.transactionHash },
        'a batch left some unpaid',
      );
      const open = await stillOpen(unpaid);
      halve(open.length === jobs.length ? jobs : open);
      requeue(open);
      return;
    }
    if (gasUsed * 10n >= version.gas * 9n) bans.add(bytesToHex(only.intent.authorization.from));
    await judgeAlone(only, block);
  }

  async function judgeAlone(job: Job, block: number): Promise<void> {
    const { authorization, fromBlock } = job.intent;
    const verdict = await evidence.lookup(authorization, fromBlock, block);
    if (verdict.kind === 'unknown') throw new Error('the logs do not tell of it yet');
    finish(job, verdict.kind === 'open' ? { kind: 'failed', reason: REVERTED } : verdict);
  }

  /** Jobs that a look before sending found used or not to go through. What was never shown to a node is simply given back. */
  async function examine(jobs: readonly Job[]): Promise<void> {
    const { unused, untold } = await sort(jobs);
    for (const job of unused.filter(({ broadcast }) => !broadcast)) finish(job, { kind: 'failed', reason: REVERTED });
    const left = [...unused.filter(({ broadcast }) => broadcast), ...untold];
    // A transaction with it may still be somewhere: alone, the chain will tell.
    for (const job of left) job.maxGroup = 1;
    if (left.length > 0) requeue(left);
  }

  return { mined, examine, stillOpen, retry: requeue };
}

export type Judge = ReturnType<typeof createJudge>;
