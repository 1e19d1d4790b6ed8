import type { Clock } from '../clock.ts';
import { keysOf, siteKey } from './client.ts';
import { WINDOW_MS } from './windows.ts';

// Shares of something limited, so that a few clients cannot lock out the others:
// 1. a stock, of which a client holds no more than is left for all others;
// 2. turns in a number of places, round robin among those who wait;
// 3. events of a minute, which are a stock that is refilled;
// 4. the fair choice among waiting items.

/** A limited stock that clients share, such as places in a queue or bytes of a store. */
export interface FairStock {
  /**
   * Takes an amount, or returns false when the client would hold more than is left for all others.
   * `spared`: a part of the rest that this client may not take, as a reserve for others.
   */
  take(client: string, amount?: number, spared?: number): boolean;
  /** Gives back what was taken. */
  give(client: string, amount?: number): void;
  /** The part that no client holds. */
  free(): number;
  /** What a client holds. */
  held(client: string): number;
  /** Gives back everything. */
  clear(): void;
}

/**
 * Shares a stock so that every new client finds something: a client gets more only while it holds no more than is left.
 * One greedy client gets half, n of them get 1/(n+1) each, and as much is left for the next (dynamic thresholds:
 * Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998, with alpha = 1). It holds for an IPv6 client's
 * /64 and /48. The total may change: what is held then stays, and no more is given until it fits again.
 */
export function createFairStock(total: number | (() => number)): FairStock {
  const size = typeof total === 'number' ? () => total : total;
  const holdings = new Map<string, number>();
  let taken = 0;

  const held = (key: string): number => holdings.get(key) ?? 0;

  function add(key: string, amount: number): void {
    const now = held(key) + amount;
    if (now > 0) holdings.set(key, now);
    else holdings.delete(key);
  }

  return {
    take(client, amount = 1, spared = 0) {
      const keys = keysOf(client);
      const free = size() - taken - spared;
      if (keys.some((key) => held(key) + amount > free)) return false;
      taken += amount;
      for (const key of keys) add(key, amount);
      return true;
    },
    give(client, amount = 1) {
      const given = Math.min(amount, held(client));
      taken -= given;
      for (const key of keysOf(client)) add(key, -given);
    },
    free: () => Math.max(0, size() - taken),
    held,
    clear() {
      holdings.clear();
      taken = 0;
    },
  };
}

interface TurnLimits {
  /** Tasks that run at the same time. */
  readonly running: number;
  /** Tasks of all clients that wait for a place. */
  readonly waiting: number;
  /** Tasks of one client that wait. */
  readonly waitingPerClient: number;
  /** Of the running and the waiting places, those for tasks with `drawsOnReserve`; by default none. */
  readonly reserved?: { readonly running: number; readonly waiting: number };
}

/** The task was not started: its client, or all clients together, have the most waiting tasks. */
export class TurnRefused extends Error {
  constructor() {
    super('too many tasks wait for their turn');
    this.name = 'TurnRefused';
  }
}

export interface ClientTurns {
  /**
   * Runs a task when a place is free for its client, and settles as the task does. Rejects at once with TurnRefused
   * when it may not wait, and with the signal's reason when that aborts first; it is then not run. A running task must
   * watch the signal itself. With `drawsOnReserve` it may use a reserved place.
   */
  run<T>(client: string, signal: AbortSignal, task: () => Promise<T>, drawsOnReserve?: boolean): Promise<T>;
}

interface Waiter {
  /** Places that it must leave free. */
  readonly spared: number;
  start(): void;
}

const NO_RESERVE = { running: 0, waiting: 0 };

/**
 * Serves clients round robin:
 * 1. running and waiting places are fair stocks, so the next client finds one at once;
 * 2. when all places are taken, waiting clients are served one task each; all clients of an IPv6 /48 count as one.
 */
