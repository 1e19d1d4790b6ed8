import { TooMany } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import { CLIENTS_PER_SITE, siteKey } from '../../../lib/limits/client-key.ts';
import {
  createMinuteWindows,
  type OpenWindows,
  type SharedWindows,
  WINDOW_MS,
} from '../../../lib/limits/minute-windows.ts';
import { type Applicant, BUYERS_DIVISOR } from './offer-client.ts';

/** The total is scarce while more than this part of it is used. */
const SHORT_ABOVE = 0.75;

/** Divides the total: the part, a tenth, that newcomers may draw of the buyers' reserve. */
const NEWCOMERS_DIVISOR = 10;
/** The newcomers' part comes in equal portions over the minute, at most so many. So no burst can take all of it. */
const MOST_PORTIONS = 30;

const NOTHING: KnownCounts = { taken: 0, holders: 0 };

interface IssuanceLimits {
  /** New invoices a minute; 0 is off. */
  readonly client: number;
  readonly total: number;
}

/**
 * Limits new invoices, before the handler and the node do any work. Counts one invoice for the applicant. Throws TooMany,
 * `exact_lnbtc_invoice_issuance_denied`, and then counts nothing.
 */
export type Issuance = (applicant: Applicant) => Promise<Permit>;

/** Leave to make one invoice. */
export interface Permit {
  /** Whether its applicant may use the reserves of the later steps. A buyer may, and so may a newcomer that used the newcomers' part. */
  readonly hasReserve: boolean;
  /** Takes the count back, once, for an invoice that was not made. */
  takeBack(): Promise<void>;
}

/**
 * Checks in this order, so that a refused client uses up nothing that others share:
 * 1. The client's own limit.
 * 2. Four times that limit for its IPv6 /48.
 * 3. The total. A client, or a /48, gets one more only while it has no more than is left, so that a late client still gets some.
 * 4. While the total is scarce, in this minute or the last: an equal share, which leaves one share more than there are clients. Without it, twenty
 *    clients that come one after another would each take half of the rest.
 * 5. A newcomer that rule 3 or 4 would refuse draws on the newcomers' part, a tenth of the total, in portions of two seconds. Without it, some
 *    hundred clients that keep asking would take everything in the first second of each minute.
 *
 * A fifth of the total is reserved for clients that have paid within the hour; rule 4 does not apply to them. Newcomers may draw half of that fifth.
 * All windows are the same minute of the clock, so that no client gets its share twice in one minute. The counts are in this process's memory unless
 * `open` names another place; a restart forgets them.
 */
export function createIssuance(
  limits: IssuanceLimits,
  clock: Clock,
  open: OpenWindows = () => createMinuteWindows(clock),
): Issuance {
  const clients = open('invoices for a client');
  const invoices = open('invoices');
  const holders = open('clients with invoices');
  const newcomers = open('invoices for newcomers');
  const portions = createPortions(limits.total);
  const siteLimit = limits.client * CLIENTS_PER_SITE;
  const shares = createShares(limits.total);

  return async ({ client, isBuyer, isNewcomer }) => {
    if (limits.client === 0 && limits.total === 0) return { hasReserve: isBuyer, takeBack: async () => {} };
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
    async function refuse(limit: number, whose: string, untilMs = (minute + 1) * WINDOW_MS): Promise<never> {
      await takeBack();
      const detail = `More than ${limit} new invoices a minute ${whose}; pay one that you have, or wait.`;
      const resetSeconds = Math.max(1, Math.ceil((untilMs - now) / 1000));
      throw new TooMany('exact_lnbtc_invoice_issuance_denied', detail, resetSeconds);
    }
    /** Step 5: `all` is the count with this one. */
    async function drawAsNewcomer(all: number): Promise<boolean> {
      if (!isNewcomer || all > limits.total) return false;
      return (await count(newcomers, `${portions.at(now)}`)) <= portions.size;
    }

    const own = await count(clients, client);
    if (limits.client > 0 && own > limits.client) return refuse(limits.client, 'for one client');
    const site = siteKey(client);
    const held = site === null ? own : await count(clients, site);
    if (limits.client > 0 && held > siteLimit) return refuse(siteLimit, 'for one network');
    if (limits.total === 0) return { hasReserve: isBuyer, takeBack };
    const all = await count(invoices, '');
    const drawsReserve = held > share.most(isBuyer, all);
    if (drawsReserve && !(await drawAsNewcomer(all)))
      return refuse(limits.total, 'for all clients together', isNewcomer ? portions.endOf(now) : undefined);
    share.hear({ taken: all, ...(held === 1 && { holders: await count(holders, '') }) });
    return { hasReserve: isBuyer || drawsReserve, takeBack };
  };
}

/** The newcomers' part of a total, in portions over the minute. */
function createPortions(total: number) {
  const part = Math.floor(total / NEWCOMERS_DIVISOR);
  const number = Math.max(1, Math.min(MOST_PORTIONS, part));
  const lengthMs = WINDOW_MS / number;
  const at = (ms: number): number => Math.floor(ms / lengthMs);
  return { size: Math.floor(part / number), at, endOf: (ms: number): number => (at(ms) + 1) * lengthMs };
}

/** What this process knows of a minute: how many invoices were made, and for how many clients. An IPv6 /48 counts as one client. */
interface KnownCounts {
  readonly taken: number;
  readonly holders: number;
}

/** How many invoices of the total a client, or a site, may have: steps 3 and 4, from what this process knows of the shared counts. */
function createShares(total: number) {
  const withoutReserve = total - Math.floor(total / BUYERS_DIVISOR);
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
