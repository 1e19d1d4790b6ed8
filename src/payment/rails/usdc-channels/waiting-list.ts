import type { Clock } from '../../../lib/clock.ts';

/** How long a request waits for its turn, in milliseconds. */
const WAIT_MS = 30_000;

/** A request as it waits for its turn. */
export interface Asking {
  /** The charges on top of which its voucher was signed. */
  readonly chargedBefore: bigint;
  /** What it asks for. A client that signs once more asks for the same. */
  readonly request: string;
  /** The channel's charges as the ledger has them; null where it has none. */
  readonly charged: bigint | null;
}

interface Waiting extends Asking {
  begin(): void;
}

/** The requests that wait for one channel, in the order of their arrival. */
export function createWaitingList(clock: Clock) {
  let waiting: Waiting[] = [];

  return {
    size: (): number => waiting.length,
    /** The place of the first request that fits; -1 when none does. */
    firstThat: (fits: (asking: Asking) => boolean): number => waiting.findIndex(fits),
    /** Begins the turn of the request at this place. False when the list is empty. */
    begin(at: number): boolean {
      const [first] = waiting.splice(at, 1);
      first?.begin();
      return first !== undefined;
    },
    /** Waits for a turn. False when that takes longer than WAIT_MS, and when the signal aborts. */
    wait(asking: Asking, signal: AbortSignal): Promise<boolean> {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const one: Waiting = { ...asking, begin: () => resolve(true) };
      waiting.push(one);
      const begun = new AbortController();
      const leave = (): void => {
        // A request that is no longer in the list has its turn.
        if (!waiting.includes(one)) return;
        waiting = waiting.filter((other) => other !== one);
        resolve(false);
      };
      void clock.sleep(WAIT_MS, AbortSignal.any([signal, begun.signal])).then(leave, leave);
      return promise.finally(() => begun.abort());
    },
  };
}
