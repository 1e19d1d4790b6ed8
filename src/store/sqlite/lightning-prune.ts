import { utcDay } from '../../lib/calendar.ts';
import type { ProofKey } from '../ports/proofs.ts';
import type { Sqlite } from './database.ts';

/** Rows that one step forgets at most, so that no commit holds the event loop for long. */
export const PRUNE_CHUNK = 100;

const DAY_MS = 86_400_000;
/** A client's row is read on its own day only; two more spare us every question of when a day ends. */
const CLIENT_DAYS_MS = 2 * DAY_MS;

/** A grant that may still be served: it is redeemable, or somebody is at it. */
const LIVE = '(c.redeem_until > @now OR coalesce(c.lease_until, 0) > @now)';
const SAME_KEY = 'network = c.network AND payment_hash = c.payment_hash';

/**
 * What may be forgotten at `now`, each step one chunk: it returns how many rows it forgot, and is over when that is less than a chunk.
 * What must never happen is that a claim is forgotten while its proof could be claimed again. So a claim goes only when all of this holds:
 * 1. `keepUntil` is past, an hour after the proof has ceased to be valid, which covers proofs without a record;
 * 2. no record of its invoice is left, since a record is what a proof is judged against, and `forgetAt` is the caller's word;
 * 3. its grant, if any, is over and nobody is serving it.
 * An invoice goes at `forgetAt`, and its kept reply with it, unless a granted claim that has no answer yet may still need that reply.
 */
export function createPruneSteps(db: Sqlite): readonly ((now: number) => number)[] {
  const overdueAnswers = db.prepare<{ now: number }, ProofKey>(
    `SELECT c.network, c.payment_hash AS paymentHash FROM lightning_claims c
      WHERE c.answer = 'kept' AND c.redeem_until <= @now AND NOT ${LIVE}
      ORDER BY c.redeem_until LIMIT ${PRUNE_CHUNK}`,
  );
  const markGone = db.prepare(
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

  return [
    (now) => {
      const over = overdueAnswers.all({ now });
      for (const key of over) {
        dropAnswer.run(key);
        markGone.run(key);
      }
      return over.length;
    },
    (now) => invoices.run({ now }).changes,
    (now) => claims.run({ now }).changes,
    (now) => clients.run(utcDay(now - CLIENT_DAYS_MS)).changes,
  ];
}
