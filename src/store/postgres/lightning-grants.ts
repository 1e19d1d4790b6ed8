import { statement } from '../db/connections.ts';
import type { Write } from '../db/write-queue.ts';
import type { ProofKey } from '../ports/lightning.ts';

const KEY = 'network = @network AND payment_hash = @paymentHash';

// Not re-entrant: a holder is one presentation, and its own running lease counts as taken.
const TAKE = statement<ProofKey & { holder: string; now: number; until: number }>(`
  UPDATE lightning_claims SET lease_holder = @holder, lease_until = @until::bigint
   WHERE ${KEY} AND request_hash IS NOT NULL AND redeem_until > @now::bigint
     AND (lease_holder IS NULL OR lease_until <= @now::bigint)`);
const GIVE_BACK = 'UPDATE lightning_claims SET lease_holder = NULL, lease_until = NULL';
const RELEASE = statement<ProofKey & { holder: string }>(`${GIVE_BACK} WHERE ${KEY} AND lease_holder = @holder`);
const BOOT = 'substr(lease_holder, 1, length(@bootId::text))';
const RELEASE_OTHERS = statement<{ bootId: string }>(
  `${GIVE_BACK} WHERE lease_holder IS NOT NULL AND ${BOOT} <> @bootId::text`,
);
const RELEASE_THEIRS = statement<{ bootId: string }>(
  `${GIVE_BACK} WHERE lease_holder IS NOT NULL AND ${BOOT} = @bootId::text`,
);

// A holder keeps an expired lease until another one takes it.
const STORE_ANSWER = statement<ProofKey & { holder: string; body: Uint8Array }>(`
  WITH marked AS (
    UPDATE lightning_claims SET answer = 'kept' WHERE ${KEY} AND lease_holder = @holder AND answer = 'none'
    RETURNING network, payment_hash),
  stored AS (
    INSERT INTO lightning_answers (network, payment_hash, body) SELECT network, payment_hash, @body::bytea FROM marked),
  dropped AS (
    DELETE FROM lightning_kept_replies WHERE ${KEY} AND EXISTS (SELECT 1 FROM marked))
  SELECT network FROM marked`);

// A claim whose answer was deleted is over. A late call must not reopen it, because there is nothing to deliver.
const DELIVERED = statement<ProofKey & { now: number; keepUntil: number }>(`
  UPDATE lightning_claims SET state = 'delivered', delivered_at = @now, redeem_until = @keepUntil
   WHERE ${KEY} AND state = 'claimed' AND answer <> 'gone'`);

/** The answer's sealed bytes. */
export const ANSWER = statement<ProofKey>(`SELECT body FROM lightning_answers WHERE ${KEY}`);

const keyOf = ({ network, paymentHash }: ProofKey): ProofKey => ({ network, paymentHash });
const changedOne: Write<boolean>['read'] = ([result]) => result?.rowCount === 1;
const changes: Write<number>['read'] = ([result]) => result?.rowCount ?? 0;

/** The writes of a granted claim: its lease, its one answer, its delivery. Each statement contains its guard. */
export const grantWrites = {
  takeLease: (key: ProofKey, holder: string, now: number, until: number): Write<boolean> => ({
    statements: [TAKE({ ...keyOf(key), holder, now, until })],
    read: changedOne,
  }),
  releaseLease: (key: ProofKey, holder: string): Write<void> => ({
    statements: [RELEASE({ ...keyOf(key), holder })],
    read: () => {},
  }),
  releaseLeasesExcept: (bootId: string): Write<number> => ({
    statements: [RELEASE_OTHERS({ bootId })],
    read: changes,
  }),
  releaseLeasesOf: (bootId: string): Write<number> => ({ statements: [RELEASE_THEIRS({ bootId })], read: changes }),
  storeAnswer: (key: ProofKey, holder: string, body: Uint8Array): Write<boolean> => ({
    statements: [STORE_ANSWER({ ...keyOf(key), holder, body })],
    read: changedOne,
  }),
  delivered: (key: ProofKey, now: number, keepUntil: number): Write<boolean> => ({
    statements: [DELIVERED({ ...keyOf(key), now, keepUntil })],
    read: changedOne,
  }),
};
