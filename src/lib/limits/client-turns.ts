import { siteKey } from './client-key.ts';
import { createFairStock } from './fair-stock.ts';

interface TurnLimits {
  /** Tasks that run at the same time. */
  readonly running: number;
  /** Tasks that wait for a place, of all clients together. */
  readonly waiting: number;
  /** Tasks of one client that wait. */
  readonly waitingPerClient: number;
  /** How many of the places, and of those that wait, are there only for tasks that may draw on them; none by default. */
  readonly reserved?: { readonly running: number; readonly waiting: number };
}

/** The task was not started and does not wait: its client, or all clients together, have as many that wait as may. */
export class TurnRefused extends Error {
  constructor() {
    super('too many tasks wait for their turn');
    this.name = 'TurnRefused';
  }
}

/** A number of places at which the tasks of many clients run in turns. */
export interface ClientTurns {
  /**
   * Runs a task when a place is free for its client, and settles as the task does. Rejects without running it: with TurnRefused, at once,
   * when it may not wait; with the signal's reason when that aborts while it waits. The task minds the signal itself once it runs.
   * `drawsOnReserve`: it may have one of the reserved places.
   */
  run<T>(client: string, signal: AbortSignal, task: () => Promise<T>, drawsOnReserve?: boolean): Promise<T>;
}

interface Waiter {
  /** Places that it must leave free. */
  readonly spared: number;
  start(): void;
}

const NO_RESERVE = { running: 0, waiting: 0 };

/** Who waits: a line for each client, the lines in the order of their turns. */
function createLines() {
  // By site, then by client; who comes first in a map has the next turn.
  const sites = new Map<string, Map<string, Waiter[]>>();

  /** The line of a client among those of its site; new ones stand behind all others. */
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
    /** Takes a waiter out of its line. Where it was served, its client and its site go behind all others. */
    remove(client: string, waiter: Waiter, wasServed: boolean): void {
      const { site, clients, line } = lineOf(client);
      line.splice(line.indexOf(waiter), 1);
      if (wasServed || line.length === 0) clients.delete(client);
      if (line.length > 0) clients.set(client, line);
      if (wasServed || clients.size === 0) sites.delete(site);
      if (clients.size > 0) sites.set(site, clients);
    },
    /** The first waiter of a line that is let in; null where none is. */
    find(letsIn: (client: string, waiter: Waiter) => boolean): { client: string; waiter: Waiter } | null {
      for (const clients of sites.values()) {
        for (const [client, [waiter]] of clients) if (waiter && letsIn(client, waiter)) return { client, waiter };
      }
      return null;
    },
  };
}

/**
 * Lets clients take turns, so that the tasks of a few cannot keep the others out:
 * 1. places and waiting room are fair stocks: a client holds no more of them than are left, so the next client finds one at once;
 * 2. where all places are taken the clients that wait are served in turns, each one task, and all of an IPv6 /48 as one client.
 */
export function createClientTurns(limits: TurnLimits): ClientTurns {
  const { running, waiting, waitingPerClient, reserved = NO_RESERVE } = limits;
  const places = createFairStock(running);
  const room = createFairStock(waiting);
  const lines = createLines();

  function leave(client: string, waiter: Waiter, wasServed: boolean): void {
    lines.remove(client, waiter, wasServed);
    room.give(client);
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
    if (room.held(client) >= waitingPerClient || !room.take(client, 1, spared.waiting)) throw new TurnRefused();
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
