import type { Sqlite } from '../../lib/sqlite-file.ts';
import { type InvoiceRow, invoiceFromRow } from '../lightning-row.ts';
import type { InvoiceRecord, ProofKey } from '../ports/lightning.ts';

const KEY = 'network = @network AND payment_hash = @paymentHash';

/** Offered invoices and the replies made for them. Everything is synchronous. */
export interface LightningInvoices {
  /** Throws when the key has a record, because an invoice is never offered twice. */
  record(record: InvoiceRecord, sealedReply: Uint8Array): void;
  find(key: ProofKey): InvoiceRecord | null;
  keptReply(key: ProofKey): Uint8Array | null;
  bodyBytes(): number;
  offeredBytes(): number;
  /** Throws when the store cannot be read. */
  ping(): void;
}

/** Invoices on SQLite. */
export function createLightningInvoices(db: Sqlite): LightningInvoices {
  const insert = db.prepare(
    `INSERT INTO lightning_invoices (network, payment_hash, request_hash, amount_msat, pay_to, issued_at, forget_at)
     VALUES (@network, @paymentHash, @requestHash, @amountMsat, @payTo, @issuedAt, @forgetAt)`,
  );
  const insertReply = db.prepare(
    'INSERT INTO lightning_kept_replies (network, payment_hash, body) VALUES (@network, @paymentHash, @body)',
  );
  const find = db.prepare<ProofKey, InvoiceRow>(`SELECT * FROM lightning_invoices WHERE ${KEY}`);
  const reply = db.prepare<ProofKey, Uint8Array>(`SELECT body FROM lightning_kept_replies WHERE ${KEY}`).pluck();
  // A row's header holds the length, so the bodies themselves are not read.
  const bytes = db
    .prepare<[], number>(
      `SELECT (SELECT coalesce(sum(length(body)), 0) FROM lightning_kept_replies)
            + (SELECT coalesce(sum(length(body)), 0) FROM lightning_answers)`,
    )
    .pluck();
  const offered = db.prepare<[], number>('SELECT coalesce(sum(length(body)), 0) FROM lightning_kept_replies').pluck();
  const ping = db.prepare('SELECT id FROM lightning_facilitator_totals WHERE id = 1');

  return {
    record: (record, body) => {
      insert.run({ ...record, amountMsat: record.amountMsat.toString() });
      insertReply.run({ network: record.network, paymentHash: record.paymentHash, body });
    },
    find: (key) => {
      const row = find.get(key);
      return row ? invoiceFromRow(row) : null;
    },
    keptReply: (key) => reply.get(key) ?? null,
    bodyBytes: () => bytes.get() ?? 0,
    offeredBytes: () => offered.get() ?? 0,
    ping: () => {
      ping.get();
    },
  };
}
