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

/** A request as it waits for its turn. */
interface Asking {
  /** The charges on top of which its voucher was signed. */
  readonly from: bigint;
  /** What it asks for. A client that signs once more asks for the same. */
  readonly request: string;
  /** The channel's charges as the ledger has them; null where it has none. */
  readonly charged: bigint | null;
}

interface Waiting extends Asking {
  begin(): void;
}

interface Line {
  waiting: Waiting[];
  isTaken: boolean;
  /** The channel's charges after the last turn; null where they are not known. */
  charged: bigint | null;
  /** Until when the channel waits for a client that was told which voucher to sign, in Unix milliseconds. */
  heldUntilMs: number;
  /** What that client asks for. */
  heldFor: string;
  timer: AbortController | null;
}

/**
 * Lets the requests of one channel take turns. All requests that a stock client makes at once carry the same voucher. One of them buys. Each of the
 * others must be told the new charges, signs once more, and gives up when that voucher is stale too. So a request whose voucher fits comes first. After
 * each correction the channel waits RETRY_MS for the same request with the corrected voucher, before any other request has its turn.
 */
export function createTurns(clock: Clock) {
  const lines = new Map<string, Line>();

  function lineOf(key: string): Line {
    const line = lines.get(key) ?? {
      waiting: [],
      isTaken: false,
      charged: null,
      heldUntilMs: 0,
      heldFor: '',
      timer: null,
    };
    lines.set(key, line);
    return line;
  }

  const isHeld = ({ heldUntilMs }: Line): boolean => heldUntilMs > clock.nowMs();
  const fits = (line: Line, { from, request }: Asking): boolean => {
    if (isHeld(line) && request !== line.heldFor) return false;
    return line.charged === null || line.charged === from;
  };

  /** Begins the next turn, if the channel is free. Forgets a channel that nobody waits for. */
  function next(key: string, line: Line): void {
    if (line.isTaken) return;
    const fitting = line.waiting.findIndex((one) => fits(line, one));
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
  async function wait(key: string, line: Line, asking: Asking, signal: AbortSignal): Promise<boolean> {
    // A voucher that fits is never refused for the stale ones before it. Only the payer's own keys can sign it.
    if (line.waiting.length >= MOST_WAITING && asking.from !== line.charged) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const one: Waiting = { ...asking, begin: () => resolve(true) };
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

  const isFree = (line: Line, asking: Asking): boolean =>
    !line.isTaken && (fits(line, asking) || (line.waiting.length === 0 && !isHeld(line)));

  return {
    /** Runs `work` in the channel's turn, and says whether it had to wait for it. Null when the channel is too busy. */
    take: async <T>(
      key: string,
      asking: Asking,
      signal: AbortSignal,
      work: (hasWaited: boolean) => Promise<Turn<T>>,
    ): Promise<T | null> => {
      const line = lineOf(key);
      line.charged ??= asking.charged;
      const hasWaited = !isFree(line, asking);
      if (hasWaited && !(await wait(key, line, asking, signal))) return null;
      line.isTaken = true;
      line.timer?.abort();
      line.timer = null;
      let turn: Turn<T> | null = null;
      try {
        turn = await work(hasWaited);
        return turn.value;
      } finally {
        line.charged = turn?.charged ?? null;
        line.heldUntilMs = turn?.isCorrected ? clock.nowMs() + RETRY_MS : 0;
        line.heldFor = asking.request;
        line.isTaken = false;
        next(key, line);
      }
    },
  };
}

export type Turns = ReturnType<typeof createTurns>;
