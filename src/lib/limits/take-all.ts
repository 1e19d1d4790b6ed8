import type { ReadableWindows } from './minute-windows.ts';

/** One of the limits that an event counts under. */
export interface Take {
  readonly windows: ReadableWindows;
  readonly key: string;
  /** 0 is off. */
  readonly limit: number;
  /** The error of an event beyond the limit. */
  refusal(resetSeconds: number): Error;
}

/**
 * Counts one event under all of these limits, and returns a function that takes it back because it did not happen. Throws the refusal of the first limit
 * that is reached; then nothing is counted.
 */
export function takeAll(takes: readonly Take[]): () => void {
  for (const { windows, key, limit, refusal } of takes) {
    const { count, resetSeconds } = windows.read(key);
    if (limit > 0 && count >= limit) throw refusal(resetSeconds);
  }
  for (const { windows, key } of takes) windows.count(key);
  return () => {
    for (const { windows, key } of takes) windows.takeBack(key);
  };
}
