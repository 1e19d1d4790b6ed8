import { daysBefore } from '../lib/clock.ts';
import type { Kind, LedgerDatabase } from './db/port.ts';
import { first, greatest, make, onlyRow, sql } from './db/sql.ts';
import {
  type Claim,
  type ClaimAccount,
  type ClaimOutcome,
  type FacilitatorCounts,
  KNOWN_DAYS,
  KNOWN_WINDOW_DAYS,
  type LightningStore,
  type NewClaim,
  type ProofKey,
} from './ports/lightning.ts';

// A proof is claimed once. A claim through our own routes is decided by its row. A facilitator's claim is judged by the
// counters of its day, client and payee, and what follows from the judgement stores and counts it.

// --- Claims of ours

const NO_GRANT = { requestHash: null, state: null, redeemUntil: null, answer: null, route: null, protocol: null };
type GrantValues = { [Name in keyof typeof NO_GRANT]: unknown };

// A claim with a grant replaces a facilitator's claim for another node.
const CLAIM = sql<Omit<NewClaim, 'grant' | 'account'> & GrantValues>(`
  INSERT INTO lightning_claims (network, payment_hash, pay_to, amount_msat, claimed_at, keep_until,
                                request_hash, state, redeem_until, answer, route, protocol)
  VALUES (@network, @paymentHash, @payTo, @amountMsat, @claimedAt, @keepUntil,
          @requestHash, @state, @redeemUntil, @answer, @route, @protocol)
  ON CONFLICT (network, payment_hash) DO UPDATE
     SET pay_to = excluded.pay_to, amount_msat = excluded.amount_msat, claimed_at = excluded.claimed_at,
         keep_until = ${greatest('lightning_claims.keep_until', 'excluded.keep_until')},
         request_hash = excluded.request_hash, state = excluded.state, redeem_until = excluded.redeem_until,
         answer = excluded.answer, route = excluded.route, protocol = excluded.protocol
   WHERE excluded.request_hash IS NOT NULL AND lightning_claims.request_hash IS NULL
     AND lightning_claims.pay_to <> excluded.pay_to`);

// --- A facilitator's claim

type CountedClaim = NewClaim & { readonly account: ClaimAccount };

/** The fields of a claim and of its account, with their types. No text quotes them, so PostgreSQL folds all alike. */
const FIELDS = {
  network: 'text',
  paymentHash: 'bytea',
  payTo: 'bytea',
  amountMsat: 'numeric',
  claimedAt: 'bigint',
  keepUntil: 'bigint',
  clientHash: 'bytea',
  payeeClientHash: 'bytea',
} as const;
/** Where a text finds a field: among its parameters, in the rows that are given, or in those that were judged. */
type FieldIn = (field: keyof typeof FIELDS) => string;
const PARAMETER: FieldIn = (field) => `@${field}::${FIELDS[field]}`;
const GIVEN: FieldIn = (field) => `given.${field}`;
const DONE: FieldIn = (field) => `done.${field}`;

const EARLIER = 'lightning_facilitator_payees WHERE day >= @since::text AND day < @day::text';
/** Of a payee's rows of the days that count: it is known. A client's hash is the same on all days of one payee. */
const KNOWN = `count(*) >= ${KNOWN_DAYS} AND (max(other_clients) > 0 OR count(DISTINCT client) > 1)`;

/** The day before these claims. Its known payees are counted by the day's first claim, which reads a month of them. */
const OF_DAY = `
  coalesce(max(claims), 0) AS today, coalesce(max(new_payee_claims), 0) AS open,
  coalesce(max(known_payees),
           (SELECT count(*) FROM (SELECT pay_to FROM ${EARLIER} GROUP BY pay_to HAVING ${KNOWN}) AS known))
    AS known_payees`;
const DAY = 'lightning_facilitator_days WHERE day = @day::text';
// Subqueries, each by a primary key. PostgreSQL may read the whole table for a join, and hash all of it for an EXISTS.
const lookedUp = (of: FieldIn): string => `
  (SELECT 1 FROM lightning_claims AS c
    WHERE c.network = ${of('network')} AND c.payment_hash = ${of('paymentHash')}) IS NOT NULL AS is_spent,
  coalesce((SELECT claims FROM lightning_facilitator_clients AS c
             WHERE c.day = @day::text AND c.client_hash = ${of('clientHash')}), 0) AS of_client,
  coalesce((SELECT claims FROM lightning_facilitator_payees AS p
             WHERE p.pay_to = ${of('payTo')} AND p.day = @day::text), 0) AS of_payee,
  (SELECT ${KNOWN} FROM ${EARLIER} AND pay_to = ${of('payTo')}) AS is_known,
  (SELECT 1 FROM lightning_facilitator_nodes AS n WHERE n.pay_to = ${of('payTo')}) IS NULL AS is_first`;

