import { AppError } from '../errors.ts';
import { orAborted } from '../lib/tasks.ts';
import type { Missing } from './missing-field.ts';

/** How long an answer waits for its optional parts. All of them run at once. */
const WAIT_MS = 2500;

/** One optional part of an answer. When the signal aborts, it is no longer waited for. */
type Part<T> = (signal: AbortSignal) => Promise<T>;

/** The parts' values, null for a part that failed, and the reason of each failure. */
interface Gathered<T> {
  readonly parts: { readonly [K in keyof T]: T[K] | null };
  readonly missing: Missing;
}

/**
 * Reads the optional parts of an answer at once, each under the name of the member that it fills. A source that fails, or takes longer than 2.5 s, costs
 * its own part and nothing else. Rejects with the signal's reason when the caller aborts, and with any error that is a bug.
 */
export async function gatherParts<T extends Record<string, unknown>>(
  tasks: { readonly [K in keyof T]: Part<T[K]> },
  signal: AbortSignal,
): Promise<Gathered<T>> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new AppError(502, 'upstream_failed', 'took too long')), WAIT_MS);
  const within = AbortSignal.any([signal, late.signal]);
  const missing: Missing = [];
  const read = async <K extends keyof T & string>(field: K) => {
    try {
      return [field, await orAborted(tasks[field](within), within)] as const;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AppError)) throw error;
      missing.push({ field, reason: error.message });
      return [field, null] as const;
    }
  };
  try {
    const parts = Object.fromEntries(await Promise.all(Object.keys(tasks).map(read)));
    return { parts: parts as Gathered<T>['parts'], missing };
  } finally {
    clearTimeout(timer);
  }
}
