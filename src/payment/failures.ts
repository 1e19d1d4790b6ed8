import type { FailureLimits } from '../config/failures.ts';
import { CLIENTS_PER_SITE, siteKey } from '../lib/client-key.ts';
import type { Clock } from '../lib/clock.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** Keys remembered at once; past it the oldest window is forgotten, so that made-up payers cannot fill memory. */
const MAX_KEYS = 10_000;

/** Why a call is refused now, and for how many seconds. */
export interface FailureRefusal {
  readonly code: 'payer_failures' | 'client_failures';
  readonly detail: string;
  readonly retryAfterSeconds: number;
}

/** Counts uncharged failures by payer and by client, and refuses calls of those that have too many. */
export interface Failures {
  /** Null when neither the payer nor the client must wait. */
  refusal(payer: string, client: string): FailureRefusal | null;
  /** A payment whose signature does not hold. Any client can name any payer, so it counts for the client alone. */
  noteUnproven(client: string): void;
  /** A call that failed uncharged after the payer's signature was checked. */
  note(payer: string, client: string): void;
  /** A settlement begins. Returns what ends it, told whether it left our hands and moved nothing: mined in vain, or refused by a facilitator. */
  beginSettlement(payer: string, client: string): (movedNothing: boolean) => void;
  /** Seconds until this client may pay from new payers again; 0 when it may. A new payer has never paid here. */
  newPayersAfterSeconds(client: string): number;
}

/**
 * Limits uncharged failures: a payment that is never charged must not drive work for ever, and a client with many payers must not either.
 * Kept in each process's memory: it protects work and gas, not sales.
 */
export function createFailures(limits: FailureLimits, clock: Clock): Failures {
  const payers = createWindows(limits.payer, MINUTE_MS, clock);
  const clients = createClientWindows(limits.client, MINUTE_MS, clock);
  const settlements = createClientWindows(limits.clientSettlements, DAY_MS, clock);
  const ofPayers = createWindows(limits.clientSettlements, DAY_MS, clock);
  // Settlements under way, by client: each may fail yet.
  const open = new Map<string, number>();

  function count(client: string, more: number): void {
    const now = (open.get(client) ?? 0) + more;
    if (now > 0) open.set(client, now);
    else open.delete(client);
  }

  return {
    refusal(payer, client) {
      const forPayer = payers.retryAfterSeconds(payer);
      if (forPayer > 0) return refusal('payer_failures', 'this payer’s', forPayer);
      const forDay = ofPayers.retryAfterSeconds(payer);
      if (forDay > 0) return { code: 'payer_failures', detail: MOVED_NOTHING, retryAfterSeconds: forDay };
      const forClient = clients.retryAfterSeconds(client);
      return forClient > 0 ? refusal('client_failures', 'this client’s', forClient) : null;
    },
    noteUnproven: clients.note,
    note(payer, client) {
      payers.note(payer);
      clients.note(client);
    },
    beginSettlement(payer, client) {
      count(client, 1);
      return (movedNothing) => {
        count(client, -1);
        if (!movedNothing) return;
        settlements.note(client);
        ofPayers.note(payer);
      };
    },
    newPayersAfterSeconds(client) {
      const seconds = settlements.retryAfterSeconds(client);
      // After the first failure those under way count as well: a burst must not pass a limit that is judged by what has ended.
      const isFull = settlements.hasAny(client) && settlements.isReachedWith(client, open.get(client) ?? 0);
      return isFull ? Math.max(1, seconds) : seconds;
    },
  };
}

const MOVED_NOTHING = 'too many of this payer’s settlements moved nothing today';

function refusal(code: FailureRefusal['code'], whose: string, retryAfterSeconds: number): FailureRefusal {
  return { code, detail: `too many of ${whose} calls failed uncharged; wait a little`, retryAfterSeconds };
}

/** Counts a client and its IPv6 site; a site may do what a few clients may. */
function createClientWindows(limit: number, windowMs: number, clock: Clock) {
  const clients = createWindows(limit, windowMs, clock);
  const sites = createWindows(limit * CLIENTS_PER_SITE, windowMs, clock);
  return {
    retryAfterSeconds(client: string): number {
      const site = siteKey(client);
      return Math.max(clients.retryAfterSeconds(client), site === null ? 0 : sites.retryAfterSeconds(site));
    },
    hasAny: (client: string): boolean => clients.count(client) > 0,
    isReachedWith: (client: string, more: number): boolean => limit > 0 && clients.count(client) + more >= limit,
    note(client: string): void {
      clients.note(client);
      const site = siteKey(client);
      if (site !== null) sites.note(site);
    },
  };
}

/** Counts by key, each in a window of its own that begins with the first. */
function createWindows(limit: number, windowMs: number, clock: Clock) {
  const windows = new Map<string, { since: number; failures: number }>();

  return {
    count(key: string): number {
      const window = windows.get(key);
      return window && window.since + windowMs > clock.nowMs() ? window.failures : 0;
    },
    retryAfterSeconds(key: string): number {
      const window = windows.get(key);
      if (limit === 0 || !window || window.failures < limit) return 0;
      return Math.max(0, Math.ceil((window.since + windowMs - clock.nowMs()) / 1000));
    },
    note(key: string): void {
      const now = clock.nowMs();
      const window = windows.get(key);
      if (window && window.since + windowMs > now) {
        window.failures++;
        return;
      }
      windows.delete(key);
      windows.set(key, { since: now, failures: 1 });
      const oldest = windows.keys().next().value;
      if (windows.size > MAX_KEYS && oldest !== undefined) windows.delete(oldest);
    },
  };
}
