import { orAborted } from '../../lib/tasks.ts';
import { ExchangeFailed } from './failure.ts';

/** Node fires a timer at once when it is set further away than this. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Runs `task` with a signal that aborts after `timeoutMs` or when the caller's signal does. Settles by then, even if the task ignores the signal.
 * Rejects with the caller's own reason after its abort, and with ExchangeFailed after the deadline.
 */
export async function withinDeadline<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const control = new AbortController();
  const expire = () => control.abort(new ExchangeFailed('answering', 'timed out'));
  const timer = setTimeout(expire, Math.min(timeoutMs, MAX_TIMER_MS));
  const onAbort = () => control.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    return await orAborted(task(control.signal), control.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}
