import { utcDay } from '../../lib/clock.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { CLIENT_DAYS_MS, PAYEE_DAYS_MS, PRUNE_CHUNK } from '../claim-caps.ts';
import type { ProofKey } from '../ports/lightning.ts';

/** A grant that may still be served: it is redeemable, or a lease on it runs. */
const LIVE = '(c.redeem_until > @now OR coalesce(c.lease_until, 0) > @now)';
const SAME_KEY = 'network = c.network AND payment_hash = c.payment_hash';

/**
 * The steps of `prune`. Each deletes one chunk and returns the number of deleted rows; a step is finished when that is less than a chunk.
 * A claim must never be deleted while its proof could be claimed again. So a claim is deleted only when all of this holds:
 * 1. `keepUntil` is past, which is an hour after the proof expired; this covers proofs without a record;
 * 2. its invoice has no record any more, because a proof is checked against the record, and only the caller sets `forgetAt`;
 * 3. its grant, if any, is over and not being served.
 * An invoice and its kept reply are deleted at `forgetAt`, unless a granted claim without an answer may still need the reply.
 */
export function createPruneSteps(db: Sqlite): readonly ((now: number) => number)[] {
  const overdueAnswers = db.prepare<{ now: number }, ProofKey>(
    `SELECT c.network, c.payment_hash AS paymentHash FROM lightning_claims c
      WHERE c.answer = 'kept' AND c.redeem_until <= @now AND NOT ${LIVE}
      ORDER BY c.redeem_until LIMIT ${PRUNE_CHUNK}`,
  );
  const markForgotten = db.prepare(
    "UPDATE lightning_claims SET answer = 'gone' WHERE network = @network AND payment_hash = @paymentHash",
  );
  const dropAnswer = db.prepare(
    'DELETE FROM lightning_answers WHERE network = @network AND payment_hash = @paymentHash',
  );
  const invoices = db.prepare(
    `DELETE FROM lightning_invoices WHERE (network, payment_hash) IN (
       SELECT i.network, i.payment_hash FROM lightning_invoices i
        WHERE i.forget_at <= @now AND NOT EXISTS (
          SELECT 1 FROM lightning_claims c
           WHERE c.network = i.network AND c.payment_hash = i.payment_hash AND c.answer = 'none' AND ${LIVE})
        ORDER BY i.forget_at LIMIT ${PRUNE_CHUNK})`,
  );
  const claims = db.prepare(
    `DELETE FROM lightning_claims WHERE (network, payment_hash) IN (
       SELECT c.network, c.payment_hash FROM lightning_claims c
        WHERE c.keep_until <= @now AND (c.request_hash IS NULL OR NOT ${LIVE})
          AND NOT EXISTS (SELECT 1 FROM lightning_invoices WHERE ${SAME_KEY})
        ORDER BY c.keep_until LIMIT ${PRUNE_CHUNK})`,
  );
  const clients = db.prepare(
    `DELETE FROM lightning_facilitator_clients WHERE (day, client_hash) IN (
       SELECT day, client_hash FROM lightning_facilitator_clients WHERE day < ? ORDER BY day LIMIT ${PRUNE_CHUNK})`,
  );
  const payees = db.prepare(
    `DELETE FROM lightning_facilitator_payees WHERE (pay_to, day) IN (
       SELECT pay_to, day FROM lightning_facilitator_payees WHERE day < ? ORDER BY day LIMIT ${PRUNE_CHUNK})`,
  );

  return [
    (now) => {
      const over = overdueAnswers.all({ now });
      for (const key of over) {
        dropAnswer.run(key);
        markForgotten.run(key);
      }
      return over.length;
    },
    (now) => invoices.run({ now }).changes,
    (now) => claims.run({ now }).changes,
    (now) => clients.run(utcDay(now - CLIENT_DAYS_MS)).changes,
    (now) => payees.run(utcDay(now - PAYEE_DAYS_MS)).changes,
  ];
}