export function createClientTurns(limits: TurnLimits): ClientTurns {
  const { running, waiting, waitingPerClient, reserved = NO_RESERVE } = limits;
  const places = createFairStock(running);
  const waitingPlaces = createFairStock(waiting);
  const lines = createLines();

  function leave(client: string, waiter: Waiter, wasServed: boolean): void {
    lines.remove(client, waiter, wasServed);
    waitingPlaces.give(client);
  }

  /** Starts every waiter that may have a place now. */
  function startNext(): void {
    const next = () => lines.find((client, { spared }) => places.take(client, 1, spared));
    for (let turn = next(); turn; turn = next()) {
      leave(turn.client, turn.waiter, true);
      turn.waiter.start();
    }
  }

  /** Resolves when a place was taken for the client. */
  async function waitForPlace(client: string, signal: AbortSignal, spared: typeof reserved): Promise<void> {
    if (waitingPlaces.held(client) >= waitingPerClient || !waitingPlaces.take(client, 1, spared.waiting))
      throw new TurnRefused();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const abort = (): void => {
      leave(client, waiter, false);
      reject(signal.reason);
    };
    const waiter = {
      spared: spared.running,
      start: (): void => {
        signal.removeEventListener('abort', abort);
        resolve();
      },
    };
    signal.addEventListener('abort', abort);
    lines.add(client, waiter);
    await promise;
  }

  return {
    async run(client, signal, task, drawsOnReserve = false) {
      signal.throwIfAborted();
      const spared = drawsOnReserve ? NO_RESERVE : reserved;
      if (!places.take(client, 1, spared.running)) await waitForPlace(client, signal, spared);
      try {
        return await task();
      } finally {
        places.give(client);
        startNext();
      }
    },
  };
}

/** The waiting tasks: a queue for each client, and the queues in round-robin order. */
function createLines() {
  // By site, then by client. The first entry of a map is served next.
  const sites = new Map<string, Map<string, Waiter[]>>();

  /** A new queue is added at the end. */
  function lineOf(client: string) {
    const site = siteKey(client) ?? client;
    const clients = sites.get(site) ?? new Map<string, Waiter[]>();
    const line = clients.get(client) ?? [];
    sites.set(site, clients);
    clients.set(client, line);
    return { site, clients, line };
  }

  return {
    add: (client: string, waiter: Waiter): void => void lineOf(client).line.push(waiter),
    /** Removes a waiter. When it was served, its client and its site move to the end. */
    remove(client: string, waiter: Waiter, wasServed: boolean): void {
      const { site, clients, line } = lineOf(client);
      line.splice(line.indexOf(waiter), 1);
      if (wasServed || line.length === 0) clients.delete(client);
      if (line.length > 0) clients.set(client, line);
      if (wasServed || clients.size === 0) sites.delete(site);
      if (clients.size > 0) sites.set(site, clients);
    },
    /** The first waiter that `letsIn` accepts; null without one. */
    find(letsIn: (client: string, waiter: Waiter) => boolean): { client: string; waiter: Waiter } | null {
      for (const clients of sites.values()) {
        for (const [client, [waiter]] of clients) if (waiter && letsIn(client, waiter)) return { client, waiter };
      }
      return null;
    },
  };
}

interface FairMinute {
  /** Counts an event and returns 0; or counts nothing and returns the seconds until the next minute, at least 1. */
  take(client: string): number;
}

/**
 * Allows at most `total` events a minute, as a fair stock that is refilled when the minute ends. The minute is one for
 * all clients, and begins with the first event after the last one. A client, or an IPv6 /48, gets at most `most`: else
 * each could take half of the rest, and the eighth would find none. The counts are in memory and lost at a restart.
 */
export function createFairMinute(total: number, clock: Clock, most = total): FairMinute {
  const stock = createFairStock(total);
  let endsAtMs = Number.NEGATIVE_INFINITY;

  return {
    take(client) {
      const now = clock.nowMs();
      if (now >= endsAtMs) {
        stock.clear();
        endsAtMs = now + WINDOW_MS;
      }
      const mayTake = keysOf(client).every((key) => stock.held(key) < most);
      return mayTake && stock.take(client) ? 0 : Math.max(1, Math.ceil((endsAtMs - now) / 1000));
    },
  };
}

/**
 * The first `most` of `waiting`, which is in the order of arrival: one item of each site in a round, sites in the order
 * of their oldest item, and the networks of a site likewise. Many waiting items get a client no more turns than one.
 */
export function takeFairly<T>(waiting: readonly T[], most: number, clientOf: (one: T) => string): T[] {
  if (waiting.length <= most) return [...waiting];
  const siteOf = (one: T): string => siteKey(clientOf(one)) ?? clientOf(one);
  const sites = groupBy(waiting, siteOf).map((ofSite) => inTurns(groupBy(ofSite, clientOf)));
  return inTurns(sites).slice(0, most);
}

function groupBy<T>(waiting: readonly T[], keyOf: (one: T) => string): T[][] {
  return [...Map.groupBy(waiting, keyOf).values()];
}

/** The first of each queue, then the second of each, to the end. */
function inTurns<T>(queues: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...queues.map(({ length }) => length));
  const rounds = Array.from({ length: longest }, (_, round) =>
    queues.flatMap((queue) => queue.slice(round, round + 1)),
  );
  return rounds.flat();
}
