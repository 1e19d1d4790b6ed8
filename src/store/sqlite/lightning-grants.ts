import type { Sqlite } from '../../lib/sqlite-file.ts';
import type { ProofKey } from '../ports/lightning.ts';

const KEY = 'network = @network AND payment_hash = @paymentHash';

/** The writes of a granted claim: its lease, its one answer, its delivery. Everything is synchronous. */
export interface LightningGrants {
  takeLease(key: ProofKey, holder: string, now: number, until: number): boolean;
  releaseLease(key: ProofKey, holder: string): void;
  releaseLeasesExcept(bootId: string): number;
  releaseLeasesOf(bootId: string): number;
  storeAnswer(key: ProofKey, holder: string, body: Uint8Array): boolean;
  answer(key: ProofKey): Uint8Array | null;
  delivered(key: ProofKey, now: number, keepUntil: number): boolean;
}

/** Granted claims on SQLite. Each statement contains its guard, so no two callers pass it. */
export function createLightningGrants(db: Sqlite): LightningGrants {
  // Not re-entrant: a holder is one presentation, and its own running lease counts as taken.
  const take = db.prepare(
    `UPDATE lightning_claims SET lease_holder = @holder, lease_until = @until
      WHERE ${KEY} AND request_hash IS NOT NULL AND redeem_until > @now
        AND (lease_holder IS NULL OR lease_until <= @now)`,
  );
  const release = db.prepare(
    `UPDATE lightning_claims SET lease_holder = NULL, lease_until = NULL WHERE ${KEY} AND lease_holder = @holder`,
  );
  const releaseOthers = db.prepare(
    `UPDATE lightning_claims SET lease_holder = NULL, lease_until = NULL
      WHERE lease_holder IS NOT NULL AND substr(lease_holder, 1, length(@bootId)) <> @bootId`,
  );
  const releaseTheirs = db.prepare(
    `UPDATE lightning_claims SET lease_holder = NULL, lease_until = NULL
      WHERE lease_holder IS NOT NULL AND substr(lease_holder, 1, length(@bootId)) = @bootId`,
  );
  // A holder keeps an expired lease until another one takes it.
  const markAnswered = db.prepare(
    `UPDATE lightning_claims SET answer = 'kept' WHERE ${KEY} AND lease_holder = @holder AND answer = 'none'`,
  );
  const insertAnswer = db.prepare(
    'INSERT INTO lightning_answers (network, payment_hash, body) VALUES (@network, @paymentHash, @body)',
  );
  const dropKept = db.prepare(`DELETE FROM lightning_kept_replies WHERE ${KEY}`);
  const answer = db.prepare<ProofKey, Uint8Array>(`SELECT body FROM lightning_answers WHERE ${KEY}`).pluck();
  // A claim whose answer was deleted is over. A late call must not reopen it, because there is nothing to deliver.
  const deliver = db.prepare(
    `UPDATE lightning_claims SET state = 'delivered', delivered_at = @now, redeem_until = @keepUntil
      WHERE ${KEY} AND state = 'claimed' AND answer <> 'gone'`,
  );

  return {
    takeLease: (key, holder, now, until) => take.run({ ...key, holder, now, until }).changes === 1,
    releaseLease: (key, holder) => {
      release.run({ ...key, holder });
    },
    releaseLeasesExcept: (bootId) => releaseOthers.run({ bootId }).changes,
    releaseLeasesOf: (bootId) => releaseTheirs.run({ bootId }).changes,
    storeAnswer: (key, holder, body) => {
      if (markAnswered.run({ ...key, holder }).changes === 0) return false;
      insertAnswer.run({ ...key, body });
      dropKept.run(key);
      return true;
    },
    answer: (key) => answer.get(key) ?? null,
    delivered: (key, now, keepUntil) => deliver.run({ ...key, now, keepUntil }).changes === 1,
  };
}
