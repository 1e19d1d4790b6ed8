import { TooMany } from '../errors.ts';
import type { MinuteWindows } from '../lib/minute-windows.ts';
import type { Tool } from './tool.ts';

/** A limit per client and minute, and where its calls are counted; 0 is off. */
export interface CallLimit {
  readonly perMinute: number;
  readonly windows: MinuteWindows;
}

export type CallLimits = Readonly<Record<Tool['group'], CallLimit>>;

/** What a counted call is answered with on top, and why it is not served if it is not. */
interface Counted {
  readonly headers: Readonly<Record<string, string>>;
  readonly refusal: TooMany | null;
}

/** Counts one message of a client against the limit of its group: the same numbers, headers and words as on the routes. */
export function countCall({ perMinute, windows }: CallLimit, client: string): Counted {
  if (perMinute === 0) return { headers: {}, refusal: null };
  const { count, resetSeconds } = windows.count(client);
  const headers = {
    'ratelimit-limit': String(perMinute),
    'ratelimit-remaining': String(Math.max(0, perMinute - count)),
    'ratelimit-reset': String(resetSeconds),
  };
  if (count <= perMinute) return { headers, refusal: null };
  return {
    headers,
    refusal: new TooMany('rate_limited', `More than ${perMinute} requests a minute from one client.`, resetSeconds),
  };
}
