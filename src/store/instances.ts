import { createHash } from 'node:crypto';
import { Client, type Pool } from 'pg';
import type { Common } from '../lib/common.ts';
import type { OpenWindows } from '../lib/limits/count.ts';
import { createBundle } from '../lib/tasks.ts';
import {
  createRetry,
  createRun,
  createTransact,
  fixed,
  openPools,
  statement,
  type Transact,
} from './db/connections.ts';
import { NOW } from './db/sql.ts';
import { openPostgresWindows } from './minute-windows.ts';
import type { InstancesStore, Notifications } from './ports/instances.ts';

// What the instances over one ledger on PostgreSQL tell each other: heartbeats, which also renew or take the leader's
// lease; notifications of payments; the windows of their limits (minute-windows.ts). Times are the database's own.

/** The lease must not end while a heartbeat waits. */
const HEARTBEAT_TIMEOUT_MS = 1500;
/** Of each pool. */
const POOL_SIZE = 5;
// Instances write one row in common, the lease, and one statement decides it: no stricter level is needed.
const BEGIN = fixed('BEGIN ISOLATION LEVEL READ COMMITTED');
const DATABASE_NOW = fixed('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now');

export interface InstancesShare {
  readonly store: InstancesStore;
  readonly notifications: Notifications;
  readonly windows: OpenWindows;
  /** The database's time, in Unix milliseconds. */
  nowMs(): Promise<number>;
  close(): Promise<void>;
}

/** Opens connections of its own, so that no burst of sales delays a heartbeat. */
export function openInstances({ clock, log }: Common, url: string, connectTimeoutMs: number): InstancesShare {
  const limits = {
    url,
    size: POOL_SIZE,
    connectTimeoutMs: Math.min(connectTimeoutMs, HEARTBEAT_TIMEOUT_MS),
    statementTimeoutMs: HEARTBEAT_TIMEOUT_MS,
  };
  // Counts have their own pool, because clients decide how fast they come.
  const heartbeats = openPools({ ...limits, applicationName: 'percall instances' });
  const counts = openPools({ ...limits, applicationName: 'percall limits' });
  const retry = createRetry(clock);
  const notifications = openNotifications({ clock, log }, url, connectTimeoutMs, heartbeats.reads);
  // A secret that every instance knows and no row holds.
  const salt = createHash('sha256').update(url).digest('hex');
  return {
    store: createInstancesStore(createTransact(heartbeats.writes, retry, BEGIN)),
    notifications,
    windows: openPostgresWindows(createRun(counts.writes, retry), salt),
    nowMs: async () => (await heartbeats.read<{ now: number }>(DATABASE_NOW))[0]?.now ?? Number.NaN,
    close: async () => {
      await notifications.close();
      await Promise.all([heartbeats.close(), counts.close()]);
    },
  };
}

// --- Heartbeats and the lease

const NOTE_SEEN = statement<{ bootId: string }>(
  `INSERT INTO instances (boot_id, seen_at) VALUES (@bootId, ${NOW})
   ON CONFLICT (boot_id) DO UPDATE SET seen_at = ${NOW}`,
);
const RENEW = statement<{ bootId: string; leaseMs: number }>(
  `UPDATE instance_lease SET until = ${NOW} + @leaseMs::BIGINT WHERE id = 1 AND holder = @bootId RETURNING fence`,
);
// A transaction that notes a broadcast locks the row's key until the note is on disk (`FOR KEY SHARE`). A renewal keeps
// the key and does not wait. A heartbeat goes on without a locked lease.
const TAKE = statement<{ bootId: string; leaseMs: number }>(
  `UPDATE instance_lease SET fence = fence + 1, said = NULL, holder = @bootId, until = ${NOW} + @leaseMs::BIGINT
    WHERE id = (SELECT id FROM instance_lease WHERE id = 1 AND until <= ${NOW} FOR UPDATE SKIP LOCKED)
    RETURNING fence`,
);
const REPORTED = fixed(`SELECT said FROM instance_lease WHERE id = 1 AND until > ${NOW}`);
const ALL = statement<{ livingMs: number }>(
  `SELECT boot_id AS "bootId", seen_at > ${NOW} - @livingMs::BIGINT AS "isLiving" FROM instances`,
);
const REPORT = statement<{ fencingToken: number; text: string }>(
  `UPDATE instance_lease SET said = @text WHERE id = 1 AND fence = @fencingToken AND until > ${NOW} RETURNING id`,
);
const MARK_DEAD = statement<{ bootId: string }>('UPDATE instances SET seen_at = 0 WHERE boot_id = @bootId');
const FORGET = statement<{ bootId: string }>('DELETE FROM instances WHERE boot_id = @bootId');
const RESIGN = statement<{ bootId: string }>(
  'UPDATE instance_lease SET until = 0, said = NULL WHERE id = 1 AND holder = @bootId',
);

