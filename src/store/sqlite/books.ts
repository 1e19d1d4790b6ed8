import type { Sqlite } from '../../lib/sqlite-file.ts';
import { groupCommitOf } from '../db/group-commit.ts';
import type { BookEntry, BookKey, BookSpan, BookStore } from '../ports/books.ts';
import { createPaymentRows } from './payment-reads.ts';

const ENTRY = 'rail, kind, item, amount, detail, noted_at AS notedMs, accepted_at AS acceptedMs';
const SETTLED = `SELECT * FROM usdc_payments
  WHERE state = 'settled' AND network = ? AND ended_at >= ? AND ended_at < ? AND (ended_at, id) > (?, ?)
    AND NOT (channel_id IS NOT NULL AND transaction_hash IS NULL)
  ORDER BY ended_at, id LIMIT ?`;

type EntryRow = Omit<BookEntry, 'notedMs' | 'acceptedMs'> & { notedMs: bigint; acceptedMs: bigint | null };

/** The books in the ledger's database. */
export function createBookStore(db: Sqlite): BookStore {
  const commit = groupCommitOf(db);
  const payments = createPaymentRows(db);
  const checked = db.prepare<[string], BookSpan>(
    `SELECT noted_at AS endedMs, block FROM book_entries
      WHERE network = ? AND kind = 'checked' AND rail = '' AND item = ''`,
  );
  const check = db.prepare(
    `INSERT INTO book_entries (network, rail, kind, item, amount, detail, noted_at, block)
     VALUES (@network, '', 'checked', '', 0, '', @endedMs, @block)
     ON CONFLICT (network, kind, rail, item) DO UPDATE SET noted_at = excluded.noted_at, block = excluded.block`,
  );
  const entries = db
    .prepare<unknown[], EntryRow>(
      `SELECT ${ENTRY} FROM book_entries WHERE network = ? AND kind = ? ORDER BY noted_at, rail, item LIMIT ?`,
    )
    .safeIntegers();
  const find = db.prepare(
    `INSERT INTO book_entries (network, rail, kind, item, amount, detail, noted_at)
     VALUES (@network, @rail, @kind, @item, @amount, @detail, @notedMs)
     ON CONFLICT (network, kind, rail, item) DO UPDATE
        SET detail = excluded.detail, amount = excluded.amount,
            accepted_at = CASE WHEN excluded.amount > book_entries.amount THEN NULL ELSE book_entries.accepted_at END`,
  );
  const end = db.prepare<{ network: string } & BookKey>(
    'DELETE FROM book_entries WHERE network = @network AND kind = @kind AND rail = @rail AND item = @item',
  );
  const open = db
    .prepare<[], EntryRow>(
      `SELECT ${ENTRY} FROM book_entries WHERE kind = 'missing' AND accepted_at IS NULL ORDER BY noted_at, rail, item`,
    )
    .safeIntegers();
  const accept = db.prepare("UPDATE book_entries SET accepted_at = ? WHERE kind = 'missing' AND accepted_at IS NULL");

  return {
    checked: async (network) => checked.get(network) ?? null,
    entries: async (network, kind, limit) => entries.all(network, kind, limit).map(fromRow),
    record: (network, change) =>
      commit(() => {
        for (const { rail, kind, item } of change.ended) end.run({ network, rail, kind, item });
        for (const { rail, kind, item, amount, detail, notedMs } of change.found)
          find.run({ network, rail, kind, item, amount, detail, notedMs });
        if (change.checked) check.run({ network, ...change.checked });
      }),
    accept: (nowMs) =>
      commit(() => {
        const accepted = open.all().map((row) => ({ ...fromRow(row), acceptedMs: nowMs }));
        accept.run(nowMs);
        return accepted;
      }),
    settledBetween: async (network, { from, to }, limit, after = { endedAt: -1, id: '' }) =>
      payments(SETTLED, [network, from, to, after.endedAt, after.id, limit]),
  };
}

function fromRow({ rail, kind, item, amount, detail, notedMs, acceptedMs }: EntryRow): BookEntry {
  const accepted = acceptedMs === null ? null : Number(acceptedMs);
  return { rail, kind, item, amount, detail, notedMs: Number(notedMs), acceptedMs: accepted };
}