/** What was counted before a claim. */
interface CountedBefore {
  readonly today: string;
  readonly open: string;
  readonly ofClient: string;
  readonly ofPayee: string;
}
const KNOWN_CAP = '(@dailyCap::bigint - @openCap::bigint)';
// A known payee has an equal part of KNOWN_CAP, and at least one claim. No division: SQLite binds numbers as reals.
const hasPart = (ofPayee: string): string =>
  `(${ofPayee} < 1 OR (${ofPayee} + 1) * ${greatest('1', 'known_payees')} <= ${KNOWN_CAP})`;
/** The first that applies, in the port's order; else the part of the day in which a claim is counted. */
const partOf = ({ today, open, ofClient, ofPayee }: CountedBefore): string => `
  CASE WHEN is_spent THEN 'duplicate'
       WHEN ${today} >= @dailyCap::bigint THEN 'daily_cap'
       WHEN ${ofClient} >= @clientCap::bigint THEN 'client_cap'
       WHEN ${ofPayee} >= @payeeCap::bigint THEN 'payee_cap'
       WHEN is_known AND ${hasPart(ofPayee)} AND ${today} - ${open} < ${KNOWN_CAP} THEN 'known'
       WHEN ${open} < @openCap::bigint THEN 'open'
       WHEN is_known THEN 'known_cap'
       ELSE 'open_cap' END`;
const isMade = (part: string): string => `${part} IN ('known', 'open')`;

/**
 * What follows from judgements: the claims that are made are stored and counted, `per` client, payee and node. The turn
 * makes the counts exact. A claim whose key a foreign program has taken meanwhile breaks its constraint.
 */
const counting = (of: FieldIn, firstClient: string, per: (group: string) => string): string[] => [
  `INSERT INTO lightning_claims (network, payment_hash, pay_to, amount_msat, claimed_at, keep_until)
   SELECT ${of('network')}, ${of('paymentHash')}, ${of('payTo')}, ${of('amountMsat')}, ${of('claimedAt')},
          ${of('keepUntil')} FROM done WHERE done.is_made`,
  // A refusal keeps the number of known payees too: else each replay of an old proof would count them anew.
  `INSERT INTO lightning_facilitator_days (day, claims, new_payee_claims, known_payees)
   SELECT @day::text, count(CASE WHEN done.is_made THEN 1 END), count(CASE WHEN done.part = 'open' THEN 1 END),
          max(done.known_payees)
     FROM done HAVING count(*) > 0
   ON CONFLICT (day) DO UPDATE
      SET claims = lightning_facilitator_days.claims + excluded.claims,
          new_payee_claims = lightning_facilitator_days.new_payee_claims + excluded.new_payee_claims,
          known_payees = excluded.known_payees
    WHERE excluded.claims > 0 OR lightning_facilitator_days.known_payees IS NULL`,
  `INSERT INTO lightning_facilitator_clients (day, client_hash, claims)
   SELECT @day::text, ${of('clientHash')}, count(*) FROM done WHERE done.is_made ${per(of('clientHash'))}
   ON CONFLICT (day, client_hash) DO UPDATE SET claims = lightning_facilitator_clients.claims + excluded.claims`,
  `INSERT INTO lightning_facilitator_payees (pay_to, day, claims, client, other_clients)
   SELECT ${of('payTo')}, @day::text, count(*), ${firstClient},
          CASE WHEN count(DISTINCT ${of('payeeClientHash')}) > 1 THEN 1 ELSE 0 END
     FROM done WHERE done.is_made ${per(`${of('payTo')}, ${firstClient}`)}
   ON CONFLICT (pay_to, day) DO UPDATE
      SET claims = lightning_facilitator_payees.claims + excluded.claims,
          other_clients = CASE WHEN lightning_facilitator_payees.client <> excluded.client OR excluded.other_clients > 0
                               THEN 1 ELSE lightning_facilitator_payees.other_clients END`,
  // The version before reads `first_day`, and may run beside this one: a payee without it is no new one there.
  `INSERT INTO lightning_facilitator_nodes (pay_to, claims, first_day)
   SELECT ${of('payTo')}, count(*), @day::text FROM done WHERE done.is_made ${per(of('payTo'))}
   ON CONFLICT (pay_to) DO UPDATE SET claims = lightning_facilitator_nodes.claims + excluded.claims`,
  `UPDATE lightning_facilitator_totals
      SET claims = claims + (SELECT count(*) FROM done WHERE done.is_made),
          nodes = nodes + (SELECT count(DISTINCT ${of('payTo')}) FROM done WHERE done.is_made AND done.is_first)
    -- Spares a write of nothing.
    WHERE id = 1 AND EXISTS (SELECT 1 FROM done WHERE done.is_made)`,
];

