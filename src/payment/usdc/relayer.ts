import type { ChainClient, RpcOutcome } from '../../chain/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { hexToBytes } from '../../lib/hex.ts';
import { type Evidence, paysFor, type Receipt } from './evidence.ts';
import type { Sequence } from './sequence.ts';
import { type Intent, type Outcome, REVERTED, type Settler } from './settler.ts';
import { SETTLE_GAS, transferCalldata } from './token.ts';
import type { Signed, Wallet } from './wallet.ts';

/** The JSON-RPC batch limit of Arc's nodes is 100. */
const BATCH = 100;
/** A transaction without a receipt is sent again this often: a node may have restarted or dropped it. */
const RESEND_MS = 3000;
const RETRY_MS = 500;

interface Job {
  readonly intent: Intent;
  readonly end: (outcome: Outcome) => void;
  /** The transaction on its way, if there is one. */
  sent: (Signed & { nonce: number; atMs: number }) | null;
}

interface RelayerOptions {
  chain: ChainClient;
  usdc: `0x${string}`;
  wallet: Wallet;
  sequence: Sequence;
  evidence: Evidence;
  clock: Clock;
  pollMs: number;
  /** Made durable before anything is broadcast: after a crash, no hash means that nothing was sent. */
  noteBroadcast(entries: { id: string; transaction: Uint8Array }[]): Promise<void>;
  log: { warn(detail: object, message: string): void };
}

/**
 * Our own settler: one key, one nonce sequence, one queue. What waits goes out together as one batch of raw transactions;
 * receipts are polled together. A job ends when the chain has said so; presenting an authorization twice wastes gas, never money,
 * because its nonce moves money once.
 */
