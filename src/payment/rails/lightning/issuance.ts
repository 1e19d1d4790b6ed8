import { TooMany } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import { CLIENTS_PER_SITE, siteKey } from '../../../lib/limits/client-key.ts';
import {
  createMinuteWindows,
  type OpenWindows,
  type SharedWindows,
  WINDOW_MS,
} from '../../../lib/limits/minute-windows.ts';
import { type Asker, BUYERS_PART } from './asker.ts';

/** The total is scarce while more than this part of it is used. */
const SHORT_ABOVE = 0.75;

const NOTHING: KnownCounts = { taken: 0, holders: 0 };

interface IssuanceLimits {
  /** New invoices a minute; 0 is off. */
  readonly client: number;
  readonly total: number;
}

/**
 * Limits new invoices, before the handler and the node do any work. Counts one invoice for the client and resolves with a function that takes the
 * count back, for an invoice that was not made. Throws TooMany, `exact_lnbtc_invoice_issuance_denied`, and then counts nothing.
 */
export type Issuance = (asker: Asker) => Promise<() => Promise<void>>;

/**
 * Checks in this order, so that a refused client uses up nothing that others share:
 * 1. The client's own limit.
 * 2. Four times that limit for its IPv6 /48.
 * 3. The total. A client, or a /48, gets one more only while it has no more than is left, so that a late client still gets some.
 * 4. While the total is scarce, in this minute or the last: an equal share, which leaves one share more than there are clients. Without it, twenty
 *    clients that come one after another would each take half of the rest.
 *
 * A fifth of the total is reserved for clients that have paid within the hour; rule 4 does not apply to them. All windows are the same minute of the
 * clock, so that no client gets its share twice in one minute. The counts are in this process's memory unless `open` names another place; a restart
 * forgets them.
 */
export function createIssuance(
  limits: IssuanceLimits,
  clock: Clock,
  open: OpenWindows = () => createMinuteWindows(clock),
): Issuance {
  const clients = open('invoices for a client');
  const invoices = open('invoices');
  const holders = open('clients with invoices');
  const siteLimit = limits.client * CLIENTS_PER_SITE;
  const shares = createShares(limits.total);

  return async ({ client, isBuyer }) => {
    if (limits.client === 0 && limits.total === 0) return async () => {};
    const now = clock.nowMs();
    const minute = Math.floor(now / WINDOW_MS);
    const share = shares.of(minute);
    const counted: (() => void | Promise<void>)[] = [];

    async function count(windows: SharedWindows, key: string): Promise<number> {
      const ofMinute = `${minute} ${key}`;
      const { count: number } = await windows.count(ofMinute);
      counted.push(() => windows.takeBack(ofMinute));
      return number;
    }
    const takeBack = async (): Promise<void> => {
      await Promise.all(counted.splice(0).map((undo) => undo()));
    };
    async function refuse(limit: number, whose: string): Promise<never> {
      await takeBack();
      const detail = `More than ${limit} new invoices a minute ${whose}; pay one that you have, or wait.`;
      const resetSeconds = Math.ceil(((minute + 1) * WINDOW_MS - now) / 1000);
      throw new TooMany('exact_lnbtc_invoice_issuance_denied', detail, resetSeconds);
    }

    const own = await count(clients, client);
    if (limits.client > 0 && own > limits.client) return refuse(limits.client, 'for one client');
    const site = siteKey(client);
    const held = site === null ? own : await count(clients, site);
    if (limits.client > 0 && held > siteLimit) return refuse(siteLimit, 'for one network');
    if (limits.total === 0) return takeBack;
    const all = await count(invoices, '');
    if (held > share.most(isBuyer, all)) return refuse(limits.total, 'for all clients together');
    share.hear({ taken: all, ...(held === 1 && { holders: await count(holders, '') }) });
    return takeBack;
  };
}

/** What this process knows of a minute: how many invoices were made, and for how many clients. An IPv6 /48 counts as one client. */
interface KnownCounts {
  readonly taken: number;
  readonly holders: number;
}

/** How many invoices of the total a client, or a site, may have: steps 3 and 4, from what this process knows of the shared counts. */
function createShares(total: number) {
  const withoutReserve = total - Math.floor(total / BUYERS_PART);
  let begun: number | null = null;
  let last = NOTHING;
  let current = NOTHING;

  return {
    /** The shares of a minute. */
    of(minute: number) {
      if (minute !== begun) {
        [last, current] = [begun === minute - 1 ? current : NOTHING, NOTHING];
        begun = minute;
      }
      return {
        /** The most invoices that a client or site may hold, now that the total stands at `all` with this one counted. */
        most(isBuyer: boolean, all: number): number {
          if (isBuyer) return total - all + 1;
          const free = withoutReserve - all + 1;
          if (Math.max(all, last.taken) <= withoutReserve * SHORT_ABOVE) return free;
          const equal = Math.floor(withoutReserve / (Math.max(current.holders, last.holders) + 1));
          return Math.min(free, Math.max(1, equal));
        },
        /** Notes counts of this minute, unless the next minute has begun. */
        hear({ taken = 0, holders = 0 }: Partial<KnownCounts>): void {
          if (minute !== begun) return;
          current = { taken: Math.max(current.taken, taken), holders: Math.max(current.holders, holders) };
        },
      };
    },
  };
}
