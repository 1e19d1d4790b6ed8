import { Unavailable } from '../../errors.ts';
import type { Common } from '../../lib/common.ts';
import { withinDeadline } from '../../upstream/client/failure.ts';
import { createBackOff, type Receiver, TooMuchPower } from './nodes/receiver.ts';

// Whether the node may be used for sales. `open`: it was inspected and has the right key. `away`: a request has failed;
// the checks run again after 1, 2, 4 … 60 s, from 1 s after a good invoice or a minute without failure. `shut`: its
// connection may spend, so it is never used again.

export interface NodeLog {
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 60_000;
/** Only an operator can end `shut`. */
const SHUT_RETRY_SECONDS = 300;

/** Null as `expectedKey` accepts the first key that the node reports. */
export function createNodeWatch(
  { clock, log }: Common,
  receiver: Receiver,
  expectedKey: string | null,
  timeoutMs: number,
) {
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

  /** Throws TooMuchPower, or the error that makes the node `away`. */
  async function look(): Promise<void> {
    const { warnings, actual } = await examine(receiver, timeoutMs, stopped.signal);
    verified = key === null || actual === key;
    if (!verified) {
      log.error({ receiver: kind, actual, expected: key }, 'the Lightning node has another key than expected');
      throw new Error(`its key is ${actual}, and not ${key}`);
    }
    key = actual;
    state = 'open';
    why = '';
    openedAtMs = clock.nowMs();
    for (const warning of warnings) log.warn({ receiver: kind, warning }, 'Lightning node permissions');
    log.info({ receiver: kind, payTo: key }, 'the Lightning node is available');
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
    // An outage is logged once, and again when its reason changes.
    if (reason !== why) log.warn({ receiver: kind, reason, waitMs }, 'the Lightning node is unavailable');
    why = reason;
    keepLooking();
  }

  /** One loop at a time. A failure during the end of the last loop starts the next. */
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
    log.error({ receiver: kind, reason: why }, 'the Lightning node is not used until the next start');
  }

  function unavailable(): Unavailable {
    const seconds = state === 'shut' ? SHUT_RETRY_SECONDS : Math.ceil((retryAtMs - clock.nowMs()) / 1000);
    const detail = 'The Lightning node cannot be used now; nothing was charged. Try again later.';
    return new Unavailable('lightning_unavailable', detail, Math.max(1, seconds));
  }

  return {
    key: () => key,
    unavailable,
    check(): void {
      if (state !== 'open') throw unavailable();
    },
    /** Whether this node's payments count, even while it makes no invoices. */
    isOurs: () => verified && state !== 'shut',
    /** All failures of one outage count as one. Returns the error for the buyer. */
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

/** Permissions first, so that no key is learned through a connection that must not be used. */
async function examine(receiver: Receiver, timeoutMs: number, signal: AbortSignal) {
  const warnings = await withinDeadline(timeoutMs, signal, (within) => receiver.inspect(within));
  const actual = await withinDeadline(timeoutMs, signal, (within) => receiver.nodeKey(within));
  return { warnings, actual };
}
