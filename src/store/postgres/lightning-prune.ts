import { utcDay } from '../../lib/clock.ts';
import { CLIENT_DAYS_MS, PAYEE_DAYS_MS, PRUNE_CHUNK } from '../claim-caps.ts';
import { statement } from '../db/connections.ts';
import type { Write } from '../db/write-queue.ts';

/** A grant that may still be served: it is redeemable, or a lease on it runs. */
const LIVE = '(c.redeem_until > @now::bigint OR coalesce(c.lease_until, 0) > @now::bigint)';

type AtNow = { now: number };

const ANSWERS = statement<AtNow>(`
  WITH gone AS (
    UPDATE lightning_claims SET answer = 'gone' WHERE (network, payment_hash) IN (
      SELECT c.network, c.payment_hash FROM lightning_claims c
       WHERE c.answer = 'kept' AND c.redeem_until <= @now::bigint AND NOT ${LIVE}
       ORDER BY c.redeem_until LIMIT ${PRUNE_CHUNK})
    RETURNING network, payment_hash),
  dropped AS (DELETE FROM lightning_answers WHERE (network, payment_hash) IN (SELECT network, payment_hash FROM gone))
  SELECT network FROM gone`);
const INVOICES = statement<AtNow>(`
  DELETE FROM lightning_invoices WHERE (network, payment_hash) IN (
    SELECT i.network, i.payment_hash FROM lightning_invoices i
     WHERE i.forget_at <= @now::bigint AND NOT EXISTS (
       SELECT 1 FROM lightning_claims c
        WHERE c.network = i.network AND c.payment_hash = i.payment_hash AND c.answer = 'none' AND ${LIVE})
     ORDER BY i.forget_at LIMIT ${PRUNE_CHUNK})`);
const CLAIMS = statement<AtNow>(`
  DELETE FROM lightning_claims WHERE (network, payment_hash) IN (
    SELECT c.network, c.payment_hash FROM lightning_claims c
     WHERE c.keep_until <= @now::bigint AND (c.request_hash IS NULL OR NOT ${LIVE})
       AND NOT EXISTS (SELECT 1 FROM lightning_invoices i WHERE i.network = c.network AND i.payment_hash = c.payment_hash)
     ORDER BY c.keep_until LIMIT ${PRUNE_CHUNK})`);
const CLIENTS = statement<{ before: string }>(`
  DELETE FROM lightning_facilitator_clients WHERE (day, client_hash) IN (
    SELECT day, client_hash FROM lightning_facilitator_clients WHERE day < @before ORDER BY day LIMIT ${PRUNE_CHUNK})`);
const PAYEES = statement<{ before: string }>(`
  DELETE FROM lightning_facilitator_payees WHERE (pay_to, day) IN (
    SELECT pay_to, day FROM lightning_facilitator_payees WHERE day < @before ORDER BY day LIMIT ${PRUNE_CHUNK})`);

const forgotten: Write<number>['read'] = ([result]) => result?.rowCount ?? 0;

/**
 * The steps of `prune`. Each deletes one chunk and returns the number of deleted rows; a step is finished when that is less than a chunk.
 * The rules are those on SQLite: a claim is deleted only when its proof has long expired, its invoice has no record any more, and its grant, if
 * any, is over and not being served. An invoice is deleted at `forgetAt`, unless a granted claim may still need its kept reply.
 */
export const pruneSteps: readonly ((now: number) => Write<number>)[] = [
  (now) => ({ statements: [ANSWERS({ now })], read: forgotten }),
  (now) => ({ statements: [INVOICES({ now })], read: forgotten }),
  (now) => ({ statements: [CLAIMS({ now })], read: forgotten }),
  (now) => ({ statements: [CLIENTS({ before: utcDay(now - CLIENT_DAYS_MS) })], read: forgotten }),
  (now) => ({ statements: [PAYEES({ before: utcDay(now - PAYEE_DAYS_MS) })], read: forgotten }),
];