/** `known` and `open` are the parts of the day in which a claim is counted. */
interface Judged {
  readonly place: number;
  readonly part: 'known' | 'open' | Exclude<ClaimOutcome, 'claimed'>;
}

// One claim, as SQLite always has it, costs less than half of COUNT_MANY. It is no group: GROUP BY would sort.
const COUNT_ONE = sql<CountedClaim & ClaimAccount & { since: string }, Pick<Judged, 'part'>>(
  `SELECT part, known_payees, is_first, ${isMade('part')} AS is_made
     FROM (SELECT known_payees, is_first,
                  ${partOf({ today: 'today', open: 'open', ofClient: 'of_client', ofPayee: 'of_payee' })} AS part
             FROM (SELECT ${OF_DAY}, ${lookedUp(PARAMETER)} FROM ${DAY}) AS looked) AS judged`,
  counting(PARAMETER, PARAMETER('payeeClientHash'), () => 'HAVING count(*) > 0'),
  ['part'],
);

/** The labels of clients and payees of all claims that were made before: `c3/` is the client of the fourth claim. */
const LABELS = `(walked.labels || CASE WHEN ${isMade('walked.part')} THEN walked.label ELSE '' END)`;
const among = (label: string): string =>
  `(length(${LABELS}) - length(replace(${LABELS}, ${label}, ''))) / length(${label})`;
const WALKED: CountedBefore = {
  today: `(walked.today + CASE WHEN ${isMade('walked.part')} THEN 1 ELSE 0 END)`,
  open: "(walked.open + CASE WHEN walked.part = 'open' THEN 1 ELSE 0 END)",
  ofClient: `(of_client + ${among('looked.client')})`,
  ofPayee: `(of_payee + ${among('looked.payee')})`,
};
// Each claim has the outcome that it would have if the claims before it had been made one by one. `walked` goes through
// them in their order, and holds what was counted before each: of the day, of its open part, and labels of those made.
// SQLite, which gives one claim at a time, never runs it. It prepares it in a test, as every text.
const COUNT_MANY = sql<ClaimAccount & { since: string; given: readonly object[] }, Judged>(
  `WITH RECURSIVE looked AS (
     SELECT given.*, ${lookedUp(GIVEN)}
       FROM @given::(${Object.entries(FIELDS).map((one) => one.join(' '))}, client text, payee text)),
   day AS (SELECT ${OF_DAY} FROM ${DAY}),
   walked AS (
     SELECT CAST(0 AS BIGINT) AS place, today, open, '' AS labels, '' AS label, '' AS part FROM day
     UNION ALL
     SELECT looked.place, ${WALKED.today}, ${WALKED.open}, ${LABELS}, looked.client || looked.payee, ${partOf(WALKED)}
       FROM walked JOIN looked ON looked.place = walked.place + 1 CROSS JOIN day)
   SELECT looked.*, walked.part, ${isMade('walked.part')} AS is_made, known_payees,
          first_value(payeeClientHash) OVER (PARTITION BY payTo, ${isMade('walked.part')} ORDER BY looked.place)
            AS first_client
     FROM looked JOIN walked ON walked.place = looked.place CROSS JOIN day`,
  counting(DONE, 'done.first_client', (group) => `GROUP BY ${group}`),
  ['place', 'part'],
);

