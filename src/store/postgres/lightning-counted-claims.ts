import { capValues, KNOWN } from '../claim-caps.ts';
import { statement } from '../db/connections.ts';
import type { SharedKind } from '../db/write-queue.ts';
import type { ClaimAccount, ClaimOutcome, NewClaim } from '../ports/lightning.ts';

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
  payeeClientHashes: Uint8Array[];
}

interface CountedRow {
  readonly claimed: boolean;
  /** `known` and `open` are the parts of the day in which a claim is counted. */
  readonly part: 'known' | 'open' | Exclude<ClaimOutcome, 'claimed'>;
}

const EARLIER = 'lightning_facilitator_payees WHERE day >= @since::text AND day < @day::text';
/** How often a hash stands in a JSON object of counts. */
const countIn = (counts: string, hash: string) => `coalesce((${counts} ->> encode(${hash}, 'hex'))::bigint, 0)`;
const oneMore = (counts: string, hash: string) =>
  `CASE WHEN is_made THEN ${counts} || jsonb_build_object(encode(${hash}, 'hex'), ${countIn(counts, hash)} + 1) ELSE ${counts} END`;

// Each claim has the outcome that it would have if the claims before it had been made one by one. `walked` goes through them in their order and
// carries what was counted: of the day, of its open part, and of each client and payee among these claims.
// All parts see the state before the statement, and the rows that the first insert returns. Each row is looked up by a subquery, which uses the
// primary key. A join would read the whole table when the planner thinks that it is small. `counted_so_far` is this day before these claims.
// The version before reads `first_day`, and may run beside this one: a payee without it is no new one there.
const CLAIM = statement<Columns & ReturnType<typeof capValues>>(`
  WITH RECURSIVE looked AS MATERIALIZED (
    SELECT given.*,
           (SELECT 1 FROM lightning_claims AS c
             WHERE c.network = given.network AND c.payment_hash = given.payment_hash) IS NOT NULL AS spent,
           coalesce((SELECT claims FROM lightning_facilitator_clients AS c
                      WHERE c.day = @day::text AND c.client_hash = given.client_hash), 0) AS of_client,
           coalesce((SELECT claims FROM lightning_facilitator_payees AS p
                      WHERE p.pay_to = given.pay_to AND p.day = @day::text), 0) AS of_payee,
           (SELECT ${KNOWN} FROM ${EARLIER} AND pay_to = given.pay_to) AS is_known,
           (SELECT 1 FROM lightning_facilitator_nodes AS n WHERE n.pay_to = given.pay_to) IS NULL AS is_first
      FROM ROWS FROM (unnest(@networks::text[]), unnest(@paymentHashes::bytea[]), unnest(@payTos::bytea[]),
                      unnest(@amounts::numeric[]), unnest(@claimedAts::bigint[]), unnest(@keepUntils::bigint[]),
                      unnest(@clientHashes::bytea[]), unnest(@payeeClientHashes::bytea[]))
           WITH ORDINALITY AS given (network, payment_hash, pay_to, amount_msat, claimed_at, keep_until,
                                     client_hash, payee_client, nth)),
  counted_so_far AS MATERIALIZED (
    SELECT coalesce(sum(claims), 0)::bigint AS today, coalesce(sum(new_payee_claims), 0)::bigint AS open,
           coalesce(max(known_payees),
                    (SELECT count(*) FROM (SELECT pay_to FROM ${EARLIER} GROUP BY pay_to HAVING ${KNOWN}) AS k)) AS known_payees
      FROM lightning_facilitator_days WHERE day = @day::text),
  walked AS (
    SELECT 0::bigint AS nth, today, open, '{}'::jsonb AS clients, '{}'::jsonb AS payees, '' AS part FROM counted_so_far
    UNION ALL
    SELECT marked.nth, today + is_made::int, open + (part = 'open')::int,
           ${oneMore('clients', 'client_hash')}, ${oneMore('payees', 'pay_to')}, part
      FROM (
        SELECT decided.*, part IN ('known', 'open') AS is_made
          FROM (
            SELECT l.nth, l.client_hash, l.pay_to, w.today, w.open, w.clients, w.payees,
                   CASE WHEN l.spent THEN 'duplicate'
                        WHEN w.today >= @dailyCap::bigint THEN 'daily_cap'
                        WHEN l.of_client + ${countIn('w.clients', 'l.client_hash')} >= @clientCap::bigint THEN 'client_cap'
                        WHEN l.of_payee + ${countIn('w.payees', 'l.pay_to')} >= @payeeCap::bigint THEN 'payee_cap'
                        WHEN l.is_known AND w.today - w.open < @dailyCap::bigint - @openCap::bigint
                             AND l.of_payee + ${countIn('w.payees', 'l.pay_to')}
                                 < greatest(1, (@dailyCap::bigint - @openCap::bigint) / greatest(1, d.known_payees)) THEN 'known'
                        WHEN w.open < @openCap::bigint THEN 'open'
                        WHEN l.is_known THEN 'known_cap'
                        ELSE 'open_cap' END AS part
              FROM walked AS w JOIN looked AS l ON l.nth = w.nth + 1 CROSS JOIN counted_so_far AS d) AS decided) AS marked),
  judged AS (
    SELECT looked.*, walked.part FROM looked JOIN walked ON walked.nth = looked.nth),
  claimed AS (
    INSERT INTO lightning_claims (network, payment_hash, pay_to, amount_msat, claimed_at, keep_until)
    SELECT network, payment_hash, pay_to, amount_msat, claimed_at, keep_until FROM judged WHERE part IN ('known', 'open')
    ON CONFLICT (network, payment_hash) DO NOTHING
    RETURNING network, payment_hash),
  counted AS (
    SELECT nth, part, pay_to, client_hash, payee_client, is_first,
           (network, payment_hash) IN (SELECT network, payment_hash FROM claimed) AS claimed
      FROM judged),
  day AS (
    INSERT INTO lightning_facilitator_days (day, claims, new_payee_claims, known_payees)
    SELECT @day::text, count(*), count(CASE WHEN part = 'open' THEN 1 END), (SELECT known_payees FROM counted_so_far)
      FROM counted WHERE claimed HAVING count(*) > 0
    ON CONFLICT (day) DO UPDATE SET claims = lightning_facilitator_days.claims + excluded.claims,
                                    new_payee_claims = lightning_facilitator_days.new_payee_claims + excluded.new_payee_claims,
                                    known_payees = excluded.known_payees),
  client AS (
    INSERT INTO lightning_facilitator_clients (day, client_hash, claims)
    SELECT @day::text, client_hash, count(*) FROM counted WHERE claimed GROUP BY client_hash
    ON CONFLICT (day, client_hash) DO UPDATE SET claims = lightning_facilitator_clients.claims + excluded.claims),
  payee AS (
    INSERT INTO lightning_facilitator_payees (pay_to, day, claims, client, other_clients)
    SELECT pay_to, @day::text, count(*), (array_agg(payee_client ORDER BY nth))[1], (count(DISTINCT payee_client) > 1)::int
      FROM counted WHERE claimed GROUP BY pay_to
    ON CONFLICT (pay_to, day) DO UPDATE
       SET claims = lightning_facilitator_payees.claims + excluded.claims,
           other_clients = CASE WHEN lightning_facilitator_payees.client = excluded.client
                                THEN greatest(lightning_facilitator_payees.other_clients, excluded.other_clients) ELSE 1 END),
  node AS (
    INSERT INTO lightning_facilitator_nodes (pay_to, claims, first_day)
    SELECT pay_to, count(*), @day::text FROM counted WHERE claimed GROUP BY pay_to
    ON CONFLICT (pay_to) DO UPDATE SET claims = lightning_facilitator_nodes.claims + excluded.claims),
  totals AS (
    UPDATE lightning_facilitator_totals
       SET claims = claims + (SELECT count(*) FROM counted WHERE claimed),
           nodes = nodes + (SELECT count(DISTINCT pay_to) FROM counted WHERE claimed AND is_first)
     WHERE id = 1 AND EXISTS (SELECT 1 FROM counted WHERE claimed))
  SELECT claimed, part FROM counted ORDER BY nth`);

