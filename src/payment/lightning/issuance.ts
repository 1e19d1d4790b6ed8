import { TooMany } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import {
  boundedMap,
  CLIENTS_PER_SITE,
  createMinuteWindows,
  keysOf,
  MAX_CLIENTS,
  type OpenWindows,
  type SharedWindows,
  siteKey,
  WINDOW_MS,
} from '../../lib/limits/count.ts';

// Who may get a new invoice. A client that has not paid has nothing at stake, so invoices are limited for each client
// and in total, before any work. Buyers and newcomers are lists in memory, bounded and forgotten at a restart.

/** The total is scarce while more than this part of it is used. */
const SHORT_ABOVE = 0.75;

/** A tenth of the total: what newcomers may draw of the buyers' reserve. */
const NEWCOMERS_DIVISOR = 10;
/** The newcomers' part comes in equal portions over the minute, at most so many, so that no burst takes all of it. */
const MOST_PORTIONS = 30;

const NOTHING: KnownCounts = { taken: 0, holders: 0 };

interface IssuanceLimits {
  /** New invoices a minute; 0 is off. */
  readonly client: number;
  readonly total: number;
}

/** Counts one invoice for the applicant. Throws TooMany (`exact_lnbtc_invoice_issuance_denied`), counting nothing. */
export type Issuance = (applicant: Applicant) => Promise<Permit>;

interface Permit {
  /** Whether it may use the reserves of the later steps: for a buyer, or a newcomer that used the newcomers' part. */
  readonly hasReserve: boolean;
  /** Takes the count back, once, for an invoice that was not made. */
  takeBack(): Promise<void>;
}

/**
 * Checks in this order, so that a refused client uses up nothing that others share:
 * 1. The client's own limit. 2. Four times that limit for its IPv6 /48.
 * 3. The total. A client or /48 gets one more only while it has no more than is left: a late one still gets some.
 * 4. While the total is scarce, an equal share. Else clients one after another would each take half of the rest.
 * 5. A newcomer refused by 3 or 4 draws on a tenth of the total, in portions, so that no burst takes all of it.
 * A fifth is for buyers of the last hour, whom 4 spares; newcomers draw half of it. Windows are the clock's minutes.
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

function createPortions(total: number) {
  const part = Math.floor(total / NEWCOMERS_DIVISOR);
  const number = Math.max(1, Math.min(MOST_PORTIONS, part));
  const lengthMs = WINDOW_MS / number;
  const at = (ms: number): number => Math.floor(ms / lengthMs);
  return { size: Math.floor(part / number), at, endOf: (ms: number): number => (at(ms) + 1) * lengthMs };
}

/** What this process knows of a minute: invoices, and clients that have some. An IPv6 /48 counts as one client. */
interface KnownCounts {
  readonly taken: number;
  readonly holders: number;
}

/** Rules 3 and 4: how many invoices a client or site may have, from what this process knows of the shared counts. */
function createShares(total: number) {
  const withoutReserve = total - Math.floor(total / BUYERS_DIVISOR);
  let begun: number | null = null;
  let last = NOTHING;
  let current = NOTHING;

  return {
    of(minute: number) {
      if (minute !== begun) {
        [last, current] = [begun === minute - 1 ? current : NOTHING, NOTHING];
        begun = minute;
      }
      return {
        /** The most that a client or site may hold, now that the total stands at `all` with this one counted. */
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

/** So long a client with an offer is no newcomer: an invoice lives for five minutes; a paid one makes it a buyer. */
const OFFERED_MS = 600_000;
/** A client asks rarely while no more than this many of its requests are remembered. */
const RARE = 3;
// A client that waits Retry-After's two seconds before each try asks rarely for four tries.
const FORGET_MS = 5000;
/** The most that is remembered: after 50 s of quiet, (MOST − 2) × FORGET_MS, any client asks rarely again. */
const MOST = 12;

/** Clients that have asked rarely of late and have had no offer in the last ten minutes. */
export interface Newcomers {
  asks(client: string): boolean;
  /** Takes back one counted request: the service was short of something, and asked the client to try again. */
  forgive(client: string): void;
  /** Notes that a client got an offer, or that its handler ran without an answer. */
  offered(client: string): void;
}

/** A flood of addresses keeps no newcomer out: each is one until its first handler has run. A /48 asks as four. */
export function createNewcomers(clock: Clock, maxClients = MAX_CLIENTS): Newcomers {
  const offers = createMinuteWindows(clock, maxClients, OFFERED_MS);
  // How often each client and site has asked, less what is forgotten by now; the longest silent first.
  const asked = boundedMap<string, { readonly level: number; readonly atMs: number }>(maxClients);

  function isRare(key: string, times: number): boolean {
    const now = clock.nowMs();
    const { level, atMs } = asked.peek(key) ?? { level: 0, atMs: now };
    const before = Math.max(0, level - Math.max(0, now - atMs) / FORGET_MS);
    asked.set(key, { level: Math.min(MOST * times, before + 1), atMs: now });
    return before + 1 <= RARE * times;
  }

  return {
    asks(client) {
      const site = siteKey(client);
      const isRareClient = isRare(client, 1) && offers.read(client).count === 0;
      if (site === null) return isRareClient;
      return isRare(site, CLIENTS_PER_SITE) && offers.read(site).count < CLIENTS_PER_SITE && isRareClient;
    },
    forgive(client) {
      for (const key of keysOf(client)) {
        const known = asked.peek(key);
        if (known) asked.set(key, { ...known, level: Math.max(0, known.level - 1) });
      }
    },
    offered(client) {
      for (const key of keysOf(client)) offers.count(key);
    },
  };
}

/** How long a client counts as a buyer after a payment. */
const RECENT_MS = 3_600_000;
/** About 1 MB. Beyond that, the client that paid longest ago is dropped. */
const MAX_BUYERS = 10_000;

/** Clients whose proof was claimed here within the hour. They may use reserves that others may not. */
export interface RecentBuyers {
  add(client: string): void;
  has(client: string): boolean;
}

export function createRecentBuyers(clock: Clock, maxBuyers = MAX_BUYERS): RecentBuyers {
  // Insertion order is the order of the last payments.
  const paidAtMs = boundedMap<string, number>(maxBuyers);
  return {
    add(client) {
      paidAtMs.set(client, clock.nowMs());
    },
    has: (client) => clock.nowMs() - (paidAtMs.peek(client) ?? Number.NEGATIVE_INFINITY) < RECENT_MS,
  };
}

export interface OfferClient {
  readonly client: string;
  readonly isBuyer: boolean;
}

export interface Applicant extends OfferClient {
  readonly isNewcomer: boolean;
}

/** Divides a shared limit: a fifth of it is reserved for buyers. */
export const BUYERS_DIVISOR = 5;
