import type { LedgerDatabase } from './db/port.ts';
import { first, sql } from './db/sql.ts';
import { type PaymentRow, paymentOf, SELECT_PAYMENT } from './payments.ts';
import type { BookEntry, BookKey, BookSpan, BookStore } from './ports/books.ts';

// The books against the chain, one state for all instances. `book_entries` holds what could not be read or is missing,
// and a row of each network (`checked`) that says how far they were compared.

interface Network {
  readonly network: string;
}

const CHECKED = sql<Network, BookSpan>(`
  SELECT noted_at AS "endedMs", block FROM book_entries
   WHERE network = @network AND kind = 'checked'`);
const CHECK = sql<BookSpan & Network>(`
  INSERT INTO book_entries (network, rail, kind, item, amount, detail, noted_at, block)
  VALUES (@network, '', 'checked', '', 0, '', @endedMs, @block)
  ON CONFLICT (network, kind, rail, item) DO UPDATE SET noted_at = excluded.noted_at, block = excluded.block`);

const SELECT_ENTRY = `
  SELECT rail, kind, item, amount, detail, noted_at AS "notedMs", accepted_at AS "acceptedMs" FROM book_entries`;
const OLDEST_FIRST = 'ORDER BY noted_at, rail, item';
const ENTRIES = sql<Network & { kind: string; limit: number }, BookEntry>(
  `${SELECT_ENTRY} WHERE network = @network AND kind = @kind ${OLDEST_FIRST} LIMIT @limit`,
);
const FIND = sql<Omit<BookEntry, 'acceptedMs'> & Network>(`
  INSERT INTO book_entries (network, rail, kind, item, amount, detail, noted_at)
  VALUES (@network, @rail, @kind, @item, @amount, @detail, @notedMs)
  ON CONFLICT (network, kind, rail, item) DO UPDATE
     SET detail = excluded.detail, amount = excluded.amount,
         accepted_at = CASE WHEN excluded.amount > book_entries.amount THEN NULL ELSE book_entries.accepted_at END`);
const END = sql<BookKey & Network>(
  'DELETE FROM book_entries WHERE network = @network AND kind = @kind AND rail = @rail AND item = @item',
);
const MISSING = "kind = 'missing' AND accepted_at IS NULL";
const ALL_MISSING = sql<object, BookEntry>(`${SELECT_ENTRY} WHERE ${MISSING} ${OLDEST_FIRST}`);
const ACCEPT = sql<{ nowMs: number }>(`UPDATE book_entries SET accepted_at = @nowMs WHERE ${MISSING}`);

interface Settled extends Network {
  readonly to: number;
  readonly endedAt: number;
  readonly id: string;
  readonly limit: number;
}
const SETTLED = sql<Settled, PaymentRow>(`${SELECT_PAYMENT}
   WHERE state = 'settled' AND network = @network AND ended_at < @to
     AND (ended_at, id) > (@endedAt::bigint, @id::text)
     AND NOT (channel_id IS NOT NULL AND transaction_hash IS NULL)
   ORDER BY ended_at, id LIMIT @limit`);

export function createBookStore(db: LedgerDatabase): BookStore {
  return {
    checked: (network) => first(db, CHECKED({ network })),
    entries: async (network, kind, limit) => [...(await db.read(ENTRIES({ network, kind, limit })))],
    record: (network, { found, ended, checked }) => {
      const calls = [
        ...ended.map((key) => END({ ...key, network })),
        ...found.map((entry) => FIND({ ...entry, network })),
        ...(checked ? [CHECK({ ...checked, network })] : []),
      ];
      return db.write('others', { calls, read: () => {} });
    },
    // No database returns changed rows in an order, so they are read before.
    accept: (nowMs) =>
      db.write('others', {
        calls: [ALL_MISSING({}), ACCEPT({ nowMs })],
        read: ([missing]) => ((missing?.rows ?? []) as BookEntry[]).map((one) => ({ ...one, acceptedMs: nowMs })),
      }),
    settledBetween: async (network, { from, to }, limit, after = { endedAt: from, id: '' }) =>
      (await db.read(SETTLED({ network, to, limit, endedAt: after.endedAt, id: after.id }))).map(paymentOf),
  };
}
