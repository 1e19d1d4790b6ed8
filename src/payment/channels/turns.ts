import type { Clock } from '../../lib/clock.ts';

// The requests of one channel take turns. A stock client sends one voucher with all that it requests at once. One buys;
// each other must get the new charges, signs once more, and gives up when that is stale too. So the one that fits comes
// first, and after a correction the channel waits RETRY_MS for the same request.

/** Requests that may wait for one channel. */
const MOST_WAITING = 32;
/** Milliseconds for a client to sign the voucher that a correction asks for: a read of the chain and a round trip. */
const RETRY_MS = 500;

export interface TurnEnd<T> {
  readonly value: T;
  readonly charged: bigint;
  /** It ended with a correction: the client knows which voucher to sign next. */
  readonly isCorrected: boolean;
}

/** One channel's turns. `onEmpty`: no request has a turn or waits for one. */
function createLine(clock: Clock, onEmpty: () => void) {
  const list = createWaitingList(clock);
  let isTaken = false;
  /** The charges after the last turn; null where they are not known. */
  let charged: bigint | null = null;
  /** Until when the channel waits for a corrected client, in Unix milliseconds, and what it asks for. */
  let held = { untilMs: 0, request: '' };
  let timer: AbortController | null = null;

  const isHeld = (): boolean => held.untilMs > clock.nowMs();
  const fits = ({ chargedBefore, request }: Asking): boolean => {
    if (isHeld() && request !== held.request) return false;
    return charged === chargedBefore;
  };

  /** Begins the next turn, if the channel is free. Where no voucher fits, the first request is told the charges. */
  function next(): void {
    if (isTaken) return;
    const fitting = list.firstThat(fits);
    if (fitting < 0 && isHeld()) {
      wakeLater();
      return;
    }
    isTaken = list.begin(Math.max(0, fitting));
    if (!isTaken) onEmpty();
  }

  function wakeLater(): void {
    timer = new AbortController();
    clock.sleep(held.untilMs - clock.nowMs(), timer.signal).then(next, () => {});
  }

  async function wait(asking: Asking, signal: AbortSignal): Promise<boolean> {
    // A voucher that fits is never refused for the stale ones before it. Only the payer's own keys can sign it.
    if (list.size() >= MOST_WAITING && asking.chargedBefore !== charged) return false;
    return list.wait(asking, signal);
  }

  return {
    /** Whether a request has its turn or waits. While the channel waits for a corrected client, none has. */
    isBusy: (): boolean => isTaken || list.size() > 0,
    /** Begins a turn. `refused`: too many wait, the wait is too long, or the signal aborts. */
    async enter(asking: Asking, signal: AbortSignal): Promise<'at once' | 'after a wait' | 'refused'> {
      charged ??= asking.charged;
      const isFree = !isTaken && (!isHeld() || fits(asking));
      if (isFree) isTaken = true;
      else if (!(await wait(asking, signal))) return 'refused';
      timer?.abort();
      timer = null;
      return isFree ? 'at once' : 'after a wait';
    },
    /** Null: the turn failed. */
    end(turn: TurnEnd<unknown> | null, { request }: Asking): void {
      charged = turn?.charged ?? null;
      held = { untilMs: turn?.isCorrected ? clock.nowMs() + RETRY_MS : 0, request };
      isTaken = false;
      next();
    },
  };
}

export function createTurns(clock: Clock) {
  const lines = new Map<string, ReturnType<typeof createLine>>();
  let ended = 0;

  function lineOf(key: string) {
    const line = lines.get(key) ?? createLine(clock, () => lines.delete(key));
    lines.set(key, line);
    return line;
  }

  return {
    /** Turns that ended in this process. An equal count shows a request that no other had its channel since. */
    endedTurns: (): number => ended,
    isBusy: (key: string): boolean => lines.get(key)?.isBusy() ?? false,
    /** Runs `work` in its turn, and tells it whether the request waited. Null when the channel is too busy. */
    take: async <T>(
      key: string,
      asking: Asking,
      signal: AbortSignal,
      work: (hasWaited: boolean) => Promise<TurnEnd<T>>,
    ): Promise<T | null> => {
      const line = lineOf(key);
      const entered = await line.enter(asking, signal);
      if (entered === 'refused') return null;
      let turn: TurnEnd<T> | null = null;
      try {
        turn = await work(entered === 'after a wait');
        return turn.value;
      } finally {
        ended++;
        line.end(turn, asking);
      }
    },
  };
}

export type Turns = ReturnType<typeof createTurns>;

/** Milliseconds that a request waits for its turn. */
const WAIT_MS = 30_000;

interface Asking {
  /** The charges that its voucher was signed on top of. */
  readonly chargedBefore: bigint;
  /** What it asks for. A client that signs once more asks for the same. */
  readonly request: string;
  /** The channel's, in the ledger; null where it has none. */
  readonly charged: bigint | null;
}

interface Waiting extends Asking {
  begin(): void;
}

function createWaitingList(clock: Clock) {
  let waiting: Waiting[] = [];

  return {
    size: (): number => waiting.length,
    firstThat: (fits: (asking: Asking) => boolean): number => waiting.findIndex(fits),
    begin(at: number): boolean {
      const [first] = waiting.splice(at, 1);
      first?.begin();
      return first !== undefined;
    },
    /** False when it takes longer than WAIT_MS, and when the signal aborts. */
    wait(asking: Asking, signal: AbortSignal): Promise<boolean> {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const one: Waiting = { ...asking, begin: () => resolve(true) };
      waiting.push(one);
      const begun = new AbortController();
      const leave = (): void => {
        // A request that has left the list has its turn.
        if (!waiting.includes(one)) return;
        waiting = waiting.filter((other) => other !== one);
        resolve(false);
      };
      void clock.sleep(WAIT_MS, AbortSignal.any([signal, begun.signal])).then(leave, leave);
      return promise.finally(() => begun.abort());
    },
  };
}
