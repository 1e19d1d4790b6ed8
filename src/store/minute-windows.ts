import { createHash } from 'node:crypto';
import { type Counted, type OpenWindows, WINDOW_MS } from '../lib/limits/count.ts';
import { fixed, type Run, statement } from './db/connections.ts';
import { NOW } from './db/sql.ts';

// Minute windows that all instances count in.
// 1. Calls wait for the end of the event loop turn, or of the statement before theirs.
// 2. One statement counts all that wait, and gives each its own number. Calls are taken back first.
// 3. A count is on disk before its call is admitted: no crash of the database lets a client start from zero.
// 4. When the ledger does not answer, the counts reject, and so do their calls.

/** Expired windows are deleted after so many counted ones. */
const TIDY_EVERY = 1000;

interface Values {
  readonly names: readonly string[];
  readonly clients: readonly Uint8Array[];
  readonly calls: readonly number[];
}
const GIVEN = `ROWS FROM (unnest(@names::text[]), unnest(@clients::bytea[]), unnest(@calls::bigint[]))
            AS more (name, client, calls)`;
// Time is read once, as a new window's end less a window. All instances write rows in one order, against deadlocks.
const IS_OPEN = `minute_windows.ends_at > excluded.ends_at - ${WINDOW_MS}`;
const COUNT = statement<Values>(
  `INSERT INTO minute_windows (name, client, ends_at, calls)
   SELECT name, client, ${NOW} + ${WINDOW_MS}, calls
     FROM ${GIVEN}
    ORDER BY name, client
       ON CONFLICT (name, client) DO UPDATE
      SET calls   = excluded.calls + CASE WHEN ${IS_OPEN} THEN minute_windows.calls ELSE 0 END,
          ends_at = CASE WHEN ${IS_OPEN} THEN minute_windows.ends_at ELSE excluded.ends_at END
   RETURNING name, client, calls, ends_at - ${NOW} AS "leftMs"`,
);
const TAKE_BACK = statement<Values>(
  `UPDATE minute_windows SET calls = greatest(0, minute_windows.calls - back.calls)
     FROM (SELECT minute_windows.name, minute_windows.client, more.calls
             FROM minute_windows
             JOIN ${GIVEN} ON more.name = minute_windows.name AND more.client = minute_windows.client
            WHERE minute_windows.ends_at > ${NOW}
            ORDER BY minute_windows.name, minute_windows.client
              FOR UPDATE OF minute_windows) AS back
    WHERE minute_windows.name = back.name AND minute_windows.client = back.client AND minute_windows.ends_at > ${NOW}`,
);
// A locked row is being counted, and need not be deleted now.
const FORGET = fixed(`
  DELETE FROM minute_windows WHERE (name, client) IN
    (SELECT name, client FROM minute_windows WHERE ends_at <= (SELECT ${NOW}) FOR UPDATE SKIP LOCKED)`);

type Key = { readonly name: string; readonly client: Buffer };
/** Calls that wait to be counted or taken back in one window, in their order. */
type Counting<T> = Key & { readonly calls: PromiseWithResolvers<T>[] };
type Batch<T> = ReadonlyMap<string, Counting<T>>;

const keyOf = ({ name, client }: Key): string => `${client.toString('base64')} ${name}`;

/** Clients are stored as hashes with `salt`: the ledger alone identifies none. */
export function openPostgresWindows(run: Run, salt: string): OpenWindows {
  let counts = new Map<string, Counting<Counted>>();
  let backs = new Map<string, Counting<void>>();
  let isRunning = false;
  let sinceTidied = 0;

  function enqueue<T>(waiting: Map<string, Counting<T>>, name: string, given: string): Promise<T> {
    const key = { name, client: createHash('sha256').update(salt).update(given).digest() };
    const id = keyOf(key);
    const window = waiting.get(id) ?? { ...key, calls: [] };
    waiting.set(id, window);
    const call = Promise.withResolvers<T>();
    window.calls.push(call);
    if (!isRunning) void drain();
    return call.promise;
  }

  async function drain(): Promise<void> {
    isRunning = true;
    await new Promise(setImmediate);
    while (counts.size + backs.size > 0) {
      const [taken, counted] = [backs, counts];
      [backs, counts] = [new Map(), new Map()];
      if (taken.size > 0) await takeAllBack(taken).catch(rejectAll(taken));
      if (counted.size > 0) await countAll(counted).catch(rejectAll(counted));
      sinceTidied += counted.size;
      if (sinceTidied < TIDY_EVERY) continue;
      sinceTidied = 0;
      // The next deletion makes up for a failed one.
      await run(FORGET).catch(() => {});
    }
    isRunning = false;
  }

  async function countAll(batch: Batch<Counted>): Promise<void> {
    const rows = await run<Key & { calls: number; leftMs: number }>(COUNT(valuesOf(batch)));
    if (rows.length !== batch.size) throw new Error('a count returned nothing');
    for (const row of rows) {
      const counted = batch.get(keyOf(row))?.calls ?? [];
      const resetSeconds = Math.max(1, Math.ceil(row.leftMs / 1000));
      for (const [at, { resolve }] of counted.entries()) {
        resolve({ count: row.calls - counted.length + 1 + at, resetSeconds });
      }
    }
  }

  async function takeAllBack(batch: Batch<void>): Promise<void> {
    await run(TAKE_BACK(valuesOf(batch)));
    for (const { calls } of batch.values()) for (const { resolve } of calls) resolve();
  }

  return (name) => ({
    count: (client) => enqueue(counts, name, client),
    takeBack: (client) => enqueue(backs, name, client),
  });
}

function valuesOf(batch: ReadonlyMap<string, Key & { readonly calls: readonly unknown[] }>): Values {
  const all = [...batch.values()];
  return {
    names: all.map(({ name }) => name),
    clients: all.map(({ client }) => client),
    calls: all.map(({ calls }) => calls.length),
  };
}

function rejectAll(batch: Batch<Counted> | Batch<void>) {
  return (error: unknown): void => {
    for (const { calls } of batch.values()) for (const { reject } of calls) reject(error);
  };
}
