import type { ChainClient } from '../../chain/client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Broadcast } from './broadcast.ts';
import type { Receipt } from './evidence.ts';
import type { createFees } from './fees.ts';
import { type Job, newest, type Slot, type Version } from './job.ts';
import type { Judge } from './judge.ts';
import type { createNonces } from './nonces.ts';
import type { Slots } from './slots.ts';

/** Six blocks on Arc: a transaction without a receipt after that is looked into, priced anew and sent to every provider. */
const LATE_MS = 3000;

interface WatchOptions {
  chain: ChainClient;
  clock: Clock;
  pollMs: number;
  onHead(tell: () => void): () => void;
  slots: Slots;
  nonces: ReturnType<typeof createNonces>;
  fees: ReturnType<typeof createFees>;
  judge: Judge;
  broadcast: Broadcast;
  minedCount(): Promise<number>;
  requeue(jobs: readonly Job[]): void;
  mined(slot: Slot, receipt: Receipt, payments: number): void;
  signal: AbortSignal;
  log: { warn(detail: object, message: string): void };
}

/** Follows the transactions in flight to their receipts, at every told head and at least at every poll, while there are any. */
export function createWatch(options: WatchOptions) {
  const { chain, clock, pollMs, onHead, slots, nonces, fees, judge, broadcast, minedCount, requeue, signal, log } =
    options;
  let watching: Promise<void> | null = null;

  async function watch(): Promise<void> {
    let told = new AbortController();
    const stopListening = onHead(() => told.abort());
    try {
      while (slots.size() > 0 && !signal.aborted) {
        await clock.sleep(pollMs, AbortSignal.any([signal, told.signal])).catch(() => {});
        if (signal.aborted) return;
        // Before the look, so that a head that comes during it is not missed.
        told = new AbortController();
        await look().catch((error) => log.warn({ err: error, inFlight: slots.size() }, 'receipts unread'));
      }
    } finally {
      stopListening();
    }
  }

  async function look(): Promise<void> {
    const sent = slots.all().flatMap((slot) => slot.versions.map((version) => ({ slot, version })));
    const calls = sent.map(({ version }) => ({ method: 'eth_getTransactionReceipt', params: [version.hash] }));
    const outcomes = await chain.batch(calls, { signal });
    for (const [index, { slot, version }] of sent.entries()) {
      const outcome = outcomes[index];
      const receipt = outcome && 'result' in outcome ? (outcome.result as Receipt | null) : null;
      if (!receipt) continue;
      // One receipt that cannot be read must not hide the others.
      await end(slot, version, receipt).catch((error) => log.warn({ err: error }, 'a receipt was not understood'));
    }
    const late = slots.all().filter((slot) => clock.nowMs() - slot.atMs > LATE_MS);
    if (late.length > 0) await rescue(late);
  }

  /** A slot's nonce is used by this version: the others under it can never be mined. */
  async function end(slot: Slot, version: Version, receipt: Receipt): Promise<void> {
    await judge.mined(version, receipt);
    slots.close(slot);
    options.mined(slot, receipt, version.jobs.length);
    const left = slot.versions.flatMap(({ jobs }) => jobs).filter((job) => !version.jobs.includes(job));
    if (left.length > 0) requeue([...new Set(left)]);
  }

  /**
   * Late slots, whatever kept them (a dropped or hoarded transaction, a gap below, a price that has risen):
   * 1. a nonce that the chain has used, or that waits behind a gap, gives its jobs back to the queue, as far as the chain does not know them;
   * 2. the others are signed again with a higher fee, for what of their jobs still waits;
   * 3. and handed to every provider.
   */
  async function rescue(late: readonly Slot[]): Promise<void> {
    const mined = await minedCount();
    nonces.learn(mined);
    await fees.refresh();
    const raised: Slot[] = [];
    for (const slot of late) {
      const open = await judge.stillOpen([...new Set(slot.versions.flatMap(({ jobs }) => jobs))]);
      if (slot.nonce < mined || slots.isBehindGap(slot)) {
        slots.close(slot);
        requeue(open);
      } else if (open.length > 0) {
        slots.raise(slot, open);
        raised.push(slot);
      } else {
        // Nobody waits for it, but its nonce must be used: sent as it is.
        slot.atMs = clock.nowMs();
        raised.push(slot);
      }
    }
    const withJobs = raised.filter((slot) => newest(slot).jobs.some((job) => !job.ended));
    const noted = await broadcast.note(withJobs);
    const going = [...noted, ...raised.filter((slot) => !withJobs.includes(slot))];
    log.warn({ late: late.length, sentAgain: going.length }, 'settlements are late; sent again to every provider');
    await broadcast.everywhere(going);
  }

  return {
    start: (): void => {
      watching ??= watch().finally(() => {
        watching = null;
      });
    },
    idle: async (): Promise<void> => {
      await watching;
    },
  };
}
