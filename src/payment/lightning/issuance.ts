import { TooMany } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { createMinuteWindows, type OpenWindows } from '../../lib/minute-windows.ts';

interface IssuanceLimits {
  /** New invoices a minute; 0 is off. */
  readonly client: number;
  readonly total: number;
}

/** The limiter of new invoices, asked before the handler and the node do any work: throws TooMany, `exact_lnbtc_invoice_issuance_denied`. */
export type Issuance = (client: string) => Promise<void>;

/**
 * Counts in this process's memory unless it is told where: a restart forgives. The client comes first, so that one that is over its limit
 * uses up nobody else's.
 */
export function createIssuance(
  limits: IssuanceLimits,
  clock: Clock,
  open: OpenWindows = () => createMinuteWindows(clock),
): Issuance {
  const clients = open('invoices for a client');
  const everybody = open('invoices');
  const check = async (windows: typeof clients, key: string, limit: number, whose: string): Promise<void> => {
    if (limit === 0) return;
    const { count, resetSeconds } = await windows.count(key);
    if (count <= limit) return;
    const detail = `More than ${limit} new invoices a minute ${whose}; pay one that you have, or wait.`;
    throw new TooMany('exact_lnbtc_invoice_issuance_denied', detail, resetSeconds);
  };
  return async (client) => {
    await check(clients, client, limits.client, 'for one client');
    await check(everybody, '', limits.total, 'for all clients together');
  };
}
