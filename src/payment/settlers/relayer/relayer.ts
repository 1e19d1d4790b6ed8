import type { ChainClient } from '../../../chain/rpc/client.ts';
import { index, parseAnswer } from '../../../chain/rpc/wire.ts';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { ChainCheck } from '../../evm/chain-check.ts';
import type { Evidence } from '../../evm/evidence.ts';
import { createPayerBans } from '../../evm/payer-bans.ts';
import type { TokenWatch } from '../../evm/token-watch.ts';
import { type Intent, type Outcome, REVERTED, type Settler } from '../../settler.ts';
import { createBroadcast } from './broadcast.ts';
import { createFees } from './fees.ts';
import { createGasModel } from './gas-model.ts';
import { type Job, newJob } from './job.ts';
import { createJudge } from './judge.ts';
import { createCollectMined, type MinedCost } from './mined.ts';
import { createNonces } from './nonces.ts';
import { createPrepare } from './prepare.ts';
import { createSlots } from './slots.ts';
import type { Wallet } from './wallet.ts';
import { createWatch } from './watch.ts';

/** At the most taken from the queue in one round. */
const ROUND = 1000;
const RETRY_MS = 500;
/** A transaction that is sent now is in one of the next two blocks. */
const MINED_WITHIN_MS = 1000;

/** What the relayer is made of. */
export interface RelayerOptions {
  chain: ChainClient;
  check: Pick<ChainCheck, 'read' | 'balanceAt'>;
  usdc: `0x${string}`;
  wallet: Wallet;
  evidence: Pick<Evidence, 'lookup'>;
  /** Tells whether the token would let any payment through. */
  token: Pick<TokenWatch, 'check'>;
  /** Whether failures have cost so much today that each payment is looked at before it is sent. */
  isCareful(): boolean;
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
  /** Told of each of our transactions that was mined; it must not throw. */
  onMined(cost: MinedCost): void;
  log: { warn(detail: object, message: string): void };
}

/** Our own settler, and what it still has to pay. */
export interface Relayer extends Settler {
  /** What the open settlements are expected to cost, in wei. */
  expectedWei(): bigint;
}

/**
 * Our own settler: one key, one queue, one sequence of nonces. What waits goes out together, in as few transactions as the gas allows,
 * as soon as the sender is free; outcomes are read from the logs of what was mined.
 * A job ends when the chain has said so. Presenting an authorization twice wastes gas, never money, because its nonce moves money once.
 */
