import { type Pools, statement } from '../db/connections.ts';
import type { Write } from '../db/write-queue.ts';
import { type ClaimRow, claimFromRow } from '../lightning-row.ts';
import type { Claim, ClaimOutcome, FacilitatorCounts, NewClaim, ProofKey } from '../ports/lightning.ts';

type GrantRow = Omit<NewClaim, 'grant' | 'account'> & {
  requestHash: Uint8Array | null;
  state: string | null;
  redeemUntil: number | null;
  answer: string | null;
  route: string | null;
  protocol: string | null;
};

// A claim with a grant replaces a facilitator's claim for another node.
const CLAIM = statement<GrantRow>(`
  INSERT INTO lightning_claims (network, payment_hash, pay_to, amount_msat, claimed_at, keep_until,
                                request_hash, state, redeem_until, answer, route, protocol)
  SELECT @network::text, @paymentHash::bytea, @payTo::bytea, @amountMsat::numeric, @claimedAt::bigint, @keepUntil::bigint,
         @requestHash::bytea, @state::text, @redeemUntil::bigint, @answer::text, @route::text, @protocol::text
  ON CONFLICT (network, payment_hash) DO UPDATE
     SET pay_to = excluded.pay_to, amount_msat = excluded.amount_msat, claimed_at = excluded.claimed_at,
         keep_until = greatest(lightning_claims.keep_until, excluded.keep_until),
         request_hash = excluded.request_hash, state = excluded.state, redeem_until = excluded.redeem_until, answer = excluded.answer,
         route = excluded.route, protocol = excluded.protocol
   WHERE excluded.request_hash IS NOT NULL AND lightning_claims.request_hash IS NULL AND lightning_claims.pay_to <> excluded.pay_to
  RETURNING pay_to`);

const FIND = statement<ProofKey>(
  `SELECT network, payment_hash, pay_to, amount_msat::text AS amount_msat, claimed_at, request_hash, state, redeem_until, delivered_at, answer, protocol
     FROM lightning_claims WHERE network = @network AND payment_hash = @paymentHash`,
);
const CLIENT_COUNT = statement<{ day: string; clientHash: Uint8Array }>(
  'SELECT claims FROM lightning_facilitator_clients WHERE day = @day AND client_hash = @clientHash',
);
const COUNTS = statement<{ day: string; ownPayTo: Uint8Array | null }>(`
  SELECT claims AS total, nodes,
         coalesce((SELECT claims FROM lightning_facilitator_days WHERE day = @day), 0) AS today,
         coalesce((SELECT claims FROM lightning_facilitator_nodes WHERE pay_to = @ownPayTo), 0) AS own
    FROM lightning_facilitator_totals WHERE id = 1`);

const NO_GRANT = { requestHash: null, state: null, redeemUntil: null, answer: null, route: null, protocol: null };

/** A claim without counters, decided by one statement. */
export function claimWrite({ grant, account: _, ...proof }: NewClaim): Write<ClaimOutcome> {
  const row = { ...proof, ...(grant ? { ...grant, state: 'claimed', answer: 'none' } : NO_GRANT) };
  return { statements: [CLAIM(row)], read: ([made]) => (made?.rowCount === 1 ? 'claimed' : 'duplicate') };
}

/** Reader of claims and their counters. */
export function createClaimReads({ read }: Pools) {
  return {
    find: async (key: ProofKey): Promise<Claim | null> => {
      const [row] = await read<ClaimRow>(FIND(key));
      return row ? claimFromRow(row) : null;
    },
    clientCount: async (day: string, clientHash: Uint8Array): Promise<number> => {
      const [row] = await read<{ claims: number }>(CLIENT_COUNT({ day, clientHash }));
      return row?.claims ?? 0;
    },
    counts: async (day: string, ownPayTo: Uint8Array | null): Promise<FacilitatorCounts> => {
      const [row] = await read<FacilitatorCounts>(COUNTS({ day, ownPayTo }));
      if (!row) throw new Error('the row of the totals is missing');
      return { total: row.total, today: row.today, nodes: row.nodes, own: row.own };
    },
  };
}
