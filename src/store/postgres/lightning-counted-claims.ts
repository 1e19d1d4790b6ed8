import type { ClaimAccount, ClaimOutcome, NewClaim } from '../ports/proofs.ts';
import { statement } from './statement.ts';
import type { Kind } from './write-queue.ts';

/** A facilitator's claim. It is counted and grants nothing. */
interface CountedClaim {
  readonly claim: NewClaim;
  readonly account: ClaimAccount;
  readonly key: string;
}

interface Columns {
  networks: string[];
  paymentHashes: Uint8Array[];
  payTos: Uint8Array[];
  amounts: bigint[];
  claimedAts: number[];
  keepUntils: number[];
  clientHashes: Uint8Array[];
}

interface CountedRow {
  readonly claimed: boolean;
  readonly spent: boolean;
  /** Whether its client has reached its cap. */
  readonly isFull: boolean;
  /** The day's claims before this one. */
  readonly today: number;
}

// Each claim has the outcome that it would have if the claims before it had been made one by one. The first that applies is its outcome: a spent
// proof (it can never be claimed), the cap for all, the client's cap, the cap for payees that are new today. A claim that a cap refuses counts
// towards none. A cap that is reached stays reached, so each is found by counting the claims before:
// 1. `early` counts without the cap for new payees. It is right up to the claim that reaches this cap, so it finds that claim.
// 2. `late` are the new payees' claims after it. Without them the client's count is right to the end.
// 3. The remaining claims are made until the day's cap is reached. Every later claim is refused for this cap.
// All parts see the state before the statement, and the rows that the first insert returns. Each row is looked up by a subquery, which uses the
// primary key. A join would read the whole table when the planner thinks that it is small.
const CLAIM = statement<Columns & Omit<ClaimAccount, 'clientHash'>>(`
  WITH looked AS MATERIALIZED (
    SELECT given.*,
           (SELECT 1 FROM lightning_claims AS c WHERE c.network = given.network AND c.payment_hash = given.payment_hash) IS NOT NULL AS spent,
           coalesce((SELECT claims FROM lightning_facilitator_clients AS c
                      WHERE c.day = @day::text AND c.client_hash = given.client_hash), 0) AS own,
           (SELECT coalesce(n.first_day, '') FROM lightning_facilitator_nodes AS n WHERE n.pay_to = given.pay_to) AS first_day
      FROM ROWS FROM (unnest(@networks::text[]), unnest(@paymentHashes::bytea[]), unnest(@payTos::bytea[]), unnest(@amounts::numeric[]),
                      unnest(@claimedAts::bigint[]), unnest(@keepUntils::bigint[]), unnest(@clientHashes::bytea[]))
           WITH ORDINALITY AS given (network, payment_hash, pay_to, amount_msat, claimed_at, keep_until, client_hash, place)),
  early AS (
    SELECT looked.*, coalesce(first_day, @day::text) >= @day::text AS is_new,
           NOT spent AND own + row_number() OVER (PARTITION BY client_hash, spent ORDER BY place) <= @clientCap::bigint AS fits
      FROM looked),
  parted AS (
    SELECT early.*, is_new AND @newPayeeCap::bigint <= coalesce(
             (SELECT new_payee_claims FROM lightning_facilitator_days WHERE day = @day::text), 0)
             + count(CASE WHEN fits AND is_new THEN 1 END) OVER (ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS late
      FROM early),
  placed AS (
    SELECT parted.*, @clientCap::bigint <= own + count(CASE WHEN NOT spent AND NOT late THEN 1 END)
             OVER (PARTITION BY client_hash ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS is_full
      FROM parted),
  judged AS (
    SELECT placed.*, coalesce((SELECT claims FROM lightning_facilitator_days WHERE day = @day::text), 0)
             + count(CASE WHEN NOT spent AND NOT late AND NOT is_full THEN 1 END)
               OVER (ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS today
      FROM placed),
  claimed AS (
    INSERT INTO lightning_claims (network, payment_hash, pay_to, amount_msat, claimed_at, keep_until)
    SELECT network, payment_hash, pay_to, amount_msat, claimed_at, keep_until FROM judged
     WHERE NOT spent AND NOT late AND NOT is_full AND today < @dailyCap::bigint
    ON CONFLICT (network, payment_hash) DO NOTHING
    RETURNING network, payment_hash),
  counted AS (
    SELECT place, pay_to, client_hash, first_day, is_new, spent, is_full, today,
           (network, payment_hash) IN (SELECT network, payment_hash FROM claimed) AS claimed
      FROM judged),
  day AS (
    INSERT INTO lightning_facilitator_days (day, claims, new_payee_claims)
    SELECT @day::text, count(*), count(CASE WHEN is_new THEN 1 END) FROM counted WHERE claimed HAVING count(*) > 0
    ON CONFLICT (day) DO UPDATE SET claims = lightning_facilitator_days.claims + excluded.claims,
                                    new_payee_claims = lightning_facilitator_days.new_payee_claims + excluded.new_payee_claims),
  client AS (
    INSERT INTO lightning_facilitator_clients (day, client_hash, claims)
    SELECT @day::text, client_hash, count(*) FROM counted WHERE claimed GROUP BY client_hash
    ON CONFLICT (day, client_hash) DO UPDATE SET claims = lightning_facilitator_clients.claims + excluded.claims),
  node AS (
    INSERT INTO lightning_facilitator_nodes (pay_to, claims, first_day)
    SELECT pay_to, count(*), @day::text FROM counted WHERE claimed GROUP BY pay_to
    ON CONFLICT (pay_to) DO UPDATE SET claims = lightning_facilitator_nodes.claims + excluded.claims),
  totals AS (
    UPDATE lightning_facilitator_totals
       SET claims = claims + (SELECT count(*) FROM counted WHERE claimed),
           nodes = nodes + (SELECT count(DISTINCT pay_to) FROM counted WHERE claimed AND first_day IS NULL)
     WHERE id = 1 AND EXISTS (SELECT 1 FROM counted WHERE claimed))
  SELECT claimed, spent, is_full AS "isFull", today FROM counted ORDER BY place`);

