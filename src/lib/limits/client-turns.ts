import { siteKey } from './client-key.ts';
import { createFairStock } from './fair-stock.ts';

interface TurnLimits {
  /** Tasks that run at the same time. */
  readonly running: number;
  /** Tasks that wait for a place, of all clients together. */
  readonly waiting: number;
  /** Tasks of one client that wait. */
  readonly waitingPerClient: number;
  /** How many of the running and of the waiting places are reserved for tasks with `drawsOnReserve`; none by default. */
  readonly reserved?: { readonly running: number; readonly waiting: number };
}

/** The task was not started and does not wait, because its client, or all clients together, have the maximum of waiting tasks. */
export class TurnRefused extends Error {
  constructor() {
    super('too many tasks wait for their turn');
    this.name = 'TurnRefused';
  }
}

/** Runs the tasks of many clients in a limited number of places, round robin. */
export interface ClientTurns {
  /**
   * Runs a task when a place is free for its client, and settles as the task does. Rejects at once with TurnRefused when the task may not wait, and
   * with the signal's reason when that aborts while it waits; the task is then not run. A running task must watch the signal itself.
   * `drawsOnReserve`: the task may use a reserved place.
   */
  run<T>(client: string, signal: AbortSignal, task: () => Promise<T>, drawsOnReserve?: boolean): Promise<T>;
}

interface Waiter {
  /** Places that this task must leave free. */
  readonly spared: number;
  start(): void;
}

const NO_RESERVE = { running: 0, waiting: 0 };

/** The waiting tasks: a queue for each client, and the queues in round-robin order. */
function createLines() {
  // By site, then by client. The first entry of a map is served next.
  const sites = new Map<string, Map<string, Waiter[]>>();

  /** The queue of a client among those of its site. A new queue is added at the end. */
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
    /** Removes a waiter from its queue. After it was served, its client and its site move to the end. */
    remove(client: string, waiter: Waiter, wasServed: boolean): void {
      const { site, clients, line } = lineOf(client);
      line.splice(line.indexOf(waiter), 1);
      if (wasServed || line.length === 0) clients.delete(client);
      if (line.length > 0) clients.set(client, line);
      if (wasServed || clients.size === 0) sites.delete(site);
      if (clients.size > 0) sites.set(site, clients);
    },
    /** The first waiter that `letsIn` accepts; null when it accepts none. */
    find(letsIn: (client: string, waiter: Waiter) => boolean): { client: string; waiter: Waiter } | null {
      for (const clients of sites.values()) {
        for (const [client, [waiter]] of clients) if (waiter && letsIn(client, waiter)) return { client, waiter };
      }
      return null;
    },
  };
}

/**
 * Serves clients round robin, so that the tasks of a few clients cannot lock out the others:
 * 1. running and waiting places are fair stocks: a client holds no more of them than are left, so the next client finds one at once;
 * 2. when all places are taken, waiting clients are served round robin, one task each; all clients of an IPv6 /48 count as one.
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
