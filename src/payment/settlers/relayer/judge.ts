import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../lib/hex.ts';
import type { ChainCheck } from '../../evm/chain-check.ts';
import { type Evidence, paymentsIn, type Receipt } from '../../evm/evidence.ts';
import type { PayerBans } from '../../evm/payer-bans.ts';
import type { TokenWatch } from '../../evm/token-watch.ts';
import { type Outcome, REVERTED } from '../../settler.ts';
import type { GasModel } from './gas-model.ts';
import { halve } from './grouping.ts';
import type { Job, Version } from './job.ts';
import type { Nonces } from './nonces.ts';

/** Looks at the chain for many jobs: as many at once as a public node bears. */
const AT_ONCE = 8;
/**
 * Of the 300,000 gas that a lone settlement is given a plain account uses 91,077, and a wallet of several owners some 130,000. What uses this much
 * makes its payment cost the relayer twice what others cost.
 */
const DEAR_PERCENT = 60n;
/** Logs may be a moment behind the state; after this the job is left to reconciliation. */
const UNTOLD_MS = 5000;

interface JudgeOptions {
  check: Pick<ChainCheck, 'read' | 'balanceAt'>;
  evidence: Pick<Evidence, 'lookup'>;
  token: Pick<TokenWatch, 'check'>;
  usdc: `0x${string}`;
  gas: Pick<GasModel, 'learn' | 'spoilt'>;
  bans: Pick<PayerBans, 'add'>;
  nonces: Pick<Nonces, 'isPast' | 'provenBlock'>;
  clock: Clock;
  signal: AbortSignal;
  finish(job: Job, outcome: Outcome): void;
  requeue(jobs: readonly Job[]): void;
  /** Queues after a pause. */
  requeueLater(jobs: readonly Job[]): void;
  log: { warn(detail: object, message: string): void };
}

