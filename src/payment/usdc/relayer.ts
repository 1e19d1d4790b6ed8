import type { ChainClient } from '../../chain/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { bytesToHex } from '../../lib/hex.ts';
import { createBroadcast } from './broadcast.ts';
import type { ChainCheck } from './chain-check.ts';
import type { Evidence, Receipt } from './evidence.ts';
import { createFees } from './fees.ts';
import { createGasModel } from './gas-model.ts';
import type { Job, Slot } from './job.ts';
import { createJudge } from './judge.ts';
import { createNonces } from './nonces.ts';
import { createPayerBans } from './payer-bans.ts';
import { createPrepare } from './prepare.ts';
import type { Intent, Outcome, Settler } from './settler.ts';
import { createSlots } from './slots.ts';
import type { Wallet } from './wallet.ts';
import { createWatch } from './watch.ts';

/** At the most taken from the queue in one round. */
const ROUND = 1000;
const RETRY_MS = 500;

/** What the relayer is made of. */
export interface RelayerOptions {
  chain: ChainClient;
  check: Pick<ChainCheck, 'read'>;
  usdc: `0x${string}`;
  wallet: Wallet;
  evidence: Evidence;
  clock: Clock;
  /** Receipts are asked for at least this often while something is in flight; a told head makes it sooner. */
  pollMs: number;
  /** While a transaction is in flight, those that come wait at the most this long for others to share the next with. */
  gatherMs: number;
  /** How much of a block one transaction may take. */
  blockSharePercent: number;
  /** A job that waits longer than this stops the sale of more. */
  stallMs: number;
  /** Calls back when a new block is told of; returns how to stop it. */
  onHead(tell: () => void): () => void;
  /** Made durable before anything is broadcast; returns the ids that still await settlement, the others must not be sent. */
  noteBroadcast(entries: { id: string; transaction: Uint8Array }[]): Promise<ReadonlySet<string>>;
  /** Told of each of our transactions that was mined. */
  onMined(cost: { wei: bigint; payments: number }): void;
  log: { warn(detail: object, message: string): void };
}

/**
 * Our own settler: one key, one queue, one sequence of nonces. What waits goes out together, in as few transactions as the gas allows,
 * as soon as the sender is free; outcomes are read from the logs of what was mined.
 * A job ends when the chain has said so. Presenting an authorization twice wastes gas, never money, because its nonce moves money once.
 */
export function createRelayer(options: RelayerOptions): Settler {
  const { chain, check, usdc, wallet, evidence, clock, gatherMs, stallMs, log, onMined } = options;
  const nonces = createNonces();
  const fees = createFees(chain, clock);
  const gas = createGasModel(options.blockSharePercent);
  const slots = createSlots({ usdc, wallet, nonces, fees, gas, clock });
  const bans = createPayerBans(clock);
  const open = new Set<Job>();
  const queue: Job[] = [];
  const stopping = new AbortController();
  const { signal } = stopping;
  let sending: Promise<void> | null = null;

  const pause = (ms: number) => clock.sleep(ms, signal).catch(() => {});

  function finish(job: Job, outcome: Outcome): void {
    if (job.ended) return;
    job.ended = true;
    open.delete(job);
    job.end(outcome);
  }

  function requeue(jobs: readonly Job[]): void {
    const waiting = jobs.filter((job) => !job.ended);
    for (const job of waiting) job.queuedMs = clock.nowMs();
    queue.unshift(...waiting);
    kick();
  }

  const judge = createJudge({ check, evidence, usdc, gas, bans, signal, finish, requeue, log });
  const prepare = createPrepare({ chain, check, usdc, relayer: wallet.address, signal });
  const { noteBroadcast } = options;
  const broadcast = createBroadcast({ chain, slots, nonces, judge, noteBroadcast, finish, pause, signal, log });

  async function minedCount(): Promise<number> {
    return Number(await chain.request<string>('eth_getTransactionCount', [wallet.address, 'latest'], { signal }));
  }

  const watch = createWatch({
    ...options,
    slots,
    nonces,
    fees,
    judge,
    broadcast,
    minedCount,
    requeue,
    signal,
    mined: (slot: Slot, receipt: Receipt, payments: number) => {
      nonces.passed(slot.nonce);
      onMined({ wei: BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice ?? '0x0'), payments });
    },
  });

  /** Lets what comes at the same time come together; with nothing in flight nobody waits for anybody. */
  async function gather(): Promise<void> {
    if (slots.size() === 0) return void (await new Promise((next) => setImmediate(next)));
    const waitMs = (queue[0]?.queuedMs ?? 0) + gatherMs - clock.nowMs();
    if (waitMs > 0) await pause(waitMs);
  }

  async function sendAll(): Promise<void> {
    while (queue.length > 0 && !signal.aborted) {
      await gather();
      const jobs = queue.splice(0, ROUND).filter((job) => !job.ended);
      if (jobs.length === 0) continue;
      try {
        await send(jobs);
      } catch (error) {
        // The chain could not be read, or the ledger could not be written: nothing of what comes back here was sent in this round.
        log.warn({ err: error, waiting: jobs.length + queue.length }, 'settling waits');
        const sent = new Set(slots.all().flatMap(({ versions }) => versions.flatMap((version) => version.jobs)));
        queue.unshift(...jobs.filter((job) => !job.ended && !sent.has(job) && !queue.includes(job)));
        await pause(RETRY_MS);
      }
    }
  }

  async function send(jobs: readonly Job[]): Promise<void> {
    if (!nonces.known()) nonces.learn(await minedCount());
    await fees.refresh();
    const { groups, doubtful, again } = await prepare(jobs, gas.most(fees.blockGas()), fees.blockGas());
    if (groups.length > 0) {
      const fresh = groups.map((group) => slots.open(group));
      watch.start();
      await broadcast.send(fresh);
    }
    if (again.length > 0) requeue(again);
    if (doubtful.length > 0) await judge.examine(doubtful);
  }

  function kick(): void {
    sending ??= sendAll().finally(() => {
      sending = null;
      if (queue.length > 0 && !signal.aborted) kick();
    });
  }

  const oldestMs = (): number => {
    const now = clock.nowMs();
    let oldest = 0;
    for (const { sinceMs } of open) oldest = Math.max(oldest, now - sinceMs);
    return oldest;
  };

  function admit(intent: Intent): Promise<Outcome> {
    if (signal.aborted) return Promise.resolve<Outcome>({ kind: 'unknown' });
    return new Promise<Outcome>((end) => {
      const now = clock.nowMs();
      const times = { sinceMs: now, queuedMs: now };
      const job: Job = {
        intent,
        end,
        ...times,
        ended: false,
        maxGroup: Number.MAX_SAFE_INTEGER,
        broadcast: intent.broadcast,
      };
      open.add(job);
      queue.push(job);
    });
  }

  return {
    settle: (intents) => {
      const ends = intents.map(admit);
      kick();
      return ends;
    },
    unavailable: () => {
      if (signal.aborted) return 'the service is stopping';
      return oldestMs() > stallMs ? 'earlier settlements are late' : null;
    },
    refuses: (payer) => (bans.has(bytesToHex(payer)) ? 'its payments burn gas' : null),
    stop: async () => {
      stopping.abort();
      await Promise.all([sending, watch.idle()]);
      queue.length = 0;
      for (const job of [...open]) finish(job, { kind: 'unknown' });
    },
  };
}
