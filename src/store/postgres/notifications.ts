import { Client, type Pool } from 'pg';
import { createBundle } from '../../lib/bundle.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Notifications } from '../ports/instances.ts';

const [ASK, TELL] = ['percall_ask', 'percall_tell'];
/** A notification holds less than 8,000 bytes; an id has 36. */
const MOST_IDS = 150;
const RECONNECT_MS = 1000;
/** How often the connection is asked whether it still hears, and how long an answer may take: one that went deaf tells nobody. */
const [LISTENING_MS, ANSWER_MS] = [5000, 2000];

interface NotificationsOptions {
  readonly url: string;
  readonly connectTimeoutMs: number;
  /** Over which notifications are sent. */
  readonly pool: Pool;
  readonly clock: Clock;
  readonly log: { warn(detail: object, message: string): void };
}

/**
 * Words over LISTEN and NOTIFY, on a connection of their own that is opened anew when it breaks. What is said while it is broken is lost, and
 * on a database without them everything is: then the rows are found by looking. Ids of one turn of the event loop travel together.
 */
export function openNotifications({ url, connectTimeoutMs, pool, clock, log }: NotificationsOptions): Notifications {
  const listeners = { [ASK]: new Set<(id: string) => void>(), [TELL]: new Set<(id: string) => void>() };
  const ended = new AbortController();

  async function listen(): Promise<void> {
    const client = new Client({
      ...{
        connectionString: url,
        connectionTimeoutMillis: connectTimeoutMs,
        query_timeout: ANSWER_MS,
        keepAlive: true,
      },
      application_name: 'percall notifications',
    });
    const over = new AbortController();
    const end = () => over.abort();
    client.on('error', end);
    client.on('end', end);
    client.on('notification', ({ channel, payload }) => {
      for (const id of payload?.split(',') ?? []) for (const hear of listeners[channel] ?? []) hear(id);
    });
    ended.signal.addEventListener('abort', end);
    try {
      await client.connect();
      await client.query(`LISTEN ${ASK}`);
      await client.query(`LISTEN ${TELL}`);
      while (!over.signal.aborted) {
        await clock.sleep(LISTENING_MS, over.signal).catch(() => {});
        if (!over.signal.aborted) await client.query('SELECT 1');
      }
    } finally {
      ended.signal.removeEventListener('abort', end);
      // Not waited for: nobody answers on a connection that is deaf.
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
    ask: speaker(pool, ASK),
    reportEnded: speaker(pool, TELL),
    onAsked: (listener) => void listeners[ASK]?.add(listener),
    onEnded: (listener) => void listeners[TELL]?.add(listener),
    close: async () => {
      ended.abort();
      await running;
    },
  };
}

function speaker(pool: Pool, channel: string) {
  return createBundle<string>((ids) => {
    for (let at = 0; at < ids.length; at += MOST_IDS) {
      const text = ids.slice(at, at + MOST_IDS).join(',');
      // Lost where the database is away: whoever waits looks at the row.
      pool.query('SELECT pg_notify($1, $2)', [channel, text]).catch(() => {});
    }
  });
}
