import type { Claim, ClaimAccount, ClaimOutcome, FacilitatorCounts, NewClaim, ProofKey } from '../lightning-port.ts';
import { type ClaimRow, claimFromRow } from '../lightning-row.ts';
import type { Pools } from './pool.ts';
import { statement } from './statement.ts';
import type { Write } from './write-lane.ts';

type Row = Omit<NewClaim, 'grant' | 'account'> & {
  requestHash: Uint8Array | null;
  state: string | null;
  redeemUntil: number | null;
  answer: string | null;
};

const INSERT = `
  INSERT INTO lightning_claims (network, payment_hash, pay_to, amount_msat, claimed_at, keep_until,
                                request_hash, state, redeem_until, answer)
  SELECT @network::text, @paymentHash::bytea, @payTo::bytea, @amountMsat::numeric, @claimedAt::bigint, @keepUntil::bigint,
         @requestHash::bytea, @state::text, @redeemUntil::bigint, @answer::text`;

/** Of a facilitator's claim for another node, the one that a grant of ours may take the place of. */
const TAKE_OVER = `
  ON CONFLICT (network, payment_hash) DO UPDATE
     SET pay_to = excluded.pay_to, amount_msat = excluded.amount_msat, claimed_at = excluded.claimed_at,
         keep_until = greatest(lightning_claims.keep_until, excluded.keep_until),
         request_hash = excluded.request_hash, state = excluded.state, redeem_until = excluded.redeem_until, answer = excluded.answer
   WHERE excluded.request_hash IS NOT NULL AND lightning_claims.request_hash IS NULL AND lightning_claims.pay_to <> excluded.pay_to
  RETURNING pay_to`;

const CLAIM = statement<Row>(`${INSERT} ${TAKE_OVER}`);

// A spent proof is told first, whatever the caps say: it will never be claimed, tomorrow either. Then the cap for all, then the client's own.
// Everything here sees what was there before the statement, and what the inserts return.
const COUNTED_CLAIM = statement<Row & ClaimAccount>(`
  WITH spent AS (SELECT network FROM lightning_claims WHERE network = @network::text AND payment_hash = @paymentHash::bytea),
  counts AS (
    SELECT coalesce((SELECT claims FROM lightning_facilitator_days WHERE day = @day::text), 0) AS today,
           coalesce((SELECT claims FROM lightning_facilitator_clients
                      WHERE day = @day::text AND client_hash = @clientHash::bytea), 0) AS own),
  claimed AS (
    ${INSERT} FROM counts
     WHERE EXISTS (SELECT 1 FROM spent) OR (today < @dailyCap::bigint AND own < @clientCap::bigint)
    ${TAKE_OVER}),
  counted AS (SELECT pay_to FROM claimed WHERE NOT EXISTS (SELECT 1 FROM spent)),
  day AS (
    INSERT INTO lightning_facilitator_days (day, claims) SELECT @day::text, 1 FROM counted
    ON CONFLICT (day) DO UPDATE SET claims = lightning_facilitator_days.claims + 1),
  client AS (
    INSERT INTO lightning_facilitator_clients (day, client_hash, claims) SELECT @day::text, @clientHash::bytea, 1 FROM counted
    ON CONFLICT (day, client_hash) DO UPDATE SET claims = lightning_facilitator_clients.claims + 1),
  node AS (
    INSERT INTO lightning_facilitator_nodes (pay_to, claims) SELECT pay_to, 1 FROM counted
    ON CONFLICT (pay_to) DO UPDATE SET claims = lightning_facilitator_nodes.claims + 1
    RETURNING claims),
  totals AS (
    UPDATE lightning_facilitator_totals
       SET claims = claims + 1, nodes = nodes + (SELECT CASE WHEN node.claims = 1 THEN 1 ELSE 0 END FROM node)
     WHERE id = 1 AND EXISTS (SELECT 1 FROM counted))
  SELECT (SELECT count(*) FROM claimed) AS claimed, (SELECT count(*) FROM spent) AS spent, today FROM counts`);

const FIND = statement<ProofKey>(
  `SELECT network, payment_hash, pay_to, amount_msat::text AS amount_msat, claimed_at, request_hash, state, redeem_until, delivered_at, answer
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

const NO_GRANT = { requestHash: null, state: null, redeemUntil: null, answer: null };

/** A claim as one statement, which decides it and counts it. */
export function claimWrite(claim: NewClaim): Write<ClaimOutcome> {
  const { grant, account, ...proof } = claim;
  const row = { ...proof, ...(grant ? { ...grant, state: 'claimed', answer: 'none' } : NO_GRANT) };
  if (!account) {
    return { statements: [CLAIM(row)], read: ([made]) => (made?.rowCount === 1 ? 'claimed' : 'duplicate') };
  }
  return {
    statements: [COUNTED_CLAIM({ ...row, ...account })],
    read: ([made]) => {
      const { claimed, spent, today } = made?.rows[0] ?? {};
      if (claimed === 1) return 'claimed';
      if (spent === 1) return 'duplicate';
      return today >= account.dailyCap ? 'daily_cap' : 'client_cap';
    },
  };
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
