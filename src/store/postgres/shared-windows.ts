import { createHash } from 'node:crypto';
import { type Counted, type OpenWindows, WINDOW_MS } from '../../lib/minute-windows.ts';
import { statement } from './statement.ts';
import type { Transact } from './transaction.ts';

/** How many counts of this process lie between two looks for what may be forgotten. */
const TIDY_EVERY = 1000;
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT';

const COUNT = statement<{ name: string; client: Uint8Array; windowMs: number }>(
  `INSERT INTO minute_windows (name, client, ends_at, calls) VALUES (@name, @client, ${NOW} + @windowMs::BIGINT, 1)
     ON CONFLICT (name, client) DO UPDATE
        SET calls   = CASE WHEN minute_windows.ends_at > ${NOW} THEN minute_windows.calls + 1 ELSE 1 END,
            ends_at = CASE WHEN minute_windows.ends_at > ${NOW} THEN minute_windows.ends_at ELSE ${NOW} + @windowMs::BIGINT END
     RETURNING calls, ends_at - ${NOW} AS "leftMs"`,
);
const FORGET = statement<object>(`DELETE FROM minute_windows WHERE ends_at <= ${NOW}`);

/**
 * Minute windows that all instances count in. Where the ledger cannot be asked a count rejects, and so does what it protects: nothing is sold
 * or claimed without the ledger either. Clients stand there as hashes with `salt`, so that a row names nobody to who has the ledger alone.
 */
export function openPostgresWindows(transact: Transact, salt: string): OpenWindows {
  let counted = 0;

  async function count(name: string, given: string): Promise<Counted> {
    const client = createHash('sha256').update(salt).update(given).digest();
    counted += 1;
    if (counted % TIDY_EVERY === 0) await transact((run) => run(FORGET({})));
    const [window] = await transact((run) =>
      run<{ calls: number; leftMs: number }>(COUNT({ name, client, windowMs: WINDOW_MS })),
    );
    if (!window) throw new Error('a count returned nothing');
    return { count: window.calls, resetSeconds: Math.max(1, Math.ceil(window.leftMs / 1000)) };
  }

  return (name) => ({ count: (client) => count(name, client) });
}
