import type { ChainClient, RpcOutcome } from '../../chain/client.ts';
import { hexToBytes } from '../../lib/hex.ts';
import { type Job, newest, type Slot } from './job.ts';
import type { Judge } from './judge.ts';
import type { createNonces } from './nonces.ts';
import type { Outcome } from './settler.ts';
import type { Slots } from './slots.ts';

const RETRY_MS = 500;

interface BroadcastOptions {
  chain: ChainClient;
  slots: Slots;
  nonces: ReturnType<typeof createNonces>;
  judge: Judge;
  noteBroadcast(entries: { id: string; transaction: Uint8Array }[]): Promise<ReadonlySet<string>>;
  finish(job: Job, outcome: Outcome): void;
  pause(ms: number): Promise<void>;
  signal: AbortSignal;
  log: { warn(detail: object, message: string): void };
}

/** Hands signed slots to the chain; their hashes are on disk before anything leaves. */
export function createBroadcast(options: BroadcastOptions) {
  const { chain, slots, nonces, judge, noteBroadcast, finish, pause, signal, log } = options;

  /** Writes the hashes down. A job whose row is no longer waiting must not be sent: its slot is signed again without it. */
  async function note(noted: readonly Slot[]): Promise<Slot[]> {
    let going = [...noted];
    for (;;) {
      const entries = going.flatMap((slot) => {
        const { hash, jobs } = newest(slot);
        return jobs.map(({ intent }) => ({ id: intent.id, transaction: hexToBytes(hash) }));
      });
      const waiting = await noteBroadcast(entries);
      const changed = going.filter((slot) => newest(slot).jobs.some(({ intent }) => !waiting.has(intent.id)));
      if (changed.length === 0) return going;
      for (const slot of changed) {
        const { jobs } = newest(slot);
        const left = jobs.filter(({ intent }) => waiting.has(intent.id));
        for (const job of jobs) if (!waiting.has(job.intent.id)) finish(job, { kind: 'unknown' });
        if (left.length > 0) {
          slots.replaceUnsent(slot, left);
        } else {
          dropUnsent(slot);
          going = going.filter((kept) => kept !== slot);
        }
      }
    }
  }

  /** Takes the newest version back, and the nonce with it where nothing else was sent under it. */
  function dropUnsent(slot: Slot): void {
    slot.versions.pop();
    if (slot.versions.length === 0) slots.close(slot);
  }

  function callsOf(sendable: readonly Slot[]) {
    for (const slot of sendable) for (const job of newest(slot).jobs) job.broadcast = true;
    return sendable.map((slot) => ({ method: 'eth_sendRawTransaction', params: [newest(slot).raw] }));
  }

  /** A batch without an answer may have arrived: it stays in flight until it is late. */
  async function send(fresh: readonly Slot[]): Promise<void> {
    let sendable: Slot[];
    try {
      sendable = await note(fresh);
    } catch (error) {
      // Unwritten is unsent.
      for (const slot of fresh) dropUnsent(slot);
      throw error;
    }
    let outcomes: RpcOutcome[];
    try {
      outcomes = await chain.batch(callsOf(sendable), { signal });
    } catch (error) {
      log.warn({ err: error, transactions: sendable.length }, 'broadcast unanswered');
      return;
    }
    const refused = sendable.filter((_, index) => isRefusal(outcomes[index]));
    if (refused.length === 0) return;
    log.warn({ refused: refused.length, reason: messageOf(outcomes.find(isRefusal)) }, 'broadcast refused');
    // The chain may have moved without us: it is asked for the nonce again.
    nonces.forget();
    await pause(RETRY_MS);
    for (const slot of refused) await giveBack(slot);
  }

  /** A slot that no node took frees its nonce; what the chain does not know of its jobs waits again. */
  async function giveBack(slot: Slot): Promise<void> {
    slots.close(slot);
    judge.retry(await judge.stillOpen(newest(slot).jobs));
  }

  /** The same to every provider, for slots that are late; nobody's answer matters. */
  async function everywhere(late: readonly Slot[]): Promise<void> {
    await chain.everywhere(callsOf(late), { signal });
  }

  return { note, send, everywhere };
}

export type Broadcast = ReturnType<typeof createBroadcast>;

/** A node's no, other than that it has the transaction already. */
function isRefusal(outcome: RpcOutcome | undefined): boolean {
  return outcome !== undefined && 'error' in outcome && !/already (known|imported|exists)/i.test(outcome.error.message);
}

function messageOf(outcome: RpcOutcome | undefined): string | undefined {
  return outcome && 'error' in outcome ? outcome.error.message : undefined;
}
