import type { Clock } from '../clock.ts';
import { setNewest } from '../set-newest.ts';

export const WINDOW_MS = 60_000;
/** The most clients, some 2 MB. When more clients come in one minute, the oldest window is dropped. */
export const MAX_CLIENTS = 10_000;

interface Window {
  count: number;
  endsAtMs: number;
}

/** A client's count in its minute. `resetSeconds` is the time until the minute ends, rounded up. */
export interface Counted {
  readonly count: number;
  readonly resetSeconds: number;
}

/** Counts events of clients, each in its own minute that begins with the first. */
export interface MinuteWindows {
  /** Counts one more. */
  count(client: string): Counted;
  /** Takes back one counted event that did not happen. Does nothing when the minute has ended. */
  takeBack(client: string): void;
}

/** Windows that can also be read. */
export interface ReadableWindows extends MinuteWindows {
  /** A client's count, without counting. It is 0, with 0 seconds, when its minute has ended or it was never counted. */
  read(client: string): Counted;
}

/** Windows that may be counted on another machine. Methods reject when it does not answer. */
export interface SharedWindows {
  count(client: string): Counted | Promise<Counted>;
  takeBack(client: string): void | Promise<void>;
}

/** Opens the windows of a name. All that are opened under one name in one place share their counts. */
export type OpenWindows = (name: string) => SharedWindows;

/** Windows in one bounded Map in memory; the counts are lost at a restart. `windowMs` is for limits over another time than a minute. */
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
