import type { Clock } from '../../lib/clock.ts';

/** How long answers are kept, and how many. */
export interface CacheOptions {
  readonly ttlMs: number;
  /** How long after `ttlMs` an answer may still be used when the source fails. */
  readonly staleIfErrorMs: number;
  readonly maxEntries: number;
}

interface Sized {
  readonly body: Buffer;
  /** When it was read, by the same clock. */
  readonly retrievedAtMs: number;
}

/** Memory for the bodies of one upstream. With a dozen upstreams the service stays well below its memory limit. */
const MAX_BYTES = 32 * 1024 * 1024;
/** One large answer must not push out all others. */
const MAX_ENTRY_BYTES = MAX_BYTES / 4;

/** Caches answers by request, bounded in number and in bytes. The oldest is dropped first. */
export function createResponseCache<T extends Sized>(options: CacheOptions, clock: Clock) {
  const entries = new Map<string, T>();
  let bytes = 0;

  function drop(key: string): void {
    bytes -= entries.get(key)?.body.length ?? 0;
    entries.delete(key);
  }

  const within = (key: string, ageMs: number): T | undefined => {
    const entry = entries.get(key);
    return entry && clock.nowMs() - entry.retrievedAtMs < ageMs ? entry : undefined;
  };

  return {
    fresh: (key: string): T | undefined => within(key, options.ttlMs),
    /** The answer for a source that fails, fresh or stale. */
    stale: (key: string): T | undefined => within(key, options.ttlMs + options.staleIfErrorMs),
    keep(key: string, entry: T): void {
      drop(key);
      if (entry.body.length > MAX_ENTRY_BYTES) return;
      entries.set(key, entry);
      bytes += entry.body.length;
      for (const oldest of entries.keys()) {
        if (entries.size <= options.maxEntries && bytes <= MAX_BYTES) break;
        drop(oldest);
      }
    },
  };
}
