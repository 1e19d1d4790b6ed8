import { Client, type Pool } from 'pg';
import type { Clock } from '../../lib/clock.ts';
import { createBundle } from '../../lib/tasks.ts';
import type { Notifications } from '../ports/instances.ts';

const [ASK, ENDED] = ['percall_ask', 'percall_tell'];
/** A notification holds less than 8,000 bytes; an id has 36. */
const MOST_IDS = 150;
const RECONNECT_MS = 1000;
/** How often the connection is checked by a statement, and how long its answer may take. A half-open connection reports no error by itself. */
const [LISTENING_MS, ANSWER_MS] = [5000, 2000];

interface NotificationsOptions {
  readonly url: string;
  readonly connectTimeoutMs: number;
  /** The connections that send notifications. */
  readonly pool: Pool;
  readonly clock: Clock;
  readonly log: { warn(detail: object, message: string): void };
}

/**
 * Notifications over LISTEN and NOTIFY, on a connection of its own that is opened again when it breaks. Notifications are lost while it is broken,
 * and always on a database without LISTEN. The receivers then find the rows by polling. Ids of one event loop turn are sent together.
 */
export function openNotifications({ url, connectTimeoutMs, pool, clock, log }: NotificationsOptions): Notifications {
  const listeners = { [ASK]: new Set<(id: string) => void>(), [ENDED]: new Set<(id: string) => void>() };
  const ended = new AbortController();

  async function listen(): Promise<void> {
    const client = new Client({
      connectionString: url,
      connectionTimeoutMillis: connectTimeoutMs,
      query_timeout: ANSWER_MS,
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
        await clock.sleep(LISTENING_MS, over.signal).catch(() => {});
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
      // Lost while the database is unavailable. The receivers also poll the row.
      pool.query('SELECT pg_notify($1, $2)', [channel, text]).catch(() => {});
    }
  });
}
