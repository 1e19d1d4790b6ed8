import type { Clock } from '../clock.ts';
import { setNewest } from '../set-newest.ts';

export const WINDOW_MS = 60_000;
/** Some 2 MB at most. When more clients come in one minute, the one whose window began first is forgotten. */
export const MAX_CLIENTS = 10_000;

interface Window {
  count: number;
  endsAtMs: number;
}

/** How often a client was counted in its minute; `resetSeconds` is when that ends, rounded up. */
export interface Counted {
  readonly count: number;
  readonly resetSeconds: number;
}

/** Counts events of clients, each in its own minute that begins with the first. */
export interface MinuteWindows {
  /** Counts one more. */
  count(client: string): Counted;
  /** Takes one back that was counted and did not happen after all; nothing, where the minute has ended. */
  takeBack(client: string): void;
}

/** Windows that can be looked at as well. */
export interface ReadableWindows extends MinuteWindows {
  /** How a client stands without counting: 0, and 0 seconds, where its minute has ended or it was never counted. */
  read(client: string): Counted;
}

/** The same where the place that counts may be another machine; then it rejects when that cannot be asked. */
export interface SharedWindows {
  count(client: string): Counted | Promise<Counted>;
  takeBack(client: string): void | Promise<void>;
}

/** Opens the windows of a name: whoever opens the same name in the same place counts the same clients. */
export type OpenWindows = (name: string) => SharedWindows;

/** One Map in memory, bounded: what is counted is forgotten at a restart. `windowMs` is for limits of another time than a minute. */
export function createMinuteWindows(clock: Clock, maxClients = MAX_CLIENTS, windowMs = WINDOW_MS): ReadableWindows {
  // Insertion order is the order in which windows began.
  const windows = new Map<string, Window>();

  function currentWindow(client: string, now: number): Window {
    const known = windows.get(client);
    if (known && known.endsAtMs > now) return known;
    const fresh = { count: 0, endsAtMs: now + windowMs };
    setNewest(windows, client, fresh, maxClients);
    return fresh;
  }

  return {
    count(client) {
      const now = clock.nowMs();
      const window = currentWindow(client, now);
      window.count += 1;
      return counted(window, now);
    },
    takeBack(client) {
      const window = windows.get(client);
      if (window && window.endsAtMs > clock.nowMs() && window.count > 0) window.count -= 1;
    },
    read(client) {
      const now = clock.nowMs();
      const window = windows.get(client);
      return window && window.endsAtMs > now ? counted(window, now) : { count: 0, resetSeconds: 0 };
    },
  };
}

function counted({ count, endsAtMs }: Window, now: number): Counted {
  return { count, resetSeconds: Math.ceil((endsAtMs - now) / 1000) };
}
