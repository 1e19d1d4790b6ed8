import type { ClaimAccount, ClaimOutcome, NewClaim } from '../ports/proofs.ts';
import { statement } from './statement.ts';
import type { Kind } from './write-queue.ts';

/** A facilitator's claim: it is counted, and grants nothing. */
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

interface Told {
  readonly claimed: boolean;
  readonly spent: boolean;
  /** Whether its client has reached its cap. */
  readonly isFull: boolean;
  /** What the day had before this claim. */
  readonly today: number;
}

// Each claim finds what it would find if those before it had been made one by one. A spent proof is told first, whatever the caps say: it will
// never be claimed, tomorrow either. Then the cap for all, then the client's own, then the one for payees that are new today; a claim that
// one of them refuses counts towards none. A cap that is reached stays reached, so each is found by counting the claims before:
// 1. `early` counts as if there were no cap for new payees. It is right up to the claim that reaches that cap, which it therefore finds:
// 2. `late` are the new payees' claims from there on. Without them, the client's count is right to the end.
// 3. What fits so far is claimed until the day is full; from there on, everything is refused for that.
// Everything here sees what was there before the statement, and what the first insert returns. A row is looked up by a subquery of its own, which
// takes the primary key; a join would read the table where the planner thinks that it is small.
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
  told AS (
    SELECT place, pay_to, client_hash, first_day, is_new, spent, is_full, today,
           (network, payment_hash) IN (SELECT network, payment_hash FROM claimed) AS claimed
      FROM judged),
  day AS (
    INSERT INTO lightning_facilitator_days (day, claims, new_payee_claims)
    SELECT @day::text, count(*), count(CASE WHEN is_new THEN 1 END) FROM told WHERE claimed HAVING count(*) > 0
    ON CONFLICT (day) DO UPDATE SET claims = lightning_facilitator_days.claims + excluded.claims,
                                    new_payee_claims = lightning_facilitator_days.new_payee_claims + excluded.new_payee_claims),
  client AS (
    INSERT INTO lightning_facilitator_clients (day, client_hash, claims)
    SELECT @day::text, client_hash, count(*) FROM told WHERE claimed GROUP BY client_hash
    ON CONFLICT (day, client_hash) DO UPDATE SET claims = lightning_facilitator_clients.claims + excluded.claims),
  node AS (
    INSERT INTO lightning_facilitator_nodes (pay_to, claims, first_day)
    SELECT pay_to, count(*), @day::text FROM told WHERE claimed GROUP BY pay_to
    ON CONFLICT (pay_to) DO UPDATE SET claims = lightning_facilitator_nodes.claims + excluded.claims),
  totals AS (
    UPDATE lightning_facilitator_totals
       SET claims = claims + (SELECT count(*) FROM told WHERE claimed),
           nodes = nodes + (SELECT count(DISTINCT pay_to) FROM told WHERE claimed AND first_day IS NULL)
     WHERE id = 1 AND EXISTS (SELECT 1 FROM told WHERE claimed))
  SELECT claimed, spent, is_full AS "isFull", today FROM told ORDER BY place`);

/** Claims of different proofs under the same caps share one statement, which decides and counts each as if it came alone. */
export const COUNTED_CLAIMS: Kind<CountedClaim, ClaimOutcome> = {
  admits: (items, next) => items.every(({ key, account }) => key !== next.key && isSameDay(account, next.account)),
  write: (items) => {
    const [{ day, dailyCap, clientCap, newPayeeCap }] = items.map(({ account }) => account) as [ClaimAccount];
    return {
      statements: [CLAIM({ ...columnsOf(items), day, dailyCap, clientCap, newPayeeCap })],
      read: ([made]) => ((made?.rows ?? []) as Told[]).map((told) => outcomeOf(told, dailyCap)),
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

function outcomeOf({ claimed, spent, isFull, today }: Told, dailyCap: number): ClaimOutcome {
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
