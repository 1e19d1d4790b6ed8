import { Unavailable } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { withinDeadline } from '../../upstream/deadline.ts';
import { type Receiver, TooMuchPower } from './receiver.ts';

/** The levels of a pino-like logger that are needed. */
export interface NodeLog {
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

interface NodeWatchOptions {
  readonly receiver: Receiver;
  /** The key that the node must have; null takes the one that it tells first. */
  readonly expectedKey: string | null;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly log: NodeLog;
}

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 60_000;
/** For a state that only an operator ends. */
const SHUT_RETRY_SECONDS = 300;

/**
 * Whether the node may be sold through. It is `open` once it was inspected and told the right key; `away` after any failure, until it
 * passes the same again; `shut` for good when its connection may spend. While away it is looked at after 1, 2, 4 … 60 s by a loop of
 * our own, and buyers are turned away without a question to it. The wait starts over after an invoice that was good, or a minute without failure.
 */
export function createNodeWatch({ receiver, expectedKey, timeoutMs, clock, log }: NodeWatchOptions) {
  const stopped = new AbortController();
  const { kind } = receiver;
  let key = expectedKey;
  let state: 'away' | 'open' | 'shut' = 'away';
  let why = 'it was not asked yet';
  let verified = false;
  let failures = 0;
  let openedAtMs = 0;
  let retryAtMs = 0;
  let looking: Promise<void> | null = null;

  /** Opens, or throws: TooMuchPower, or whatever says that it is away. */
  async function look(): Promise<void> {
    const ask = <T>(question: (signal: AbortSignal) => Promise<T>) =>
      withinDeadline(timeoutMs, stopped.signal, question);
    const warnings = await ask((signal) => receiver.inspect(signal));
    const told = await ask((signal) => receiver.nodeKey(signal));
    verified = key === null || told === key;
    if (!verified) {
      log.error(
        { receiver: kind, told, expected: key },
        'the Lightning node is another than the one whose key we name',
      );
      throw new Error(`its key is ${told}, and not ${key}`);
    }
    key = told;
    state = 'open';
    why = '';
    openedAtMs = clock.nowMs();
    for (const warning of warnings) log.warn({ receiver: kind, warning }, 'what the Lightning node allows us');
    log.info({ receiver: kind, payTo: key }, 'the Lightning node is there');
  }

  async function lookUntilOpen(): Promise<void> {
    while (state === 'away') {
      await clock.sleep(Math.max(0, retryAtMs - clock.nowMs()), stopped.signal);
      await look().catch((error: unknown) => {
        if (error instanceof TooMuchPower) shut(error);
        else if (!stopped.signal.aborted) away(error);
      });
    }
  }

  function away(error: unknown): void {
    const reason = error instanceof Error ? error.message : 'an unknown failure';
    if (state === 'open' && clock.nowMs() - openedAtMs >= LONGEST_WAIT_MS) failures = 0;
    const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
    failures += 1;
    retryAtMs = clock.nowMs() + waitMs;
    state = 'away';
    // An outage is told once, and again when its reason changes.
    if (reason !== why) log.warn({ receiver: kind, reason, waitMs }, 'the Lightning node cannot be sold through');
    why = reason;
    keepLooking();
  }

  /** One loop at a time; a failure that comes while the last one ends starts the next. */
  function keepLooking(): void {
    looking ??= lookUntilOpen()
      .catch(() => undefined)
      .finally(() => {
        looking = null;
        if (state === 'away' && !stopped.signal.aborted) keepLooking();
      });
  }

  function shut(error: TooMuchPower): void {
    state = 'shut';
    why = error.message;
    log.error({ receiver: kind, reason: why }, 'the Lightning node will not be sold through until the next start');
  }

  function unavailable(): Unavailable {
    const seconds = state === 'shut' ? SHUT_RETRY_SECONDS : Math.ceil((retryAtMs - clock.nowMs()) / 1000);
    const detail = 'The Lightning node cannot be used now; nothing was charged. Try again later.';
    return new Unavailable('lightning_unavailable', detail, Math.max(1, seconds));
  }

  return {
    key: () => key,
    unavailable,
    /** Throws Unavailable unless an invoice may be asked for. */
    check(): void {
      if (state !== 'open') throw unavailable();
    },
    /** Whether the node that answers is the one whose payments count, even while it makes no invoices. */
    isOurs: () => verified && state !== 'shut',
    /** Every failure of one outage is one failure. Returns what the buyer hears. */
    failed(error: unknown): Unavailable {
      if (state === 'open') away(error);
      return unavailable();
    },
    succeeded(): void {
      failures = 0;
    },
    status: (): { ok: boolean; detail?: string } => (state === 'open' ? { ok: true } : { ok: false, detail: why }),
    async start(): Promise<void> {
      await look().catch((error: unknown) => {
        if (error instanceof TooMuchPower) throw error;
        away(error);
      });
    },
    async stop(): Promise<void> {
      stopped.abort(new Error('the service stops'));
      await looking;
    },
  };
}
