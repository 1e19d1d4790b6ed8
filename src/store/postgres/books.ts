import { type Pools, statement } from '../db/connections.ts';
import type { WriteQueue } from '../db/write-queue.ts';
import type { BookEntry, BookKey, BookSpan, BookStore } from '../ports/books.ts';
import { createPaymentRows, SELECT_PAYMENT } from './payment-rows.ts';

const ENTRY = 'rail, kind, item, amount, detail, noted_at AS "notedMs", accepted_at AS "acceptedMs"';
const CHECKED = statement<{ network: string }>(
  `SELECT noted_at AS "endedMs", block FROM book_entries
    WHERE network = @network AND kind = 'checked' AND rail = '' AND item = ''`,
);
const CHECK = statement<BookSpan & { network: string }>(`
  INSERT INTO book_entries (network, rail, kind, item, amount, detail, noted_at, block)
  VALUES (@network, '', 'checked', '', 0, '', @endedMs, @block)
  ON CONFLICT (network, kind, rail, item) DO UPDATE SET noted_at = excluded.noted_at, block = excluded.block`);
const ENTRIES = statement<{ network: string; kind: string; limit: number }>(
  `SELECT ${ENTRY} FROM book_entries WHERE network = @network AND kind = @kind
    ORDER BY noted_at, rail, item LIMIT @limit`,
);
const FIND = statement<Omit<BookEntry, 'acceptedMs'> & { network: string }>(`
  INSERT INTO book_entries (network, rail, kind, item, amount, detail, noted_at)
  VALUES (@network, @rail, @kind, @item, @amount, @detail, @notedMs)
  ON CONFLICT (network, kind, rail, item) DO UPDATE
     SET detail = excluded.detail, amount = excluded.amount,
         accepted_at = CASE WHEN excluded.amount > book_entries.amount THEN NULL ELSE book_entries.accepted_at END`);
const END = statement<BookKey & { network: string }>(
  'DELETE FROM book_entries WHERE network = @network AND kind = @kind AND rail = @rail AND item = @item',
);
const ACCEPT = statement<{ nowMs: number }>(
  `UPDATE book_entries SET accepted_at = @nowMs WHERE kind = 'missing' AND accepted_at IS NULL RETURNING ${ENTRY}`,
);
const SETTLED = statement<{ network: string; from: number; to: number; endedAt: number; id: string; limit: number }>(`
  ${SELECT_PAYMENT}
   WHERE state = 'settled' AND network = @network AND ended_at >= @from AND ended_at < @to
     AND (ended_at, id) > (@endedAt::bigint, @id::text)
     AND NOT (channel_id IS NOT NULL AND transaction_hash IS NULL)
   ORDER BY ended_at, id LIMIT @limit`);

/** The books on PostgreSQL, the same for all instances. */
export function createBookStore(pools: Pools, queue: WriteQueue): BookStore {
  const payments = createPaymentRows(pools);
  return {
    checked: async (network) => (await pools.read<BookSpan>(CHECKED({ network })))[0] ?? null,
    entries: (network, kind, limit) => pools.read<BookEntry>(ENTRIES({ network, kind, limit })),
    record: (network, { found, ended, checked }) => {
      const statements = [
        ...ended.map((key) => END({ ...key, network })),
        ...found.map((entry) => FIND({ ...entry, network })),
        ...(checked ? [CHECK({ ...checked, network })] : []),
      ];
      return queue.write({ statements, read: () => {} });
    },
    accept: (nowMs) =>
      queue.write({
        statements: [ACCEPT({ nowMs })],
        read: ([accepted]) => ((accepted?.rows ?? []) as BookEntry[]).sort(byAge),
      }),
    settledBetween: (network, { from, to }, limit, after = { endedAt: -1, id: '' }) =>
      payments(SETTLED({ network, from, to, limit, endedAt: after.endedAt, id: after.id })),
  };
}

function byAge(one: BookEntry, other: BookEntry): number {
  if (one.notedMs !== other.notedMs) return one.notedMs - other.notedMs;
  return `${one.rail} ${one.item}` < `${other.rail} ${other.item}` ? -1 : 1;
}