export function createRelayer(options: RelayerOptions): Relayer {
  const { chain, check, usdc, wallet, clock, gatherMs, stallMs, log } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const nonces = createNonces();
  const fees = createFees(chain, clock, signal);
  const gas = createGasModel(options.blockSharePercent);
  const slots = createSlots({ usdc, wallet, nonces, fees, gas });
  const bans = createPayerBans(clock);
  // In the order in which they came.
  const open = new Set<Job>();
  const queue: Job[] = [];
  let sending: Promise<void> | null = null;
  let gathering = new AbortController();

  const pause = (ms: number) => clock.sleep(ms, signal).catch(() => {});

  function finish(job: Job, outcome: Outcome): void {
    if (job.ended) return;
    job.ended = true;
    open.delete(job);
    job.end(outcome);
  }

  function requeue(jobs: readonly Job[]): void {
    const waiting = jobs.filter((job) => !job.ended);
    if (waiting.length === 0) return;
    for (const job of waiting) job.queuedMs = clock.nowMs();
    queue.unshift(...waiting);
    kick();
  }

  function requeueLater(jobs: readonly Job[]): void {
    if (jobs.length > 0) void pause(RETRY_MS).then(() => requeue(jobs));
  }

  async function minedCount(): Promise<number> {
    const raw = await chain.request('eth_getTransactionCount', [wallet.address, 'latest'], { signal });
    return parseAnswer(index, raw, 'transaction count');
  }

  function onMined(cost: MinedCost): void {
    // The sender is free: what waits for company waits no longer.
    if (slots.size() === 0) gathering.abort();
    options.onMined(cost);
  }

  const parts = {
    ...options,
    slots,
    nonces,
    fees,
    gas,
    bans,
    signal,
    finish,
    requeue,
    requeueLater,
    pause,
    minedCount,
  };
  const judge = createJudge(parts);
  const prepare = createPrepare({ chain, check, usdc, relayer: wallet.address, signal });
  const collect = createCollectMined({ ...parts, judge, onMined });
  const broadcast = createBroadcast({ ...parts, judge, collect });
  const watch = createWatch({ ...parts, judge, collect, broadcast });

  /** Lets what comes at the same time come together; with nothing in flight nobody waits for anybody. */
  async function gather(): Promise<void> {
    if (slots.size() === 0) return void (await new Promise((next) => setImmediate(next)));
    const waitMs = (queue[0]?.queuedMs ?? 0) + gatherMs - clock.nowMs();
    if (waitMs <= 0) return;
    gathering = new AbortController();
    await clock.sleep(waitMs, AbortSignal.any([signal, gathering.signal])).catch(() => {});
  }

  async function sendAll(): Promise<void> {
    while (queue.length > 0 && !signal.aborted) {
      await gather();
      const jobs = queue.splice(0, ROUND).filter((job) => !job.ended);
      if (jobs.length === 0) continue;
      try {
        await send(jobs);
      } catch (error) {
        // The chain could not be read, or the ledger could not be written: nothing of this round was sent.
        log.warn({ err: error, waiting: jobs.length + queue.length }, 'settling waits');
        queue.unshift(...jobs.filter((job) => !job.ended));
        await pause(RETRY_MS);
      }
    }
  }

  async function send(jobs: readonly Job[]): Promise<void> {
    if (!nonces.known()) nonces.learn(await minedCount());
    await fees.ready();
    const blockGas = fees.blockGas();
    const most = (waiting: number) => gas.most(blockGas, waiting);
    const room = { gas: gas.ceiling(blockGas), gasPrice: fees.price(), isCareful: options.isCareful(), most };
    const { groups, doubtful, again } = await prepare(takeOutExpired(giveBackBanned(jobs)), room);
    if (groups.length > 0) {
      const fresh = groups.map((group) => slots.open(group));
      watch.start();
      await broadcast.send(fresh);
    }
    requeue(again.filter(({ unread }) => unread === 0));
    requeueLater(again.filter(({ unread }) => unread > 0));
    if (doubtful.length > 0) await judge.examine(doubtful);
  }

  /** What has run out, or will have when it is mined, is not sent: it could only cost gas. */
  function takeOutExpired(jobs: readonly Job[]): Job[] {
    const lastSecond = BigInt(Math.floor((clock.nowMs() + MINED_WITHIN_MS) / 1000));
    const expired = jobs.filter((job) => job.intent.authorization.validBefore <= lastSecond);
    if (expired.length > 0) void judge.expire(expired);
    return jobs.filter((job) => !expired.includes(job));
  }

  /** Fails a banned payer's payments that were never broadcast. Each would waste as much gas. The payer may present them again. */
  function giveBackBanned(jobs: readonly Job[]): Job[] {
    const unsent = ({ intent, nonces: { size } }: Job) => !intent.broadcast && size === 0;
    const banned = jobs.filter((job) => unsent(job) && bans.has(bytesToHex(job.intent.authorization.from)));
    for (const job of banned) finish(job, { kind: 'failed', reason: REVERTED });
    return jobs.filter((job) => !job.ended);
  }

  function kick(): void {
    sending ??= sendAll().finally(() => {
      sending = null;
      if (queue.length > 0 && !signal.aborted) kick();
    });
  }

  function isLate(): boolean {
    const [oldest] = open;
    return oldest !== undefined && clock.nowMs() - oldest.sinceMs > stallMs;
  }

  function admit(intent: Intent): Promise<Outcome> {
    if (signal.aborted) return Promise.resolve<Outcome>({ kind: 'unknown' });
    return new Promise<Outcome>((end) => {
      const job = newJob(intent, clock.nowMs(), end);
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
      return isLate() ? 'earlier settlements are late' : null;
    },
    refuses: (payer) => (bans.has(bytesToHex(payer)) ? 'its payments cost gas and move nothing' : null),
    expectedWei: () => BigInt(open.size) * gas.expected() * fees.price(),
    stop: async () => {
      stopping.abort();
      await Promise.all([sending, watch.idle()]);
      queue.length = 0;
      for (const job of [...open]) finish(job, { kind: 'unknown' });
    },
  };
}
