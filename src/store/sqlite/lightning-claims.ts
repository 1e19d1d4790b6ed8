import type { Sqlite } from '../../lib/sqlite-file.ts';
import { type ClaimRow, claimFromRow } from '../lightning-row.ts';
import type { Claim, ClaimAccount, ClaimOutcome, FacilitatorCounts, NewClaim, ProofKey } from '../ports/lightning.ts';
import { createClaimCounters } from './claim-counters.ts';

const INSERT = `
  INSERT INTO lightning_claims (network, payment_hash, pay_to, amount_msat, claimed_at, keep_until,
                                request_hash, state, redeem_until, answer, route, protocol)
  VALUES (@network, @paymentHash, @payTo, @amountMsat, @claimedAt, @keepUntil,
          @requestHash, @state, @redeemUntil, @answer, @route, @protocol)`;

/** A claim with a grant replaces a facilitator's claim for another node. */
const TAKE_OVER = `
  UPDATE lightning_claims
     SET pay_to = @payTo, amount_msat = @amountMsat, claimed_at = @claimedAt, keep_until = max(keep_until, @keepUntil),
         request_hash = @requestHash, state = @state, redeem_until = @redeemUntil, answer = @answer, route = @route,
         protocol = @protocol
   WHERE network = @network AND payment_hash = @paymentHash AND request_hash IS NULL AND pay_to <> @payTo`;

const NO_GRANT = { requestHash: null, state: null, redeemUntil: null, answer: null, route: null, protocol: null };

/** Spent proofs. Everything is synchronous. Call `claim` inside a transaction that took the write lock when it began. */
export interface LightningClaims {
  claim(claim: NewClaim): ClaimOutcome;
  find(key: ProofKey): Claim | null;
  clientCount(account: Pick<ClaimAccount, 'day' | 'clientHash'>): number;
  counts(day: string, ownPayTo: Uint8Array | null): FacilitatorCounts;
}

/** Claims and their counters on SQLite. */
export function createLightningClaims(db: Sqlite): LightningClaims {
  const find = db.prepare<ProofKey, ClaimRow>(
    'SELECT * FROM lightning_claims WHERE network = @network AND payment_hash = @paymentHash',
  );
  const insert = db.prepare(INSERT);
  const takeOver = db.prepare(TAKE_OVER);
  const counters = createClaimCounters(db);

  /** Claims a proof that is not spent, and counts it. */
  function claimCounted(row: object, account: ClaimAccount, payTo: Uint8Array): ClaimOutcome {
    const cap = counters.count(account, payTo);
    if (cap) return cap;
    insert.run(row);
    return 'claimed';
  }

  return {
    // The first that applies is the outcome: a spent proof, which can never be claimed, or the first cap that is reached.
    claim: (claim) => {
      const { grant, account, payTo } = claim;
      const granted = grant ? { ...grant, state: 'claimed', answer: 'none' } : NO_GRANT;
      const row = { ...claim, amountMsat: claim.amountMsat.toString(), ...granted };
      if (find.get(claim)) return grant && takeOver.run(row).changes === 1 ? 'claimed' : 'duplicate';
      if (account) return claimCounted(row, account, payTo);
      insert.run(row);
      return 'claimed';
    },
    find: (key) => {
      const row = find.get(key);
      return row ? claimFromRow(row) : null;
    },
    clientCount: counters.clientCount,
    counts: counters.counts,
  };
}
