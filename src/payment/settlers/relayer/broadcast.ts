import { isChainBusy } from '../../../chain/rpc/allowed.ts';
import type { RpcCall } from '../../../chain/rpc/call.ts';
import type { ChainClient, RpcOutcome } from '../../../chain/rpc/client.ts';
import type { Clock } from '../../../lib/clock.ts';
import { hexToBytes } from '../../../lib/hex.ts';
import type { Outcome } from '../../settler.ts';
import { halve } from './grouping.ts';
import { type Job, newest, type Slot } from './job.ts';
import type { Judge } from './judge.ts';
import type { CollectMined } from './mined.ts';
import type { Nonces } from './nonces.ts';
import type { Slots } from './slots.ts';

const RETRY_MS = 500;
/** A call waits some seconds for the providers by itself (`chain/rank.ts`); then it is tried again, so often. */
const BUSY_MS = 100;
const MOST_TRIES = 5;
/** What nodes say to a transaction that they have: in Ethereum's words, and in the embedded network's. */
const HAS_IT = /already (known|imported|exists)/i;
const TOO_CHEAP = /underpriced/i;
/** Too dear for the purse, or too large for the pool or a block: half of it may do. */
const TOO_MUCH = /insufficient (funds|balance)|oversized|exceeds|too (large|big|high)/i;

interface BroadcastOptions {
  chain: ChainClient;
  clock: Clock;
  slots: Slots;
  nonces: Nonces;
  judge: Pick<Judge, 'reopen'>;
  collect: CollectMined;
  noteBroadcast(entries: { id: string; transaction: Uint8Array }[]): Promise<ReadonlySet<string>>;
  finish(job: Job, outcome: Outcome): void;
  pause(ms: number): Promise<void>;
  signal: AbortSignal;
  log: { warn(detail: object, message: string): void };
}

/** Hands signed slots to the chain; their hashes are on disk before anything leaves. */
export function createBroadcast(options: BroadcastOptions) {
  const { chain, clock, slots, nonces, judge, collect, noteBroadcast, finish, pause, signal, log } = options;

  /**
   * Writes down the newest versions of these slots and returns those that may be sent. A job whose row is no longer waiting must not be:
   * its slot is signed again without it. When nothing could be written, none of these versions exists any more.
   */
  async function note(fresh: readonly Slot[]): Promise<Slot[]> {
    let going = [...fresh];
    try {
      for (;;) {
        const waiting = await noteBroadcast(going.flatMap(entriesOf));
        const changed = going.filter((slot) => newest(slot).jobs.some(({ intent }) => !waiting.has(intent.id)));
        if (changed.length === 0) return going;
        for (const slot of changed) if (!leaveOut(slot, waiting)) going = going.filter((kept) => kept !== slot);
      }
    } catch (error) {
      for (const slot of going) slots.dropUnsent(slot);
      throw error;
    }
  }

  /** False when nobody is left, and the version gone. */
  function leaveOut(slot: Slot, waiting: ReadonlySet<string>): boolean {
    const { jobs } = newest(slot);
    const left = jobs.filter(({ intent }) => waiting.has(intent.id));
    for (const job of jobs) if (!left.includes(job)) finish(job, { kind: 'unknown' });
    if (left.length > 0) slots.replaceUnsent(slot, left);
    else slots.dropUnsent(slot);
    return left.length > 0;
  }

  /** From here on their authorizations are in other hands. */
  function callsOf(sendable: readonly Slot[]): RpcCall[] {
    for (const slot of sendable) {
      slot.atMs = clock.nowMs();
      for (const job of newest(slot).jobs) job.nonces.add(slot.nonce);
    }
    return sendable.map((slot) => ({ method: 'eth_sendRawTransaction', params: [newest(slot).raw] }));
  }

  /** Sends slots that are new. One without an answer may have arrived: it stays in flight until it is late. Rejects when nothing was sent. */
  async function send(fresh: readonly Slot[]): Promise<void> {
    const sendable = await note(fresh);
    let outcomes: RpcOutcome[];
    try {
      outcomes = await deliver(callsOf(sendable));
    } catch (error) {
      log.warn({ err: error, transactions: sendable.length }, 'broadcast unanswered');
      return;
    }
    const refused: Slot[] = [];
    for (const [index, slot] of sendable.entries()) {
      const reason = refusalOf(outcomes[index]);
      if (reason === null) continue;
      refused.push(slot);
      if (TOO_CHEAP.test(reason)) slots.outbid(slot);
      if (TOO_MUCH.test(reason)) halve(newest(slot).jobs);
      log.warn({ reason, nonce: slot.nonce, payments: newest(slot).jobs.length }, 'broadcast refused');
    }
    if (refused.length > 0) await giveBack(refused);
  }

  /** Providers that bear no more have taken nothing: what they refused for that alone is sent again after a moment. */
  async function deliver(calls: readonly RpcCall[]): Promise<RpcOutcome[]> {
    for (let tries = 1; ; tries++) {
      try {
        return await chain.batch(calls, { signal });
      } catch (error) {
        if (!isChainBusy(error) || tries === MOST_TRIES) throw error;
        await pause(BUSY_MS);
      }
    }
  }

  /** Slots that no node took free their nonces; but what a node calls used may be used by the very same. */
  async function giveBack(refused: readonly Slot[]): Promise<void> {
    // The chain may have moved without us: it is asked for the nonce again.
    nonces.forget();
    await pause(RETRY_MS);
    await collect(refused).catch((error) => log.warn({ err: error }, 'receipts unread'));
    const left = refused.filter(slots.has);
    for (const slot of left) slots.close(slot);
    await judge.reopen(left.flatMap((slot) => newest(slot).jobs));
  }

  /** The same to every provider, for slots that are late; nobody's answer matters, and nobody waits for it. */
  function everywhere(late: readonly Slot[]): void {
    void chain.everywhere(callsOf(late), { signal });
  }

  return { note, send, everywhere };
}

export type Broadcast = ReturnType<typeof createBroadcast>;

function entriesOf(slot: Slot): { id: string; transaction: Uint8Array }[] {
  const { hash, jobs } = newest(slot);
  const transaction = hexToBytes(hash);
  return jobs.map(({ intent }) => ({ id: intent.id, transaction }));
}

/** A node's no, other than that it has the transaction already. */
function refusalOf(outcome: RpcOutcome | undefined): string | null {
  if (!outcome || 'result' in outcome || HAS_IT.test(outcome.error.message)) return null;
  return outcome.error.message;
}
