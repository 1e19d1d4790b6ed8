import { DAY_MS, utcDay } from '../lib/clock.ts';
import type { Call, LedgerDatabase } from './db/port.ts';
import { first, make, onlyRow, sql } from './db/sql.ts';
import { createLightningClaims } from './lightning-claims.ts';
import { type InvoiceRecord, KNOWN_WINDOW_DAYS, type LightningStore, type ProofKey } from './ports/lightning.ts';

// The Lightning rail: what we offered, what a claim of ours grants, and how long all of it is kept. Our routes and the
// facilitator of all instances claim every proof here. All writes have the turn `lightning`.

const KEY = 'network = @network AND payment_hash = @paymentHash';

// --- Invoices, each with the reply that was made for it

// An invoice is never offered twice: a second record breaks the constraint.
const RECORD = sql<InvoiceRecord & { body: Uint8Array }, { network: string }>(
  `INSERT INTO lightning_invoices (network, payment_hash, request_hash, amount_msat, pay_to, issued_at, forget_at)
   VALUES (@network, @paymentHash, @requestHash, @amountMsat, @payTo, @issuedAt, @forgetAt)
   RETURNING network, payment_hash`,
  [
    `INSERT INTO lightning_kept_replies (network, payment_hash, body)
     SELECT done.network, done.payment_hash, @body::bytea FROM done`,
  ],
  ['network'],
);
const INVOICE = sql<ProofKey, InvoiceRecord>(`
  SELECT network, payment_hash AS "paymentHash", request_hash AS "requestHash", amount_msat AS "amountMsat",
         pay_to AS "payTo", issued_at AS "issuedAt", forget_at AS "forgetAt"
    FROM lightning_invoices WHERE ${KEY}`);
const bodyIn = (table: string) => sql<ProofKey, { body: Uint8Array }>(`SELECT body FROM ${table} WHERE ${KEY}`);
const REPLY = bodyIn('lightning_kept_replies');
// A row holds the length of its body, so the bodies themselves are not read.
const BYTES = sql<object, { bytes: number }>(`
  SELECT (SELECT coalesce(sum(length(body)), 0) FROM lightning_kept_replies)
       + (SELECT coalesce(sum(length(body)), 0) FROM lightning_answers) AS bytes`);
const OFFERED_BYTES = sql<object, { bytes: number }>(
  'SELECT coalesce(sum(length(body)), 0) AS bytes FROM lightning_kept_replies',
);

// --- Grants: the lease, the one answer, the delivery. Each statement contains its guard, so no two callers pass it.

// Not re-entrant: a holder is one presentation, and its own running lease counts as taken.
const TAKE = sql<ProofKey & { holder: string; now: number; until: number }>(`
  UPDATE lightning_claims SET lease_holder = @holder, lease_until = @until::bigint
   WHERE ${KEY} AND request_hash IS NOT NULL AND redeem_until > @now::bigint
     AND (lease_holder IS NULL OR lease_until <= @now::bigint)`);
const GIVE_BACK = 'UPDATE lightning_claims SET lease_holder = NULL, lease_until = NULL WHERE';
const RELEASE = sql<ProofKey & { holder: string }>(`${GIVE_BACK} ${KEY} AND lease_holder = @holder`);
const BOOT = 'lease_holder IS NOT NULL AND substr(lease_holder, 1, length(@bootId::text))';
const RELEASE_OTHERS = sql<{ bootId: string }>(`${GIVE_BACK} ${BOOT} <> @bootId::text`);
const RELEASE_THEIRS = sql<{ bootId: string }>(`${GIVE_BACK} ${BOOT} = @bootId::text`);
// A holder keeps an expired lease until another one takes it.
const STORE_ANSWER = sql<ProofKey & { holder: string; body: Uint8Array }, { network: string }>(
  `UPDATE lightning_claims SET answer = 'kept' WHERE ${KEY} AND lease_holder = @holder AND answer = 'none'
   RETURNING network, payment_hash`,
  [
    `INSERT INTO lightning_answers (network, payment_hash, body)
     SELECT done.network, done.payment_hash, @body::bytea FROM done`,
    `DELETE FROM lightning_kept_replies USING done
      WHERE lightning_kept_replies.network = done.network AND lightning_kept_replies.payment_hash = done.payment_hash`,
  ],
  ['network'],
);
const ANSWER = bodyIn('lightning_answers');
// A claim whose answer was deleted is over. A late call must not reopen it, because there is nothing to deliver.
const DELIVERED = sql<ProofKey & { now: number; keepUntil: number }>(`
  UPDATE lightning_claims SET state = 'delivered', delivered_at = @now, redeem_until = @keepUntil
   WHERE ${KEY} AND state = 'claimed' AND answer <> 'gone'`);

// --- Prune

/** A client's row is read on its own day only. It is kept two days longer, so that clock differences do not matter. */
const CLIENT_DAYS_MS = 2 * DAY_MS;
/** A payee's day is read for as long as it can make the payee known, and a day longer for the same reason. */
const PAYEE_DAYS_MS = (KNOWN_WINDOW_DAYS + 1) * DAY_MS;
/** The most rows that one step deletes, so that no commit lasts long, which on SQLite blocks the event loop. */
const CHUNK = 100;

