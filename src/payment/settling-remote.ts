import type { Clock } from '../lib/clock.ts';
import type { Payment } from '../store/ports/sales.ts';
import type { Ledger } from './ledger.ts';
import type { Settler } from './settler.ts';
import type { RailProbe } from './settling.ts';

/** The way to the process that settles, which finds everything else in the ledger's row. */
export interface SettlingProcess extends Required<Pick<Settler, 'unavailable' | 'refuses' | 'refusesCode'>> {
  /** As `unavailable`, for what is paid over the Gateway. */
  gatewayUnavailable(): string | null;
  /** How the remote rails last were. */
  rails(): Readonly<Record<string, RailProbe>>;
  /** Asks for a stored intent to be brought to its end. */
  ask(id: string): void;
  /** Calls back when such a row has ended, or cannot be brought to an end now; may come twice or never. */
  onEnded(listener: (id: string) => void): void;
}

interface HandoverOptions {
  ledger: Ledger;
  settling: SettlingProcess;
  clock: Clock;
  /** How long a buyer's connection is held for an outcome. */
  waitMs: number;
  /** Told how a row stands when nobody here waits for it any more; it must not throw. */
  onLeft?(id: string, state: Payment['state'] | null): void;
}

/** The row is looked at this often too, so that a word which never comes costs time and nothing else. */
const POLL_MS = 250;

/**
 * The settlement of a process that only serves: the intent stands in the ledger, another process brings it to its end and writes that
 * down, and the row is what counts here, whoever told of it.
 */
export function createHandover({ ledger, settling, clock, waitMs, onLeft }: HandoverOptions) {
  const waiting = new Map<string, Set<AbortController>>();
  settling.onEnded((id) => {
    for (const nap of waiting.get(id) ?? []) nap.abort();
  });

  function listen(id: string): { nap: AbortController; forget(): void } {
    const nap = new AbortController();
    const others = waiting.get(id) ?? new Set();
    waiting.set(id, others.add(nap));
    const forget = () => {
      others.delete(nap);
      if (others.size === 0) waiting.delete(id);
    };
    return { nap, forget };
  }

  /** Returns the row once it has ended, the other process has given up on it, or the time is over. */
  async function untilEnded(id: string): Promise<Payment | null> {
    const { nap, forget } = listen(id);
    const until = clock.nowMs() + waitMs;
    try {
      settling.ask(id);
      for (;;) {
        const pauseMs = Math.max(0, Math.min(POLL_MS, until - clock.nowMs()));
        await clock.sleep(pauseMs, nap.signal).catch(() => {});
        const row = await ledger.get(id);
        const isOpen = row?.state === 'settling' || row?.state === 'unknown';
        if (!isOpen || nap.signal.aborted || clock.nowMs() >= until) return row;
      }
    } finally {
      forget();
    }
  }

  async function handOver({ id }: { readonly id: string }): Promise<Payment | null> {
    let row: Payment | null = null;
    try {
      row = await untilEnded(id);
      if (row?.state !== 'settling') return row;
      await ledger.unknown(id);
      row = await ledger.get(id);
      return row;
    } finally {
      onLeft?.(id, row?.state ?? null);
    }
  }

  return {
    /** Has a fresh intent settled; returns the row as it stands then. */
    settle: handOver,
    /** The same for a row that the chain may know already. */
    resume: handOver,
    /** Gives up what is this process's and no call works on any more: a reservation is given back, an intent left to whoever settles. */
    tidy: async (isServed: (payment: Payment) => boolean): Promise<void> => {
      for await (const payment of ledger.unfinished()) {
        if (isServed(payment)) continue;
        if (payment.state === 'reserved') await ledger.release(payment.id);
        else if (payment.state === 'settling') await ledger.unknown(payment.id);
      }
      await ledger.purge();
    },
  };
}
