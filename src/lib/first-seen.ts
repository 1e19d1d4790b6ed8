import { setNewest } from './set-newest.ts';

/** The time of a key's first call, in Unix milliseconds; a new key gets `nowMs`. */
export type FirstSeen = (key: string, nowMs: number) => number;

/** Remembers the first time of at most `maxKeys` keys. The key that came first is forgotten first, so that no caller can fill the memory. */
export function createFirstSeen(maxKeys: number): FirstSeen {
  const times = new Map<string, number>();
  return (key, nowMs) => {
    const known = times.get(key);
    if (known === undefined) setNewest(times, key, nowMs, maxKeys);
    return known ?? nowMs;
  };
}