/** Claims of different proofs under the same caps share one statement. It decides and counts each as if it came alone. */
export const COUNTED_CLAIMS: SharedKind<CountedClaim, ClaimOutcome> = {
  admits: (items, next) => items.every(({ key, account }) => key !== next.key && isSameDay(account, next.account)),
  write: (items) => {
    const [account] = items.map((item) => item.account) as [ClaimAccount];
    return {
      statements: [CLAIM({ ...columnsOf(items), ...capValues(account) })],
      read: ([made]) => ((made?.rows ?? []) as CountedRow[]).map(outcomeOf),
    };
  },
};

/** A claim that is to be counted. */
export function countedClaim(claim: NewClaim, account: ClaimAccount): CountedClaim {
  if (claim.grant) throw new Error('a claim that is counted grants nothing');
  return { claim, account, key: `${claim.network}:${Buffer.from(claim.paymentHash).toString('hex')}` };
}

function isSameDay(one: ClaimAccount, other: ClaimAccount): boolean {
  return one.day === other.day && CAPS.every((cap) => one[cap] === other[cap]);
}
const CAPS = ['dailyCap', 'clientCap', 'payeeCap', 'openCap'] as const;

/** A claim that was to be made and was not has lost the key to another, which the database would rather refuse: it is spent. */
function outcomeOf({ claimed, part }: CountedRow): ClaimOutcome {
  if (claimed) return 'claimed';
  return part === 'known' || part === 'open' ? 'duplicate' : part;
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
    payeeClientHashes: items.map(({ account }) => account.payeeClientHash),
  };
}