/** Claims of different proofs under the same caps share a statement. It decides and counts each as if it came alone. */
const COUNTED: Kind<CountedClaim, ClaimOutcome> = {
  admits: (items, next) => items.every((one) => isSameDay(one, next) && !isSame(one, next)),
  step: (items) => {
    const [only, ...others] = items as [CountedClaim];
    const { account } = only;
    const since = daysBefore(account.day, KNOWN_WINDOW_DAYS);
    const call =
      others.length === 0
        ? COUNT_ONE({ ...only, ...account, since })
        : COUNT_MANY({ ...account, since, given: labelled(items) });
    return { calls: [call], read: ([judged]) => outcomesOf((judged?.rows ?? []) as Judged[]) };
  },
};

const CAPS = ['day', 'dailyCap', 'clientCap', 'payeeCap', 'openCap'] as const;
const isSameDay = (one: CountedClaim, other: CountedClaim): boolean =>
  CAPS.every((cap) => one.account[cap] === other.account[cap]);
const isSame = (one: ProofKey, other: ProofKey): boolean =>
  isEqual(one.paymentHash, other.paymentHash) && one.network === other.network;
const isEqual = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0;

function outcomesOf(judged: readonly Judged[]): ClaimOutcome[] {
  const inOrder = judged.toSorted((one, other) => one.place - other.place);
  return inOrder.map(({ part }) => (part === 'known' || part === 'open' ? 'claimed' : part));
}

/** The rows of claims. Who occurs twice has the label of the first time. */
function labelled(items: readonly CountedClaim[]): object[] {
  return items.map(({ account, ...claim }) => ({
    ...claim,
    ...account,
    client: `c${items.findIndex((one) => isEqual(one.account.clientHash, account.clientHash))}/`,
    payee: `p${items.findIndex((one) => isEqual(one.payTo, claim.payTo))}/`,
  }));
}

// --- Reads

const FIND = sql<ProofKey, ClaimRow>(`
  SELECT network, payment_hash AS "paymentHash", pay_to AS "payTo", amount_msat AS "amountMsat",
         claimed_at AS "claimedAt", request_hash AS "requestHash", state, redeem_until AS "redeemUntil",
         delivered_at AS "deliveredAt", answer, protocol
    FROM lightning_claims WHERE network = @network AND payment_hash = @paymentHash`);
const CLIENT_COUNT = sql<{ day: string; clientHash: Uint8Array }, { claims: number }>(
  'SELECT claims FROM lightning_facilitator_clients WHERE day = @day AND client_hash = @clientHash',
);
const COUNTS = sql<{ day: string; ownPayTo: Uint8Array | null }, FacilitatorCounts>(`
  SELECT claims AS total, coalesce((SELECT claims FROM lightning_facilitator_days WHERE day = @day), 0) AS today,
         nodes, coalesce((SELECT claims FROM lightning_facilitator_nodes WHERE pay_to = @ownPayTo), 0) AS own
    FROM lightning_facilitator_totals WHERE id = 1`);

type Grant = NonNullable<Claim['grant']>;
/** A claim as it is stored. Its grant is null in all columns or in none, but for a protocol of before it was stored. */
type ClaimRow = Omit<Claim, 'grant'> & Omit<Grant, 'answered'> & { requestHash: Uint8Array | null; answer: string };

/** A claim that grants nothing has a null `grant`. */
function claimOf({ requestHash, state, redeemUntil, deliveredAt, answer, protocol, ...claim }: ClaimRow): Claim {
  if (requestHash === null) return { ...claim, grant: null };
  const answered = answer === 'kept';
  return { ...claim, grant: { requestHash, state, redeemUntil, deliveredAt, answered, protocol } };
}

/** Claims and their counters. */
export function createLightningClaims(
  db: LedgerDatabase,
): Pick<LightningStore, 'claim' | 'findClaim' | 'clientCount' | 'facilitatorCounts'> {
  return {
    claim: async (claim) => {
      const { grant, account } = claim;
      if (account && grant) throw new Error('a claim that is counted grants nothing');
      if (account) return db.share('lightning', COUNTED, claim as CountedClaim);
      const granted = grant ? { ...grant, state: 'claimed', answer: 'none' } : NO_GRANT;
      return (await make(db, 'lightning', [CLAIM({ ...claim, ...granted })])) === 1 ? 'claimed' : 'duplicate';
    },
    findClaim: async (key) => {
      const row = await first(db, FIND(key));
      return row && claimOf(row);
    },
    clientCount: async (day, clientHash) => (await first(db, CLIENT_COUNT({ day, clientHash })))?.claims ?? 0,
    facilitatorCounts: (day, ownPayTo) => onlyRow(db, COUNTS({ day, ownPayTo })),
  };
}