/** Claims of different proofs under the same caps share one statement. It decides and counts each as if it came alone. */
export const COUNTED_CLAIMS: Kind<CountedClaim, ClaimOutcome> = {
  admits: (items, next) => items.every(({ key, account }) => key !== next.key && isSameDay(account, next.account)),
  write: (items) => {
    const [{ day, dailyCap, clientCap, newPayeeCap }] = items.map(({ account }) => account) as [ClaimAccount];
    return {
      statements: [CLAIM({ ...columnsOf(items), day, dailyCap, clientCap, newPayeeCap })],
      read: ([made]) => ((made?.rows ?? []) as CountedRow[]).map((counted) => outcomeOf(counted, dailyCap)),
    };
  },
};

/** A claim that is to be counted. */
export function countedClaim(claim: NewClaim, account: ClaimAccount): CountedClaim {
  if (claim.grant) throw new Error('a claim that is counted grants nothing');
  return { claim, account, key: `${claim.network}:${Buffer.from(claim.paymentHash).toString('hex')}` };
}

function isSameDay(one: ClaimAccount, other: ClaimAccount): boolean {
  const isSameCap = one.dailyCap === other.dailyCap && one.clientCap === other.clientCap;
  return one.day === other.day && isSameCap && one.newPayeeCap === other.newPayeeCap;
}

function outcomeOf({ claimed, spent, isFull, today }: CountedRow, dailyCap: number): ClaimOutcome {
  if (claimed) return 'claimed';
  if (spent) return 'duplicate';
  if (today >= dailyCap) return 'daily_cap';
  return isFull ? 'client_cap' : 'new_payee_cap';
}

function columnsOf(items: readonly CountedClaim[]): Columns {
  const claims = items.map(({ claim }) => claim);
  return {
    networks: claims.map(({ network }) => network),
    paymentHashes: claims.map(({ paymentHash }) => paymentHash),
    payTos: claims.map(({ payTo }) => payTo),
    amounts: claims.map(({ amountMsat }) => amountMsat),
    claimedAts: claims.map(({ claimedAt }) => claimedAt),
    keepUntils: claims.map(({ keepUntil }) => keepUntil),
    clientHashes: items.map(({ account }) => account.clientHash),
  };
}
