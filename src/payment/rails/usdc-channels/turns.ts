import type { Clock } from '../../../lib/clock.ts';

/** Requests that may wait for one channel. A request beyond that is refused as busy. */
const MOST_WAITING = 32;
/** How long a client may take to sign the voucher that it was told of, in milliseconds: a read of the chain and a round trip. */
const RETRY_MS = 500;
/** How long a request waits for its turn, in milliseconds. */
const WAIT_MS = 30_000;

/** How a request's turn ended. */
export interface Turn<T> {
  readonly value: T;
  /** The channel's charges after it. */
  readonly charged: bigint;
  /** Whether the client was told which voucher to sign next. */
  readonly isCorrected: boolean;
}

interface Waiting {
  /** The charges on top of which its voucher was signed. */
  readonly from: bigint;
  begin(): void;
}

interface Line {
  waiting: Waiting[];
  isTaken: boolean;
  /** The channel's charges after the last turn; null where they are not known. */
  charged: bigint | null;
  /** Until when the channel waits for a client that was told which voucher to sign, in Unix milliseconds. */
  heldUntilMs: number;
  timer: AbortController | null;
}

/**
 * Lets the requests of one channel take turns. All requests that a stock client makes at once carry the same voucher. One of them buys. Each of the
 * others must be told the new charges, signs once more, and gives up when that voucher is stale too. So a request whose voucher fits comes first, and
 * after each correction the channel waits RETRY_MS for the corrected voucher before it corrects the next request.
 */
export function createTurns(clock: Clock) {
  const lines = new Map<string, Line>();

  function lineOf(key: string): Line {
    const line = lines.get(key) ?? { waiting: [], isTaken: false, charged: null, heldUntilMs: 0, timer: null };
    lines.set(key, line);
    return line;
  }

  const isHeld = ({ heldUntilMs }: Line): boolean => heldUntilMs > clock.nowMs();
  const fits = ({ charged }: Line, from: bigint): boolean => charged === null || charged === from;

  /** Begins the next turn, if the channel is free. Forgets a channel that nobody waits for. */
  function next(key: string, line: Line): void {
    if (line.isTaken) return;
    const fitting = line.waiting.findIndex(({ from }) => fits(line, from));
    if (fitting < 0 && isHeld(line)) {
      wakeLater(key, line);
      return;
    }
    const [first] = line.waiting.splice(Math.max(0, fitting), 1);
    line.isTaken = first !== undefined;
    if (first) first.begin();
    else lines.delete(key);
  }

  function wakeLater(key: string, line: Line): void {
    const timer = new AbortController();
    line.timer = timer;
    clock.sleep(line.heldUntilMs - clock.nowMs(), timer.signal).then(
      () => next(key, line),
      () => {},
    );
  }

  /** Waits for a turn. False when too many wait already, when the wait is too long, and when the signal aborts. */
  async function wait(key: string, line: Line, from: bigint, signal: AbortSignal): Promise<boolean> {
    if (line.waiting.length >= MOST_WAITING) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const one: Waiting = { from, begin: () => resolve(true) };
    line.waiting.push(one);
    const begun = new AbortController();
    const leave = (): void => {
      // A request that is no longer in the list has its turn.
      if (!line.waiting.includes(one)) return;
      line.waiting = line.waiting.filter((other) => other !== one);
      resolve(false);
    };
    void clock.sleep(WAIT_MS, AbortSignal.any([signal, begun.signal])).then(leave, leave);
    if (!line.isTaken && !line.timer) next(key, line);
    return promise.finally(() => begun.abort());
  }

  async function enter(key: string, line: Line, from: bigint, signal: AbortSignal): Promise<boolean> {
    const isFree = !line.isTaken && (fits(line, from) || (line.waiting.length === 0 && !isHeld(line)));
    if (!isFree) return wait(key, line, from, signal);
    line.isTaken = true;
    return true;
  }

  return {
    /** Runs `work` in the channel's turn. `from`: the charges on top of which the request's voucher was signed. Null when the channel is too busy. */
    take: async <T>(
      key: string,
      from: bigint,
      signal: AbortSignal,
      work: () => Promise<Turn<T>>,
    ): Promise<T | null> => {
      const line = lineOf(key);
      if (!(await enter(key, line, from, signal))) return null;
      line.timer?.abort();
      line.timer = null;
      let turn: Turn<T> | null = null;
      try {
        turn = await work();
        return turn.value;
      } finally {
        line.charged = turn?.charged ?? null;
        line.heldUntilMs = turn?.isCorrected ? clock.nowMs() + RETRY_MS : 0;
        line.isTaken = false;
        next(key, line);
      }
    },
  };
}

export type Turns = ReturnType<typeof createTurns>;
