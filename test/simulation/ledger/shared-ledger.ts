import { join } from 'node:path';
import { currentOwner, type Owner, runAs, WORLD } from '../engine/owner.ts';
import type { Random } from '../engine/random.ts';
import type { Scheduler } from '../engine/scheduler.ts';
import { type InstancesShare, type LedgerStores, ledgerParts } from '../seam.ts';
import { createLease } from './lease.ts';
import { createPace, type LedgerMood, type Pace } from './pace.ts';

/** Longer than a busy database takes: the client's own limit. */
const TIMEOUT_MS = 3000;
const WINDOW_MS = 60_000;

/** A ledger that several instances share, in place of a database server: a real SQLite file, a connection for each instance, and a network between. */
export interface SharedLedger {
  readonly file: string;
  readonly mood: LedgerMood;
  openStores(): Promise<LedgerStores>;
  openShare(): InstancesShare;
  close(): void;
}

interface SharedLedgerOptions {
  readonly folder: string;
  readonly scheduler: Scheduler;
  readonly random: Random;
}

export function createSharedLedger({ folder, scheduler, random }: SharedLedgerOptions): SharedLedger {
  const mood: LedgerMood = { how: 'well', percent: 100 };
  const pace = createPace({
    scheduler,
    random,
    mood,
    timeoutMs: TIMEOUT_MS,
    failure: () => parts?.unavailable() ?? new Error('no ledger'),
  });
  const served = serveLedger(join(folder, 'shared-ledger.db'), pace);
  return { ...served, mood };
}

let parts: Awaited<ReturnType<typeof ledgerParts>> | null = null;

/** The same over any pace. */
export function serveLedger(file: string, pace: Pace): Omit<SharedLedger, 'mood'> {
  const lease = createLease(pace.nowMs);
  const windows = new Map<string, { count: number; endsAtMs: number }>();
  const hears = { asked: new Map<(id: string) => void, Owner>(), reported: new Map<(id: string) => void, Owner>() };
  const opened: LedgerStores[] = [];

  const ask = <T>(work: () => Promise<T>, inOrder = true): Promise<T> => pace.ask(() => runAs(WORLD, work), inOrder);

  /** Every method of a store over the network. */
  function remote<S extends object>(store: S): S {
    const methods = Object.entries(store).map(([name, method]) => {
      if (typeof method !== 'function') return [name, method];
      const call = method as (...args: unknown[]) => Promise<unknown>;
      return [name, (...args: unknown[]) => ask(() => call(...args), !READS.test(name))];
    });
    return Object.fromEntries(methods) as S;
  }

  function speak(listeners: Map<(id: string) => void, Owner>): (id: string) => void {
    return (id) => {
      for (const [hear, owner] of listeners) pace.tell(owner, () => hear(id));
    };
  }

  async function count(key: string): Promise<{ count: number; resetSeconds: number }> {
    const now = pace.nowMs();
    const known = windows.get(key);
    const window = known && known.endsAtMs > now ? known : { count: 0, endsAtMs: now + WINDOW_MS };
    window.count += 1;
    windows.set(key, window);
    return { count: window.count, resetSeconds: Math.max(1, Math.ceil((window.endsAtMs - now) / 1000)) };
  }

  async function takeBack(key: string): Promise<void> {
    const window = windows.get(key);
    if (window && window.endsAtMs > pace.nowMs() && window.count > 0) window.count -= 1;
  }

  return {
    file,
    openStores: async () => {
      if (!parts?.hold()) parts = await ledgerParts();
      const stores = runAs(WORLD, () => (parts as NonNullable<typeof parts>).openSqliteStores(file));
      opened.push(stores);
      const { payments, channels, lightning, transfers, spending, selfTests, market, catalogue, settled, keys } =
        stores;
      const { providers, books, refusals } = stores;
      const fenced: typeof payments = {
        ...payments,
        noteBroadcast: (entries, where, fencingToken) =>
          lease.under(fencingToken, () => payments.noteBroadcast(entries, where), new Set<string>()),
      };
      const fencedChannels: typeof channels = {
        ...channels,
        noteBroadcast: (entries, fencingToken) =>
          lease.under(fencingToken, () => channels.noteBroadcast(entries), new Set<string>()),
      };
      let closed: Promise<void> | null = null;
      const close = () => {
        closed ??= ask(() => stores.close());
        return closed;
      };
      return {
        payments: { ...remote(fenced), close },
        channels: remote(fencedChannels),
        lightning: remote(lightning),
        transfers: remote(transfers),
        keys: remote(keys),
        providers: remote(providers),
        books: remote(books),
        refusals: remote(refusals),
        spending: remote(spending),
        selfTests: remote(selfTests),
        market: remote(market),
        catalogue: remote(catalogue),
        settled: remote(settled),
        ping: () => ask(stores.ping, false),
        syncFailed: stores.syncFailed,
        close,
      };
    },
    openShare: () => {
      const mine: ((id: string) => void)[] = [];
      const listen = (listeners: Map<(id: string) => void, Owner>) => (listener: (id: string) => void) => {
        listeners.set(listener, currentOwner());
        mine.push(listener);
      };
      const leave = async () => {
        for (const listener of mine) for (const listeners of Object.values(hears)) listeners.delete(listener);
      };
      return {
        store: remote(lease.store),
        notifications: {
          ask: speak(hears.asked),
          reportEnded: speak(hears.reported),
          onAsked: listen(hears.asked),
          onEnded: listen(hears.reported),
          close: leave,
        },
        windows: (name) => ({
          count: (client) => ask(() => count(`${name} ${client}`)),
          takeBack: (client) => ask(() => takeBack(`${name} ${client}`)),
        }),
        nowMs: () => ask(async () => pace.nowMs()),
        close: leave,
      };
    },
    close: () => {
      for (const stores of opened) void stores.close().catch(() => {});
    },
  };
}

/** What only reads goes over connections of its own, past the writes that wait. */
const READS =
  /^(find|get|list|count|hasSettled|recent|lastChecked|changesSince|offeredBytes|sumOfOpen|replyBytes|bodyBytes|answer$|keptReply|ping|due|batchOf|paymentsIn|spentOn|settledBetween|load|readAt|facilitatorCounts|clientCount|totals|operation$|openOperations|lastRefund|checked$|entries$|since$)/;

/** The ledger of the seed that runs now: what the replaced PostgreSQL adapters open. */
let current: SharedLedger | null = null;

export function useSharedLedger(given: SharedLedger | null): void {
  current = given;
}

export function currentSharedLedger(): SharedLedger {
  if (!current) throw new Error('a shared ledger was opened while no simulated world was there');
  return current;
}
