import type { AppError } from '../errors.ts';
import { rateLimited, rateLimitHeaders } from '../http/rate-limit.ts';
import { type ClientWindows, countClient } from '../lib/limits/client-limit.ts';
import type { MinuteWindows } from '../lib/limits/minute-windows.ts';
import type { Tool } from './tool.ts';

/** A limit per client and minute, four times as many for an IPv6 /48, and the place where its calls are counted. 0 is off. */
export interface CallLimit {
  readonly perMinute: number;
  readonly windows: ClientWindows<MinuteWindows>;
}

export type CallLimits = Readonly<Record<Tool['group'], CallLimit>>;

/** The rate-limit headers of a counted call, and the error when it is over the limit. */
interface Counted {
  readonly headers: Readonly<Record<string, string>>;
  readonly refusal: AppError | null;
}

/**
 * Counts one message of a client against the limit of its group, as `weight` calls. Numbers, headers and texts are
 * those of the routes. `isPaid`: the message carries a payment.
 */
export function countCall({ perMinute, windows }: CallLimit, client: string, isPaid: boolean, weight = 1): Counted {
  if (perMinute === 0) return { headers: {}, refusal: null };
  let standing = countClient(perMinute, windows, client);
  for (let counted = 1; counted < weight; counted += 1) standing = countClient(perMinute, windows, client);
  return { headers: rateLimitHeaders(standing), refusal: standing.left < 0 ? rateLimited(standing, isPaid) : null };
}
