import { createHash } from 'node:crypto';
import { type Counted, type OpenWindows, WINDOW_MS } from '../../lib/minute-windows.ts';
import { NOW } from './database-clock.ts';
import { fixed, statement } from './statement.ts';
import type { Run } from './transaction.ts';

/** How many windows this process counts in between two looks for what may be forgotten. */
const TIDY_EVERY = 1000;

// A count's moment is read once: it is what its own window would end at, less a window. Rows come in one order everywhere, so that instances
// that count the same clients never wait for each other in a ring.
const IS_OPEN = `minute_windows.ends_at > excluded.ends_at - ${WINDOW_MS}`;
const COUNT = statement<{ names: string[]; clients: Uint8Array[]; calls: number[] }>(
  `INSERT INTO minute_windows (name, client, ends_at, calls)
   SELECT name, client, ${NOW} + ${WINDOW_MS}, calls
     FROM ROWS FROM (unnest(@names::text[]), unnest(@clients::bytea[]), unnest(@calls::bigint[])) AS more (name, client, calls)
    ORDER BY name, client
       ON CONFLICT (name, client) DO UPDATE
      SET calls   = excluded.calls + CASE WHEN ${IS_OPEN} THEN minute_windows.calls ELSE 0 END,
          ends_at = CASE WHEN ${IS_OPEN} THEN minute_windows.ends_at ELSE excluded.ends_at END
   RETURNING name, client, calls, ends_at - ${NOW} AS "leftMs"`,
);
// Waits for nobody's row: what is counted just now need not be forgotten.
const FORGET = fixed(`
  DELETE FROM minute_windows WHERE (name, client) IN
    (SELECT name, client FROM minute_windows WHERE ends_at <= (SELECT ${NOW}) FOR UPDATE SKIP LOCKED)`);

type Key = { readonly name: string; readonly client: Buffer };
/** Calls that wait to be counted in one window, in their order. */
type Waiting = Key & { readonly calls: PromiseWithResolvers<Counted>[] };

const keyOf = ({ name, client }: Key): string => `${client.toString('base64')} ${name}`;

/**
 * Minute windows that all instances count in. What waits is counted in one statement, each call with a number of its own, and one statement
 * runs at a time. It is on disk before anybody is let in: shared by all that wait the sync costs little, and without it a crash of the database
 * would let a client begin anew. Where the ledger cannot be asked all counts of a statement reject, and so does what they protect: nothing is
 * sold or claimed without the ledger either. Clients stand there as hashes with `salt`, so that a row names nobody to who has the ledger alone.
 */
export function openPostgresWindows(run: Run, salt: string): OpenWindows {
  let waiting = new Map<string, Waiting>();
  let isRunning = false;
  let sinceTidied = 0;

  function count(name: string, given: string): Promise<Counted> {
    const key = { name, client: createHash('sha256').update(salt).update(given).digest() };
    const id = keyOf(key);
    const window = waiting.get(id) ?? { ...key, calls: [] };
    waiting.set(id, window);
    const call = Promise.withResolvers<Counted>();
    window.calls.push(call);
    if (!isRunning) void drain();
    return call.promise;
  }

  async function drain(): Promise<void> {
    isRunning = true;
    await new Promise(setImmediate);
    while (waiting.size > 0) {
      const batch = waiting;
      waiting = new Map();
      await countAll(batch).catch((error: unknown) => {
        for (const { calls } of batch.values()) for (const { reject } of calls) reject(error);
      });
      sinceTidied += batch.size;
      if (sinceTidied < TIDY_EVERY) continue;
      sinceTidied = 0;
      // What cannot be forgotten now is forgotten the next time.
      await run(FORGET).catch(() => {});
    }
    isRunning = false;
  }

  async function countAll(batch: ReadonlyMap<string, Waiting>): Promise<void> {
    const all = [...batch.values()];
    const [names, clients] = [all.map(({ name }) => name), all.map(({ client }) => client)];
    const calls = all.map((one) => one.calls.length);
    const rows = await run<Key & { calls: number; leftMs: number }>(COUNT({ names, clients, calls }));
    if (rows.length !== all.length) throw new Error('a count returned nothing');
    for (const row of rows) {
      const counted = batch.get(keyOf(row))?.calls ?? [];
      const resetSeconds = Math.max(1, Math.ceil(row.leftMs / 1000));
      for (const [at, { resolve }] of counted.entries()) {
        resolve({ count: row.calls - counted.length + 1 + at, resetSeconds });
      }
    }
  }

  return (name) => ({ count: (client) => count(name, client) });
}
