import type { ChainClient, RpcOutcome } from '../../chain/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { hexToBytes } from '../../lib/hex.ts';
import { type Evidence, paysFor, type Receipt } from './evidence.ts';
import { createFees } from './fees.ts';
import { createNonces } from './nonces.ts';
import { type Intent, type Outcome, REVERTED, type Settler } from './settler.ts';
import { SETTLE_GAS, transferCalldata } from './token.ts';
import type { Signed, Wallet } from './wallet.ts';

/** The JSON-RPC batch limit of Arc's nodes is 100. */
const BATCH = 100;
/** Six blocks on Arc: a transaction without a receipt after that is looked into, priced anew and sent to every provider. */
const LATE_MS = 3000;
const RETRY_MS = 500;

type Sent = Signed & { nonce: number; maxFeePerGas: bigint; atMs: number };

interface Job {
  readonly intent: Intent;
  readonly sinceMs: number;
  readonly end: (outcome: Outcome) => void;
  ended: boolean;
  /** The transaction on its way, if there is one. */
  sent: Sent | null;
}

interface RelayerOptions {
  chain: ChainClient;
  usdc: `0x${string}`;
  wallet: Wallet;
  evidence: Evidence;
  clock: Clock;
  pollMs: number;
  /** A job that waits longer than this stops the sale of more. */
  stallMs: number;
  /** Made durable before anything is broadcast; returns the ids that still await settlement, the others must not be sent. */
  noteBroadcast(entries: { id: string; transaction: Uint8Array }[]): Promise<ReadonlySet<string>>;
  log: { warn(detail: object, message: string): void };
}

/**
 * Our own settler: one key, one queue. What waits goes out together as one batch of raw transactions; receipts are polled together.
 * A job ends when the chain has said so. Presenting an authorization twice wastes gas, never money, because its nonce moves money once.
 */
