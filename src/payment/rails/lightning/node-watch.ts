import { Unavailable } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import { withinDeadline } from '../../../upstream/client/deadline.ts';
import { createBackOff } from './nodes/back-off.ts';
import { type Receiver, TooMuchPower } from './nodes/receiver.ts';

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
  const backOff = createBackOff(FIRST_WAIT_MS, LONGEST_WAIT_MS);
  let key = expectedKey;
  let state: 'away' | 'open' | 'shut' = 'away';
  let why = 'it was not asked yet';
  let verified = false;
  let openedAtMs = 0;
  let retryAtMs = 0;
  let looking: Promise<void> | null = null;

  /** Opens, or throws: TooMuchPower, or whatever says that it is away. */
  async function look(): Promise<void> {
    const { warnings, told } = await examine(receiver, timeoutMs, stopped.signal);
    verified = key === null || told === key;
    if (!verified) {
      log.error({ receiver: kind, told, expected: key }, 'the Lightning node has another key than it must have');
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
    if (state === 'open' && clock.nowMs() - openedAtMs >= LONGEST_WAIT_MS) backOff.succeeded();
    const waitMs = backOff.failed();
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
    succeeded: backOff.succeeded,
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

/** What it may do for us before anything else, so that a key is never learned through a connection that must not be used. */
async function examine(receiver: Receiver, timeoutMs: number, signal: AbortSignal) {
  const warnings = await withinDeadline(timeoutMs, signal, (within) => receiver.inspect(within));
  const told = await withinDeadline(timeoutMs, signal, (within) => receiver.nodeKey(within));
  return { warnings, told };
}
