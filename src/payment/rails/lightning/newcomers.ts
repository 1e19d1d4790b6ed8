import type { Clock } from '../../../lib/clock.ts';
import { CLIENTS_PER_SITE, keysOf, siteKey } from '../../../lib/limits/client-key.ts';
import { createMinuteWindows, MAX_CLIENTS } from '../../../lib/limits/minute-windows.ts';
import { setNewest } from '../../../lib/set-newest.ts';

/** How long a client that got an offer is no newcomer: an invoice lives for five minutes, and one that is paid makes it a buyer. */
const OFFERED_MS = 600_000;
/** A client asks rarely while no more than this many of its requests are remembered. One is forgotten every FORGET_MS. */
const RARE = 3;
/**
 * In milliseconds. A client that waits the two seconds of Retry-After before each try asks rarely for four tries. One that asks each second does not.
 */
const FORGET_MS = 5000;
/** The most that is remembered: after 50 s of quiet, (MOST − 2) × FORGET_MS, any client asks rarely again. */
const MOST = 12;

/** The newcomers: clients that have asked rarely of late and have had no offer in the last ten minutes. */
export interface Newcomers {
  /** Notes that a client asks for an offer, and returns whether it is a newcomer. */
  asks(client: string): boolean;
  /** Takes back one counted request of a client. The service was short of something, and asked the client to try again. */
  forgive(client: string): void;
  /** Notes that a client got an offer, or that its handler ran without an answer. */
  offered(client: string): void;
}

/**
 * Separates a client that comes for the first time from clients that keep asking. So a flood of many addresses cannot keep it out: each address is
 * a newcomer once, until its first handler has run. An IPv6 /48 may ask as often as four clients. Kept in this process's memory and bounded. After
 * a restart every client is a newcomer again.
 */
export function createNewcomers(clock: Clock, maxClients = MAX_CLIENTS): Newcomers {
  const offers = createMinuteWindows(clock, maxClients, OFFERED_MS);
  // How often each client and site has asked, less what is forgotten by now; the longest silent first.
  const asked = new Map<string, { readonly level: number; readonly atMs: number }>();

  /** Whether a key has asked rarely, this time included. */
  function isRare(key: string, times: number): boolean {
    const now = clock.nowMs();
    const { level, atMs } = asked.get(key) ?? { level: 0, atMs: now };
    const before = Math.max(0, level - Math.max(0, now - atMs) / FORGET_MS);
    setNewest(asked, key, { level: Math.min(MOST * times, before + 1), atMs: now }, maxClients);
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
        const known = asked.get(key);
        if (known) asked.set(key, { ...known, level: Math.max(0, known.level - 1) });
      }
    },
    offered(client) {
      for (const key of keysOf(client)) offers.count(key);
    },
  };
}
