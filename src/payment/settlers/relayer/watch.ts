import type { Clock } from '../../../lib/clock.ts';
import type { Broadcast } from './broadcast.ts';
import type { Fees } from './fees.ts';
import { jobsOf, newest, type Slot } from './job.ts';
import type { Judge } from './judge.ts';
import type { CollectMined } from './mined.ts';
import type { Nonces } from './nonces.ts';
import type { Slots } from './slots.ts';

/** Six blocks on Arc: a transaction without a receipt after that is looked into and sent to every provider. */
const LATE_MS = 3000;

interface WatchOptions {
  clock: Clock;
  /** At the least so often; a told head makes it sooner. */
  pollMs: number;
  onHead(tell: () => void): () => void;
  slots: Slots;
  nonces: Nonces;
  fees: Pick<Fees, 'refresh' | 'covers'>;
  judge: Pick<Judge, 'reopen' | 'sort'>;
  broadcast: Pick<Broadcast, 'note' | 'everywhere'>;
  collect: CollectMined;
  minedCount(): Promise<number>;
  signal: AbortSignal;
  log: { warn(detail: object, message: string): void };
}

/** Follows the transactions in flight to their receipts, at every told head and at least at every poll, while there are any. */
export function createWatch(options: WatchOptions) {
  const { clock, pollMs, onHead, slots, nonces, fees, judge, broadcast, collect, minedCount, signal, log } = options;
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
    await collect(slots.all());
    const late = slots.all().filter(({ atMs }) => atMs !== null && clock.nowMs() - atMs > LATE_MS);
    if (late.length > 0) await rescue(late);
  }

  /**
   * Late slots, whatever kept them (a dropped or hoarded transaction, another in its place, a gap below, a price that has risen):
   * 1. one whose nonce the chain has used is asked for once more, because it may have been mined since the look;
   * 2. one whose nonce was used by another, or that waits behind a gap, gives back to the queue what the chain does not know of its jobs;
   * 3. the others go to every provider: as they are at first, with a higher fee where they do not pay the base fee or are late again.
   */
  async function rescue(late: readonly Slot[]): Promise<void> {
    const mined = await minedCount();
    nonces.learn(mined);
    await fees.refresh();
    const past = late.filter(({ nonce }) => nonce < mined);
    if (past.length > 0) await collect(past);
    const waiting = late.filter(slots.has);
    const lost = waiting.filter((slot) => slot.nonce < mined || slots.isBehindGap(slot));
    for (const slot of lost) slots.close(slot);
    await judge.reopen(lost.flatMap(jobsOf));
    const stuck = waiting.filter((slot) => !lost.includes(slot));
    const raised: Slot[] = [];
    for (const slot of stuck) if (await raise(slot)) raised.push(slot);
    // Its hash is on disk before a new version is sent; what was sent before may be sent again at any time.
    const going = raised.length > 0 ? await broadcast.note(raised) : [];
    const again = [...going, ...stuck.filter((slot) => !raised.includes(slot))].filter(slots.has);
    log.warn({ late: late.length, givenBack: lost.length, raised: going.length }, 'settlements are late');
    if (again.length > 0) broadcast.everywhere(again);
  }

  /** Signs a late slot anew where that helps, for what of its jobs still waits. When nobody does, it goes as it is: its nonce must be used. */
  async function raise(slot: Slot): Promise<boolean> {
    const helps = slot.rescues > 0 || !fees.covers(newest(slot).price);
    slot.rescues++;
    const { unused, untold } = await judge.sort(jobsOf(slot));
    const open = [...unused, ...untold];
    return helps && open.length > 0 && slots.raise(slot, open);
  }

  function start(): void {
    watching ??= watch().finally(() => {
      watching = null;
      // One may have been opened between the last look and here.
      if (slots.size() > 0 && !signal.aborted) start();
    });
  }

  return {
    start,
    idle: async (): Promise<void> => {
      await watching;
    },
  };
}