function createInstancesStore(transact: Transact): InstancesStore {
  return {
    heartbeat: (bootId, leaseMs, livingMs) =>
      transact(async (run) => {
        await run(NOTE_SEEN({ bootId }));
        const [own] = await run<{ fence: number }>(RENEW({ bootId, leaseMs }));
        const [lease] = own ? [own] : await run<{ fence: number }>(TAKE({ bootId, leaseMs }));
        const [leader] = await run<{ said: string | null }>(REPORTED);
        const all = await run<{ bootId: string; isLiving: boolean }>(ALL({ livingMs }));
        const named = (living: boolean) => all.filter(({ isLiving }) => isLiving === living).map((one) => one.bootId);
        return {
          fencingToken: lease?.fence ?? null,
          living: named(true),
          dead: named(false),
          reported: leader?.said ?? null,
        };
      }),
    report: (fencingToken, text) => transact(async (run) => (await run(REPORT({ fencingToken, text }))).length === 1),
    markDead: (bootId) =>
      transact(async (run) => {
        await run(RESIGN({ bootId }));
        await run(MARK_DEAD({ bootId }));
      }),
    forget: (bootId) => transact(async (run) => void (await run(FORGET({ bootId })))),
    leave: (bootId) =>
      transact(async (run) => {
        await run(RESIGN({ bootId }));
        await run(FORGET({ bootId }));
      }),
  };
}

// --- Notifications

const [ASK, ENDED] = ['percall_ask', 'percall_tell'];
/** A notification holds less than 8,000 bytes; an id has 36. */
const MOST_IDS = 150;
const RECONNECT_MS = 1000;
/** A half-open connection reports no error: a statement checks it so often, and may take so long. */
const [CHECK_MS, CHECK_ANSWER_MS] = [5000, 2000];

/**
 * Listens on a connection of its own, which is opened again when it breaks. Without one, or without LISTEN,
 * notifications are lost, and the receivers find the rows by polling.
 */
function openNotifications({ clock, log }: Common, url: string, connectTimeoutMs: number, pool: Pool): Notifications {
  const listeners = { [ASK]: new Set<(id: string) => void>(), [ENDED]: new Set<(id: string) => void>() };
  const ended = new AbortController();

  async function listen(): Promise<void> {
    const client = new Client({
      connectionString: url,
      connectionTimeoutMillis: connectTimeoutMs,
      query_timeout: CHECK_ANSWER_MS,
      keepAlive: true,
      application_name: 'percall notifications',
    });
    const over = new AbortController();
    const end = () => over.abort();
    client.on('error', end);
    client.on('end', end);
    client.on('notification', ({ channel, payload }) => {
      for (const id of payload?.split(',') ?? []) for (const listener of listeners[channel] ?? []) listener(id);
    });
    ended.signal.addEventListener('abort', end);
    try {
      await client.connect();
      await client.query(`LISTEN ${ASK}`);
      await client.query(`LISTEN ${ENDED}`);
      while (!over.signal.aborted) {
        await clock.sleep(CHECK_MS, over.signal).catch(() => {});
        if (!over.signal.aborted) await client.query('SELECT 1');
      }
    } finally {
      ended.signal.removeEventListener('abort', end);
      // Not awaited, because a half-open connection never answers.
      void client.end().catch(() => {});
    }
  }

  async function keepListening(): Promise<void> {
    while (!ended.signal.aborted) {
      await listen().catch((err: unknown) => log.warn({ err }, 'no notifications come from other instances'));
      await clock.sleep(RECONNECT_MS, ended.signal).catch(() => {});
    }
  }

  const running = keepListening();
  return {
    ask: createSender(pool, ASK),
    reportEnded: createSender(pool, ENDED),
    onAsked: (listener) => void listeners[ASK]?.add(listener),
    onEnded: (listener) => void listeners[ENDED]?.add(listener),
    close: async () => {
      ended.abort();
      await running;
    },
  };
}

function createSender(pool: Pool, channel: string) {
  return createBundle<string>((ids) => {
    for (let at = 0; at < ids.length; at += MOST_IDS) {
      const text = ids.slice(at, at + MOST_IDS).join(',');
      // Lost while the database is away.
      pool.query('SELECT pg_notify($1, $2)', [channel, text]).catch(() => {});
    }
  });
}