export function createRelayer(options: RelayerOptions): Settler {
  const { chain, usdc, wallet, evidence, clock, pollMs, stallMs, noteBroadcast, log } = options;
  const nonces = createNonces();
  const fees = createFees(chain, clock);
  const queue: Job[] = [];
  const inFlight = new Set<Job>();
  const stopping = new AbortController();
  const { signal } = stopping;
  let sending: Promise<void> | null = null;
  let watching: Promise<void> | null = null;

  const pause = (ms: number) => clock.sleep(ms, signal).catch(() => {});

  function finish(job: Job, outcome: Outcome): void {
    inFlight.delete(job);
    job.ended = true;
    job.end(outcome);
  }

  function requeue(job: Job): void {
    job.sent = null;
    inFlight.delete(job);
    if (!job.ended) queue.unshift(job);
  }

  async function sendAll(): Promise<void> {
    while (queue.length > 0 && !signal.aborted) {
      const jobs = queue.splice(0, BATCH).filter((job) => !job.ended);
      try {
        await send(jobs);
      } catch (error) {
        // Nothing of this batch was sent: the chain could not be read, or the ledger could not be written.
        log.warn({ err: error, waiting: jobs.length + queue.length }, 'settling waits');
        for (const job of jobs.reverse()) requeue(job);
        await pause(RETRY_MS);
      }
    }
  }

  async function send(jobs: Job[]): Promise<void> {
    if (!nonces.known()) nonces.learn(await minedCount());
    await fees.refresh();
    for (const job of jobs) sign(job);
    const sendable = await note(jobs);
    watching ??= watch().finally(() => {
      watching = null;
    });
    await broadcast(sendable);
  }

  /** Gives a job the next free nonce and a transaction that pays today's price; one that has both already stays as it is. */
  function sign(job: Job): void {
    const nonce = nonces.next(heldBy(job));
    const waiting = job.sent?.nonce === nonce ? job.sent.maxFeePerGas : 0n;
    if (job.sent && waiting > 0n && fees.covers(waiting)) {
      job.sent.atMs = clock.nowMs();
      return;
    }
    const price = fees.offer(waiting);
    const call = { to: usdc, data: transferCalldata(job.intent.authorization), gas: SETTLE_GAS, nonce, ...price };
    job.sent = { ...wallet.sign(call), nonce, maxFeePerGas: price.maxFeePerGas, atMs: clock.nowMs() };
    inFlight.add(job);
  }

  /** Writes the hashes down; a job whose row is no longer waiting is dropped unsent. */
  async function note(jobs: readonly Job[]): Promise<Job[]> {
    const entries = jobs.flatMap(({ intent, sent }) =>
      sent ? [{ id: intent.id, transaction: hexToBytes(sent.hash) }] : [],
    );
    const waiting = await noteBroadcast(entries);
    const dropped = jobs.filter(({ intent }) => !waiting.has(intent.id));
    for (const job of dropped) finish(job, { kind: 'unknown' });
    return jobs.filter((job) => !dropped.includes(job));
  }

  /** Sends what the jobs hold. A batch without an answer may have arrived: its jobs stay in flight until they are late. */
  async function broadcast(jobs: readonly Job[]): Promise<void> {
    const calls = jobs.map((job) => ({ method: 'eth_sendRawTransaction', params: [job.sent?.raw] }));
    let outcomes: RpcOutcome[];
    try {
      outcomes = await chain.batch(calls, { signal });
    } catch (error) {
      log.warn({ err: error, transactions: jobs.length }, 'broadcast unanswered');
      return;
    }
    const refused = jobs.filter((job, index) => isRefusal(outcomes[index]) && inFlight.has(job));
    if (refused.length === 0) return;
    log.warn({ refused: refused.length, reason: messageOf(outcomes.find(isRefusal)) }, 'broadcast refused');
    // The chain may have moved without us: it is asked for the nonce again. A mined one shows at the next look.
    nonces.forget();
    await pause(RETRY_MS);
    for (const job of refused) if (!job.ended && !(await settledBy(job))) requeue(job);
    kick();
  }

  async function watch(): Promise<void> {
    while (inFlight.size > 0 && !signal.aborted) {
      await pause(pollMs);
      await look().catch((error) => log.warn({ err: error, inFlight: inFlight.size }, 'receipts unread'));
    }
  }

  async function look(): Promise<void> {
    const jobs = [...inFlight];
    const calls = jobs.map((job) => ({ method: 'eth_getTransactionReceipt', params: [job.sent?.hash] }));
    const outcomes = await chain.batch(calls, { signal });
    for (const [index, job] of jobs.entries()) {
      const outcome = outcomes[index];
      const receipt = outcome && 'result' in outcome ? (outcome.result as Receipt | null) : null;
      // One receipt that cannot be read must not hide the others.
      await judge(job, receipt).catch((error) => log.warn({ err: error }, 'a receipt was not understood'));
    }
    const late = jobs.filter((job) => !job.ended && job.sent && clock.nowMs() - job.sent.atMs > LATE_MS);
    if (late.length > 0) await rescue(late);
  }

  /** Ends a job whose transaction was mined; leaves it alone while the chain does not tell. */
  async function judge(job: Job, receipt: Receipt | null): Promise<void> {
    if (!receipt || job.ended) return;
    const { authorization, fromBlock } = job.intent;
    const block = Number(receipt.blockNumber);
    if (job.sent?.hash === receipt.transactionHash) nonces.passed(job.sent.nonce);
    if (paysFor(receipt, usdc, authorization)) {
      finish(job, { kind: 'settled', transaction: hexToBytes(receipt.transactionHash), block });
      return;
    }
    // Mined without the transfer: somebody else may have sent the same authorization first.
    const verdict = await evidence.lookup(authorization, fromBlock, block);
    if (verdict.kind === 'open') finish(job, { kind: 'failed', reason: REVERTED });
    else if (verdict.kind !== 'unknown') finish(job, verdict);
  }

  /**
   * Late jobs, whatever kept them (a dropped or hoarded transaction, a gap below, a price that has risen):
   * 1. what the chain already tells ends them;
   * 2. the others get the lowest free nonces, and are signed again where that or the price is another;
   * 3. and handed to every provider.
   */
  async function rescue(jobs: readonly Job[]): Promise<void> {
    const open: Job[] = [];
    for (const job of jobs) if (!(await settledBy(job))) open.push(job);
    nonces.learn(await minedCount());
    await fees.refresh();
    for (const job of open.filter(({ ended }) => !ended)) sign(job);
    const sendable = await note(open.filter(({ ended }) => !ended));
    log.warn({ late: sendable.length }, 'settlements are late; sent again to every provider');
    const calls = sendable.map((job) => ({ method: 'eth_sendRawTransaction', params: [job.sent?.raw] }));
    await chain.everywhere(calls, { signal });
  }

  /** Whether the logs already tell a job's end, by whatever transaction. */
  async function settledBy(job: Job): Promise<boolean> {
    const { authorization, fromBlock } = job.intent;
    const verdict = await evidence.lookup(authorization, fromBlock).catch(() => ({ kind: 'unknown' }) as const);
    if (verdict.kind === 'open' || verdict.kind === 'unknown' || job.ended) return job.ended;
    finish(job, verdict);
    return true;
  }

  async function minedCount(): Promise<number> {
    return Number(await chain.request<string>('eth_getTransactionCount', [wallet.address, 'latest'], { signal }));
  }

  /** The nonces that others hold: a job that is signed again may keep its own. */
  function heldBy(asking: Job): ReadonlySet<number> {
    return new Set([...inFlight].flatMap((job) => (job !== asking && job.sent ? [job.sent.nonce] : [])));
  }

  function kick(): void {
    sending ??= sendAll().finally(() => {
      sending = null;
      if (queue.length > 0 && !signal.aborted) kick();
    });
  }

  function oldestMs(): number {
    const now = clock.nowMs();
    return Math.max(0, ...[...queue, ...inFlight].map((job) => now - job.sinceMs));
  }

  return {
    settle: (intents) => {
      const ends = intents.map((intent) => {
        if (signal.aborted) return Promise.resolve<Outcome>({ kind: 'unknown' });
        return new Promise<Outcome>((end) => {
          queue.push({ intent, end, sinceMs: clock.nowMs(), ended: false, sent: null });
        });
      });
      kick();
      return ends;
    },
    unavailable: () => {
      if (signal.aborted) return 'the service is stopping';
      return oldestMs() > stallMs ? 'earlier settlements are late' : null;
    },
    stop: async () => {
      stopping.abort();
      await Promise.all([sending, watching]);
      for (const job of [...queue.splice(0), ...inFlight]) finish(job, { kind: 'unknown' });
    },
  };
}

/** A node's no, other than that it has the transaction already. */
function isRefusal(outcome: RpcOutcome | undefined): boolean {
  return outcome !== undefined && 'error' in outcome && !/already (known|imported|exists)/i.test(outcome.error.message);
}

function messageOf(outcome: RpcOutcome | undefined): string | undefined {
  return outcome && 'error' in outcome ? outcome.error.message : undefined;
}