/** A grant that may still be served: it is redeemable, or a lease on it runs. */
const LIVE = '(c.redeem_until > @now::bigint OR coalesce(c.lease_until, 0) > @now::bigint)';

const FORGET_ANSWERS = sql<{ now: number }, { network: string }>(
  `UPDATE lightning_claims SET answer = 'gone' WHERE (network, payment_hash) IN (
     SELECT c.network, c.payment_hash FROM lightning_claims AS c
      WHERE c.answer = 'kept' AND c.redeem_until <= @now::bigint AND NOT ${LIVE}
      ORDER BY c.redeem_until LIMIT ${CHUNK})
   RETURNING network, payment_hash`,
  [
    `DELETE FROM lightning_answers USING done
      WHERE lightning_answers.network = done.network AND lightning_answers.payment_hash = done.payment_hash`,
  ],
  ['network'],
);
// Looked up by key for each row: for NOT EXISTS PostgreSQL may read the whole other table.
const FORGET_INVOICES = sql<{ now: number }>(`
  DELETE FROM lightning_invoices WHERE (network, payment_hash) IN (
    SELECT i.network, i.payment_hash FROM lightning_invoices AS i
     WHERE i.forget_at <= @now::bigint AND (
       SELECT 1 FROM lightning_claims AS c
        WHERE c.network = i.network AND c.payment_hash = i.payment_hash AND c.answer = 'none' AND ${LIVE}) IS NULL
     ORDER BY i.forget_at LIMIT ${CHUNK})`);
const FORGET_CLAIMS = sql<{ now: number }>(`
  DELETE FROM lightning_claims WHERE (network, payment_hash) IN (
    SELECT c.network, c.payment_hash FROM lightning_claims AS c
     WHERE c.keep_until <= @now::bigint AND (c.request_hash IS NULL OR NOT ${LIVE})
       AND (SELECT 1 FROM lightning_invoices AS i
             WHERE i.network = c.network AND i.payment_hash = c.payment_hash) IS NULL
     ORDER BY c.keep_until LIMIT ${CHUNK})`);
const FORGET_CLIENTS = sql<{ before: string }>(`
  DELETE FROM lightning_facilitator_clients WHERE (day, client_hash) IN (
    SELECT day, client_hash FROM lightning_facilitator_clients WHERE day < @before ORDER BY day LIMIT ${CHUNK})`);
const FORGET_PAYEES = sql<{ before: string }>(`
  DELETE FROM lightning_facilitator_payees WHERE (pay_to, day) IN (
    SELECT pay_to, day FROM lightning_facilitator_payees WHERE day < @before ORDER BY day LIMIT ${CHUNK})`);

/**
 * The steps of `prune`. Each deletes one chunk; a step is finished when it deletes less than that.
 * A claim must never be deleted while its proof could be claimed again. So it is deleted only when all of this holds:
 * 1. `keepUntil` is past, which is an hour after the proof expired; this covers proofs without a record;
 * 2. its invoice has no record any more: a proof is checked against the record, and only the caller sets `forgetAt`;
 * 3. its grant, if any, is over and not being served.
 * An invoice and its kept reply are deleted at `forgetAt`, unless a granted claim without an answer may still need the
 * reply.
 */
const pruneSteps = (now: number): Call[] => [
  FORGET_ANSWERS({ now }),
  FORGET_INVOICES({ now }),
  FORGET_CLAIMS({ now }),
  FORGET_CLIENTS({ before: utcDay(now - CLIENT_DAYS_MS) }),
  FORGET_PAYEES({ before: utcDay(now - PAYEE_DAYS_MS) }),
];

export function createLightningStore(db: LedgerDatabase, ping: () => Promise<void>): LightningStore {
  const write = (call: Call): Promise<number> => make(db, 'lightning', [call]);
  const bodyIn = async (call: Call<{ body: Uint8Array }>) => (await first(db, call))?.body ?? null;
  const bytesIn = async (call: Call<{ bytes: number }>) => (await onlyRow(db, call)).bytes;

  return {
    ...createLightningClaims(db),
    recordInvoice: async (record, body) => {
      await write(RECORD({ ...record, body }));
    },
    findInvoice: (key) => first(db, INVOICE(key)),
    keptReply: (key) => bodyIn(REPLY(key)),
    takeLease: async (key, holder, now, until) => (await write(TAKE({ ...key, holder, now, until }))) === 1,
    releaseLease: async (key, holder) => {
      await write(RELEASE({ ...key, holder }));
    },
    releaseLeasesExcept: (bootId) => write(RELEASE_OTHERS({ bootId })),
    releaseLeasesOf: (bootId) => write(RELEASE_THEIRS({ bootId })),
    storeAnswer: async (key, holder, body) => (await write(STORE_ANSWER({ ...key, holder, body }))) === 1,
    answer: (key) => bodyIn(ANSWER(key)),
    delivered: async (key, now, keepUntil) => (await write(DELIVERED({ ...key, now, keepUntil }))) === 1,
    bodyBytes: () => bytesIn(BYTES({})),
    offeredBytes: () => bytesIn(OFFERED_BYTES({})),
    // Each chunk is a write of its own, so that writes which arrived meanwhile come first.
    prune: async (now) => {
      for (const step of pruneSteps(now)) while ((await write(step)) === CHUNK);
    },
    ping,
  };
}
