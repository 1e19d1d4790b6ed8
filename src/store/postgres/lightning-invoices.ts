import { fixed, type Pools, statement } from '../db/connections.ts';
import type { Write } from '../db/write-queue.ts';
import { type InvoiceRow, invoiceFromRow } from '../lightning-row.ts';
import type { InvoiceRecord, ProofKey } from '../ports/lightning.ts';

const KEY = 'network = @network AND payment_hash = @paymentHash';

const RECORD = statement<InvoiceRecord & { body: Uint8Array }>(`
  WITH recorded AS (
    INSERT INTO lightning_invoices (network, payment_hash, request_hash, amount_msat, pay_to, issued_at, forget_at)
    VALUES (@network, @paymentHash, @requestHash, @amountMsat, @payTo, @issuedAt, @forgetAt)
    RETURNING network, payment_hash)
  INSERT INTO lightning_kept_replies (network, payment_hash, body) SELECT network, payment_hash, @body::bytea FROM recorded`);
const FIND = statement<ProofKey>(
  `SELECT network, payment_hash, request_hash, amount_msat::text AS amount_msat, pay_to, issued_at, forget_at
     FROM lightning_invoices WHERE ${KEY}`,
);
const REPLY = statement<ProofKey>(`SELECT body FROM lightning_kept_replies WHERE ${KEY}`);
// The row holds the body's length, so the bodies themselves are not read.
const BYTES = fixed(
  `SELECT (SELECT coalesce(sum(length(body)), 0) FROM lightning_kept_replies)
        + (SELECT coalesce(sum(length(body)), 0) FROM lightning_answers) AS bytes`,
);
const OFFERED_BYTES = fixed('SELECT coalesce(sum(length(body)), 0) AS bytes FROM lightning_kept_replies');

/** Stores an invoice and its reply in one statement. Rejects when the key has a record, because an invoice is never offered twice. */
export function recordInvoiceWrite(record: InvoiceRecord, body: Uint8Array): Write<void> {
  return { statements: [RECORD({ ...record, body })], read: () => {} };
}

/** Reader of offered invoices and the replies made for them. */
export function createInvoiceReads({ read }: Pools) {
  return {
    find: async (key: ProofKey): Promise<InvoiceRecord | null> => {
      const [row] = await read<InvoiceRow>(FIND(key));
      return row ? invoiceFromRow(row) : null;
    },
    keptReply: async (key: ProofKey): Promise<Uint8Array | null> => {
      const [row] = await read<{ body: Uint8Array }>(REPLY(key));
      return row?.body ?? null;
    },
    bodyBytes: async (): Promise<number> => {
      const [row] = await read<{ bytes: number }>(BYTES);
      return row?.bytes ?? 0;
    },
    offeredBytes: async (): Promise<number> => {
      const [row] = await read<{ bytes: number }>(OFFERED_BYTES);
      return row?.bytes ?? 0;
    },
  };
}
