import type { Clock } from '../clock.ts';
import { keysOf, siteKey, WINDOW_MS } from './count.ts';

// Shares of something limited, so that a few clients cannot lock out the others: a stock; turns, round robin; events of
// a minute; and the fair choice among waiting items.

/** Such as places in a queue or bytes of a store. */
export interface FairStock {
  /** False when the client would hold more than is left for all others. The `spared` part is not for it. */
  take(client: string, amount?: number, spared?: number): boolean;
  give(client: string, amount?: number): void;
  free(): number;
  held(client: string): number;
  clear(): void;
}

/**
 * A client gets more only while it holds no more than is left: one greedy client gets half, n of them 1/(n+1) each
 * (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998, with alpha = 1). It holds
 * for an IPv6 /64 and its /48. When the total falls, what is held stays.
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
  readonly running: number;
  /** Of all clients. */
  readonly waiting: number;
  readonly waitingPerClient: number;
  /** Of these places, those for tasks with `drawsOnReserve`; by default none. */
  readonly reserved?: { readonly running: number; readonly waiting: number };
}

/** The task was not started: its client, or all together, have the most waiting tasks. */
export class TurnRefused extends Error {
  constructor() {
    super('too many tasks wait for their turn');
    this.name = 'TurnRefused';
  }
}

export interface ClientTurns {
  /**
   * Settles as the task does. Rejects with TurnRefused when it may not wait, and with the signal's reason when that
   * aborts before; a running task must watch the signal itself.
   */
  run<T>(client: string, signal: AbortSignal, task: () => Promise<T>, drawsOnReserve?: boolean): Promise<T>;
}

interface Waiter {
  /** Places that it must leave free. */
  readonly spared: number;
  start(): void;
}

const NO_RESERVE = { running: 0, waiting: 0 };

/** Clients are served round robin. Places are fair stocks; all clients of an IPv6 /48 count as one. */
export function createClientTurns(limits: TurnLimits): ClientTurns {
  const { running, waiting, waitingPerClient, reserved = NO_RESERVE } = limits;
  const places = createFairStock(running);
  const waitingPlaces = createFairStock(waiting);
  const lines = createLines();

  function leave(client: string, waiter: Waiter, wasServed: boolean): void {
    lines.remove(client, waiter, wasServed);
    waitingPlaces.give(client);
  }

  function startNext(): void {
    const next = () => lines.find((client, { spared }) => places.take(client, 1, spared));
    for (let turn = next(); turn; turn = next()) {
      leave(turn.client, turn.waiter, true);
      turn.waiter.start();
    }
  }

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

/** A queue for each client, in round-robin order. */
function createLines() {
  // By site, then by client. The first entry of a map is served next.
  const sites = new Map<string, Map<string, Waiter[]>>();

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
    /** When it was served, its client and its site move to the end. */
    remove(client: string, waiter: Waiter, wasServed: boolean): void {
      const { site, clients, line } = lineOf(client);
      line.splice(line.indexOf(waiter), 1);
      if (wasServed || line.length === 0) clients.delete(client);
      if (line.length > 0) clients.set(client, line);
      if (wasServed || clients.size === 0) sites.delete(site);
      if (clients.size > 0) sites.set(site, clients);
    },
    find(letsIn: (client: string, waiter: Waiter) => boolean): { client: string; waiter: Waiter } | null {
      for (const clients of sites.values()) {
        for (const [client, [waiter]] of clients) if (waiter && letsIn(client, waiter)) return { client, waiter };
      }
      return null;
    },
  };
}

interface FairMinute {
  /** Counts an event: 0. Or counts none: the seconds until the next minute, at least 1. */
  take(client: string): number;
}

/**
 * `total` events in a minute, which its first begins. A client, or an IPv6 /48, gets at most `most`: else each could
 * take half of the rest, and the eighth would find none. Lost at a restart.
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

/** In turns by site, then by network, oldest first: many waiting items get a client no more turns. */
export function takeFairly<T>(waiting: readonly T[], most: number, clientOf: (one: T) => string): T[] {
  if (waiting.length <= most) return [...waiting];
  const siteOf = (one: T): string => siteKey(clientOf(one)) ?? clientOf(one);
  const sites = groupBy(waiting, siteOf).map((ofSite) => inTurns(groupBy(ofSite, clientOf)));
  return inTurns(sites).slice(0, most);
}

function groupBy<T>(waiting: readonly T[], keyOf: (one: T) => string): T[][] {
  return [...Map.groupBy(waiting, keyOf).values()];
}

/** The first of each queue, then the second of each, and so on. */
function inTurns<T>(queues: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...queues.map(({ length }) => length));
  const rounds = Array.from({ length: longest }, (_, round) =>
    queues.flatMap((queue) => queue.slice(round, round + 1)),
  );
  return rounds.flat();
}