/** Says how jobs ended, from the chain alone; what it does not tell stays open. */
export function createJudge(options: JudgeOptions) {
  const { check, evidence, token, usdc, gas, bans, nonces, clock, signal, finish, requeue, requeueLater, log } =
    options;

  const refusePayer = ({ intent }: Job): void => bans.add(bytesToHex(intent.authorization.from));
  /** Whether something of ours with it may still be mined. */
  const isPending = (job: Job): boolean => [...job.nonces].some((nonce) => !nonces.isPast(nonce));

  /** Ends a job that the logs tell of. */
  async function endByLogs(job: Job): Promise<void> {
    const { authorization, fromBlock } = job.intent;
    const verdict = await evidence.lookup(authorization, fromBlock).catch(() => ({ kind: 'unknown' }) as const);
    if (verdict.kind === 'settled' || verdict.kind === 'failed') finish(job, verdict);
  }

  /** What the chain knows of waiting jobs: those whose authorization is unused, and those of which it does not tell yet. The others it has ended. */
  async function sort(jobs: readonly Job[]): Promise<{ unused: Job[]; untold: Job[] }> {
    const waiting = jobs.filter((job) => !job.ended);
    const readings = await Promise.all(
      waiting.map(({ intent }) => check.read(intent.authorization, signal).catch(() => null)),
    );
    const unused = waiting.filter((_, index) => readings[index]?.used === false);
    for (const job of unused) job.untoldMs = null;
    const used = waiting.filter((_, index) => readings[index]?.used !== false);
    for (let at = 0; at < used.length; at += AT_ONCE) await Promise.all(used.slice(at, at + AT_ONCE).map(endByLogs));
    return { unused: unused.filter((job) => !job.ended), untold: used.filter((job) => !job.ended) };
  }

  /** The chain does not tell of these now: they are looked at again, and in the end by reconciliation, but not sent. */
  function wait(jobs: readonly Job[]): void {
    const now = clock.nowMs();
    for (const job of jobs) {
      job.untoldMs ??= now;
      if (now - job.untoldMs > UNTOLD_MS) finish(job, { kind: 'unknown' });
    }
    requeueLater(jobs.filter((job) => !job.ended));
  }

  /** Jobs that nothing of ours is in flight for any more: back to the queue with what is unused. Never rejects. */
  async function reopen(jobs: readonly Job[]): Promise<void> {
    const { unused, untold } = await sort(jobs);
    requeue(unused);
    wait(untold);
  }

  /**
   * A transaction of ours was mined. Each job by its own logs, never by the call's success:
   * 1. the transfer is there: settled, at once;
   * 2. it is not, in a batch: what is unused tries again in half the company, so that whatever spoilt the batch ends up alone;
   * 3. it is not, alone, and nothing else of ours with it can still be mined: the logs tell who used it, or else it was reverted.
   * Alone, one that used more than DEAR_PERCENT of its gas is not sold to for a day, paid or not.
   * Returns how many it paid for; 2 and 3 go on by themselves.
   */
  function mined(version: Version, receipt: Receipt): number {
    const { jobs } = version;
    const block = Number(receipt.blockNumber);
    const transaction = hexToBytes(receipt.transactionHash);
    const paidIn = paymentsIn(receipt, usdc);
    const paid = jobs.flatMap((job) => {
      const amount = paidIn(job.intent.authorization);
      if (amount !== null) finish(job, { kind: 'settled', transaction, block, paid: amount });
      return amount === null ? [] : [job];
    });
    const gasUsed = BigInt(receipt.gasUsed);
    const burnt = gasUsed * 10n >= version.gas * 9n;
    const isDear = gasUsed * 100n >= version.gas * DEAR_PERCENT;
    const [first] = jobs;
    if (jobs.length === 1 && first) {
      if (isDear) refusePayer(first);
      // Another nonce of ours may still move the money; its own end is judged when it comes.
      if (!first.ended && !isPending(first)) void judgeAlone(first, block);
      return paid.length;
    }
    const unpaid = jobs.filter((job) => !job.ended);
    if (paid.length === jobs.length) gas.learn(gasUsed, jobs.length);
    else
      log.warn(
        { unpaid: unpaid.length, batch: jobs.length, transaction: receipt.transactionHash },
        'a batch left some unpaid',
      );
    if (burnt && paid.length < jobs.length) {
      gas.spoilt(jobs.length);
      for (const job of unpaid) job.spoilt = true;
    }
    halve(unpaid);
    if (unpaid.length > 0) void reopen(unpaid);
    return paid.length;
  }

  /** Ends a job of which everything that we sent was mined by this block, as the logs say. Returns whether nothing moved. Never rejects. */
  async function endAt(job: Job, block: number): Promise<boolean> {
    const { authorization, fromBlock } = job.intent;
    const verdict = await evidence
      .lookup(authorization, fromBlock, { atBlock: block })
      .catch(() => ({ kind: 'unknown' }) as const);
    if (verdict.kind === 'unknown') wait([job]);
    else finish(job, verdict.kind === 'open' ? { kind: 'failed', reason: REVERTED } : verdict);
    return verdict.kind === 'open';
  }

  /** Ends a job that was mined alone and is not paid. Never rejects. */
  async function judgeAlone(job: Job, block: number): Promise<void> {
    if (await endAt(job, block)) await blame(job, block);
  }

  /**
   * Decides which payer is banned for a lone transaction that moved nothing.
   * 1. An account with code passed a simulation: it is banned.
   * 2. A plain account without the money at that block is not banned: the purchase counts the failure.
   * 3. For a plain account with the money the token is tried: if the token works, the payer is banned.
   * The balance is read at the transaction's block, because the money may have come back since. An unreadable balance bans no payer.
   */
  async function blame(job: Job, block: number): Promise<void> {
    const { from, value } = job.intent.authorization;
    const reading = await check.read(job.intent.authorization, signal).catch(() => null);
    if (job.hasCode || reading?.hasCode) return refusePayer(job);
    const balance = await check.balanceAt(from, block, signal).catch(() => null);
    if (balance === null || balance < value) return;
    if (await token.check()) refusePayer(job);
  }

  /** Ends jobs whose authorizations have run out, which must not be sent any more, as soon as the chain's own time says so. Never rejects. */
  async function expire(jobs: readonly Job[]): Promise<void> {
    for (let at = 0; at < jobs.length; at += AT_ONCE) await Promise.all(jobs.slice(at, at + AT_ONCE).map(endByLogs));
    wait(jobs.filter((job) => !job.ended));
  }

  /**
   * Jobs that a look before sending found used or not to go through. What nobody else can have is given back without a transaction:
   * it was shown to no node, or only in transactions that were mined without it. Nodes differ in height: that they were is read at a
   * block that has them.
   */
  async function examine(jobs: readonly Job[]): Promise<void> {
    const { unused, untold } = await sort(jobs);
    wait(untold);
    const shown = unused.filter((job) => job.intent.broadcast || isPending(job));
    for (const job of unused) {
      if (job.spoilt && job.hasCode) refusePayer(job);
      if (shown.includes(job)) continue;
      if (job.nonces.size === 0) finish(job, { kind: 'failed', reason: REVERTED });
      else if (!(await endAt(job, nonces.provenBlock()))) continue;
      // Only the simulation refused it, which cost nothing: its payer is not banned. The token may refuse every payer.
      if (!job.hasCode) void token.check();
    }
    for (const job of shown) {
      job.mustSend = true;
      job.maxGroup = 1;
    }
    requeue(shown);
  }

  return { mined, examine, reopen, expire, sort };
}

export type Judge = ReturnType<typeof createJudge>;