export function createRelayer(options: RelayerOptions): Settler {
  const { chain, usdc, wallet, sequence, evidence, clock, pollMs, noteBroadcast, log } = options;
  const queue: Job[] = [];
  const inFlight = new Set<Job>();
  const stopping = new AbortController();
  let sending: Promise<void> | null = null;
  let watching: Promise<void> | null = null;

  function finish(job: Job, outcome: Outcome): void {
    inFlight.delete(job);
    job.end(outcome);
  }

  function requeue(job: Job): void {
    job.sent = null;
    inFlight.delete(job);
    queue.unshift(job);
  }

  async function sendAll(): Promise<void> {
    while (queue.length > 0 && !stopping.signal.aborted) {
      const jobs = queue.splice(0, BATCH);
      try {
        await send(jobs);
      } catch (error) {
        // Nothing of this batch was sent: the chain could not be read, or the ledger could not be written.
        log.warn({ err: error, waiting: jobs.length + queue.length }, 'settling waits');
        for (const job of jobs.reverse()) if (!inFlight.has(job)) queue.unshift(job);
        sequence.resync();
        await clock.sleep(RETRY_MS, stopping.signal).catch(() => {});
      }
    }
  }

  async function send(jobs: Job[]): Promise<void> {
    await sequence.prepare(highestNonce());
    for (const job of jobs) {
      const nonce = sequence.take();
      const data = transferCalldata(job.intent.authorization);
      job.sent = {
        ...wallet.sign({ to: usdc, data, gas: SETTLE_GAS, nonce, ...sequence.fees() }),
        nonce,
        atMs: clock.nowMs(),
      };
    }
    await noteBroadcast(jobs.map((job) => ({ id: job.intent.id, transaction: hexToBytes(job.sent?.hash ?? '0x') })));
    for (const job of jobs) inFlight.add(job);
    watching ??= watch().finally(() => {
      watching = null;
    });
    await broadcast(jobs);
  }

  /** Sends (again) what the jobs hold. A batch without an answer may have arrived: its jobs stay in flight and are sent again later. */
  async function broadcast(jobs: Job[]): Promise<void> {
    const calls = jobs.map((job) => ({ method: 'eth_sendRawTransaction', params: [job.sent?.raw] }));
    let outcomes: RpcOutcome[];
    try {
      outcomes = await chain.batch(calls, { signal: stopping.signal });
    } catch (error) {
      log.warn({ err: error, transactions: jobs.length }, 'broadcast unanswered');
      return;
    }
    for (const [index, job] of jobs.entries()) {
      const outcome = outcomes[index];
      if (outcome && 'error' in outcome) await refused(job, outcome.error.message);
    }
  }

  /**
   * A node said no to one transaction:
   * 1. it has it already: it is in flight;
   * 2. its nonce is used: by itself (a receipt will show) or by another, then the job starts over with a new one;
   * 3. anything else: the nonce is given back and the job waits its turn again.
   */
  async function refused(job: Job, message: string): Promise<void> {
    if (/already (known|imported|exists)/i.test(message) || !job.sent || !inFlight.has(job)) return;
    const { hash, nonce } = job.sent;
    if (/nonce (is )?too low|nonce has already/i.test(message)) {
      if (await judgeMined(job, await receiptOf(hash))) return;
      sequence.resync();
    } else {
      log.warn({ reason: message, transaction: hash }, 'broadcast refused');
      sequence.giveBack(nonce);
      await clock.sleep(RETRY_MS, stopping.signal).catch(() => {});
    }
    requeue(job);
    kick();
  }

  async function watch(): Promise<void> {
    while (inFlight.size > 0 && !stopping.signal.aborted) {
      await clock.sleep(pollMs, stopping.signal).catch(() => {});
      await look().catch((error) => log.warn({ err: error, inFlight: inFlight.size }, 'receipts unread'));
    }
  }

  async function look(): Promise<void> {
    const jobs = [...inFlight];
    const calls = jobs.map((job) => ({ method: 'eth_getTransactionReceipt', params: [job.sent?.hash] }));
    const outcomes = await chain.batch(calls, { signal: stopping.signal });
    const late: Job[] = [];
    for (const [index, job] of jobs.entries()) {
      const outcome = outcomes[index];
      const receipt = outcome && 'result' in outcome ? (outcome.result as Receipt | null) : null;
      if (await judgeMined(job, receipt)) continue;
      if (job.sent && clock.nowMs() - job.sent.atMs > RESEND_MS) late.push(job);
    }
    for (const job of late) if (job.sent) job.sent.atMs = clock.nowMs();
    if (late.length > 0) await broadcast(late);
  }

  /** Ends a job whose transaction was mined; false while the chain does not tell. */
  async function judgeMined(job: Job, receipt: Receipt | null): Promise<boolean> {
    if (!receipt) return false;
    const { authorization, fromBlock } = job.intent;
    const block = Number(receipt.blockNumber);
    if (paysFor(receipt, usdc, authorization)) {
      finish(job, { kind: 'settled', transaction: hexToBytes(receipt.transactionHash), block });
      return true;
    }
    // Mined without the transfer: somebody else may have sent the same authorization first.
    const verdict = await evidence.lookup(authorization, fromBlock, block).catch(() => ({ kind: 'unknown' }) as const);
    if (verdict.kind === 'unknown') return false;
    finish(job, verdict.kind === 'open' ? { kind: 'failed', reason: REVERTED } : verdict);
    return true;
  }

  function receiptOf(hash: string): Promise<Receipt | null> {
    return chain.request<Receipt | null>('eth_getTransactionReceipt', [hash]).catch(() => null);
  }

  function highestNonce(): number | null {
    const nonces = [...inFlight].map((job) => job.sent?.nonce ?? -1);
    return nonces.length > 0 ? Math.max(...nonces) : null;
  }

  function kick(): void {
    sending ??= sendAll().finally(() => {
      sending = null;
      if (queue.length > 0 && !stopping.signal.aborted) kick();
    });
  }

  return {
    settle: (intents) => {
      const ends = intents.map((intent) => {
        if (stopping.signal.aborted) return Promise.resolve<Outcome>({ kind: 'unknown' });
        return new Promise<Outcome>((end) => queue.push({ intent, end, sent: null }));
      });
      kick();
      return ends;
    },
    unavailable: () => (stopping.signal.aborted ? 'the service is stopping' : null),
    stop: async () => {
      stopping.abort();
      await Promise.all([sending, watching]);
      for (const job of [...queue.splice(0), ...inFlight]) finish(job, { kind: 'unknown' });
    },
  };
}
