import { createHash } from 'node:crypto';
import Database from 'better-sqlite3';
import type { Clock } from '../../lib/clock.ts';
import { createMinuteWindows, MAX_CLIENTS, type MinuteWindows, WINDOW_MS } from '../../lib/limits/minute-windows.ts';

/** Expired windows are deleted after this process has made so many counts. */
const TIDY_EVERY = 1000;
/** A count takes some microseconds. A process that waits longer than this for the file counts in its own memory. */
const BUSY_MS = 50;

const SCHEMA = `CREATE TABLE IF NOT EXISTS minute_windows (
  name    TEXT    NOT NULL,
  client  BLOB    NOT NULL,
  ends_at INTEGER NOT NULL,
  count   INTEGER NOT NULL,
  PRIMARY KEY (name, client)
) STRICT, WITHOUT ROWID`;

const COUNT = `INSERT INTO minute_windows (name, client, ends_at, count) VALUES (@name, @client, @endsAt, 1)
  ON CONFLICT (name, client) DO UPDATE
     SET count   = CASE WHEN ends_at > @now THEN count + 1 ELSE 1 END,
         ends_at = CASE WHEN ends_at > @now THEN ends_at ELSE @endsAt END
  RETURNING count, ends_at AS endsAt`;

const TAKE_BACK = `UPDATE minute_windows SET count = count - 1
  WHERE name = @name AND client = @client AND ends_at > @now AND count > 0`;

/**
 * Minute windows that all processes of one machine count in, so that a limit does not depend on the number of processes.
 * The file is not synced to disk, because losing it forgives only a minute. When it cannot be written, a process counts by itself.
 * Clients are stored as hashes with `salt`, which all processes know and no file holds.
 */
export function openSharedWindows(
  file: string,
  salt: string,
  clock: Clock,
): { open(name: string): MinuteWindows; close(): void } {
  const db = openFile(file);
  db.pragma(`busy_timeout = ${BUSY_MS}`);
  const add = db.prepare<object, { count: number; endsAt: number }>(COUNT);
  const back = db.prepare<object>(TAKE_BACK);
  const forget = db.prepare(
    `DELETE FROM minute_windows WHERE name = @name AND (ends_at <= @now OR client IN
       (SELECT client FROM minute_windows WHERE name = @name ORDER BY ends_at DESC LIMIT -1 OFFSET @most))`,
  );

  return {
    open: (name) => {
      const alone = createMinuteWindows(clock);
      const hashed = (client: string) => createHash('sha256').update(salt).update(client).digest();
      let counted = 0;
      return {
        count(given) {
          const now = clock.nowMs();
          try {
            if (counted % TIDY_EVERY === 0) forget.run({ name, now, most: MAX_CLIENTS });
            counted += 1;
            const window = add.get({ name, client: hashed(given), now, endsAt: now + WINDOW_MS });
            if (!window) return alone.count(given);
            return { count: window.count, resetSeconds: Math.ceil((window.endsAt - now) / 1000) };
          } catch {
            return alone.count(given);
          }
        },
        takeBack(given) {
          try {
            back.run({ name, client: hashed(given), now: clock.nowMs() });
          } catch {
            alone.takeBack(given);
          }
        },
      };
    },
    close: () => void db.close(),
  };
}

/**
 * Creates the file. Call it before the processes that share the file open it: when two processes turn a new file into a WAL database at once, SQLite
 * reports "locked" to one of them without waiting.
 */
export function prepareSharedWindows(file: string): void {
  openFile(file).close();
}

function openFile(file: string): Database.Database {
  const db = new Database(file);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = OFF');
  db.exec(SCHEMA);
  return db;
}
