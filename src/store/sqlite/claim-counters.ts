import type { Sqlite } from '../../lib/sqlite-file.ts';
import { capValues, KNOWN } from '../claim-caps.ts';
import type { ClaimAccount, FacilitatorCounts, ReachedCap } from '../ports/lightning.ts';

const COUNT_DAY = `
  INSERT INTO lightning_facilitator_days (day, claims, new_payee_claims, known_payees) VALUES (@day, 1, @open, @knownPayees)
  ON CONFLICT (day) DO UPDATE SET claims = lightning_facilitator_days.claims + 1,
                                  new_payee_claims = lightning_facilitator_days.new_payee_claims + @open,
                                  known_payees = @knownPayees`;
const COUNT_CLIENT = `
  INSERT INTO lightning_facilitator_clients (day, client_hash, claims) VALUES (?, ?, 1)
  ON CONFLICT (day, client_hash) DO UPDATE SET claims = lightning_facilitator_clients.claims + 1`;
const COUNT_PAYEE = `
  INSERT INTO lightning_facilitator_payees (pay_to, day, claims, client, other_clients) VALUES (?, ?, 1, ?, 0)
  ON CONFLICT (pay_to, day) DO UPDATE SET claims = lightning_facilitator_payees.claims + 1,
    other_clients = CASE WHEN client = excluded.client THEN other_clients ELSE 1 END`;
// The version before reads `first_day`, and may run beside this one: a payee without it is no new one there.
const COUNT_NODE = `
  INSERT INTO lightning_facilitator_nodes (pay_to, claims, first_day) VALUES (?, 1, ?)
  ON CONFLICT (pay_to) DO UPDATE SET claims = lightning_facilitator_nodes.claims + 1`;

const IS_KNOWN = `
  SELECT ${KNOWN} FROM lightning_facilitator_payees WHERE pay_to = @payTo AND day >= @since AND day < @day`;
/** Reads a month of payees, once a day. */
const KNOWN_PAYEES = `
  SELECT count(*) FROM (
    SELECT pay_to FROM lightning_facilitator_payees WHERE day >= @since AND day < @day GROUP BY pay_to HAVING ${KNOWN})`;

interface Day {
  readonly claims: number;
  /** Of these, in the open part. */
  readonly open: number;
  readonly knownPayees: number;
}

/** The part of the day in which a claim is counted, or the cap that refuses it. */
type Part = 'known' | 'open' | ReachedCap;

/** Reads of the counters. */
function createReads(db: Sqlite) {
  const number = <Values extends unknown[]>(sql: string) => {
    const statement = db.prepare<Values, number>(sql).pluck();
    return (...values: Values): number => statement.get(...values) ?? 0;
  };
  const findDay = db.prepare<[string], Omit<Day, 'knownPayees'> & { knownPayees: number | null }>(
    `SELECT claims, new_payee_claims AS open, known_payees AS knownPayees
       FROM lightning_facilitator_days WHERE day = ?`,
  );
  const knownPayees = number<[object]>(KNOWN_PAYEES);
  const isKnown = number<[object]>(IS_KNOWN);
  return {
    today: (day: string): number => findDay.get(day)?.claims ?? 0,
    day(account: ClaimAccount): Day {
      const { claims, open, knownPayees: counted } = findDay.get(account.day) ?? NO_CLAIMS;
      return { claims, open, knownPayees: counted ?? knownPayees(capValues(account)) };
    },
    ofClient: number<[string, Uint8Array]>(
      'SELECT claims FROM lightning_facilitator_clients WHERE day = ? AND client_hash = ?',
    ),
    ofPayee: number<[Uint8Array, string]>(
      'SELECT claims FROM lightning_facilitator_payees WHERE pay_to = ? AND day = ?',
    ),
    ofNode: number<[Uint8Array]>('SELECT claims FROM lightning_facilitator_nodes WHERE pay_to = ?'),
    isKnown: (account: ClaimAccount, payTo: Uint8Array): boolean => isKnown({ ...capValues(account), payTo }) === 1,
    totals: db.prepare<[], { claims: number; nodes: number }>(
      'SELECT claims, nodes FROM lightning_facilitator_totals WHERE id = 1',
    ),
  };
}

const NO_CLAIMS = { claims: 0, open: 0, knownPayees: null };

/** The first cap that refuses a claim, in the port's order, or the part of the day in which it is counted. */
function partOf(reads: ReturnType<typeof createReads>, account: ClaimAccount, payTo: Uint8Array, day: Day): Part {
  const { dailyCap, openCap } = account;
  const mine = reads.ofPayee(payTo, account.day);
  if (day.claims >= dailyCap) return 'daily_cap';
  if (reads.ofClient(account.day, account.clientHash) >= account.clientCap) return 'client_cap';
  if (mine >= account.payeeCap) return 'payee_cap';
  const known = reads.isKnown(account, payTo);
  const knownCap = dailyCap - openCap;
  const share = Math.max(1, Math.floor(knownCap / Math.max(1, day.knownPayees)));
  if (known && mine < share && day.claims - day.open < knownCap) return 'known';
  if (day.open < openCap) return 'open';
  return known ? 'known_cap' : 'open_cap';
}

/** The facilitator's counters. Everything is synchronous; call it inside the claim's transaction. */
export function createClaimCounters(db: Sqlite) {
  const reads = createReads(db);
  const countDay = db.prepare(COUNT_DAY);
  const countClient = db.prepare(COUNT_CLIENT);
  const countPayee = db.prepare(COUNT_PAYEE);
  const countNode = db.prepare(COUNT_NODE);
  const countTotals = db.prepare(
    'UPDATE lightning_facilitator_totals SET claims = claims + 1, nodes = nodes + ? WHERE id = 1',
  );

  return {
    /** Counts a claim, and returns null. Where a cap refuses it, counts nothing and returns the first that does. */
    count(account: ClaimAccount, payTo: Uint8Array): ReachedCap | null {
      const day = reads.day(account);
      const part = partOf(reads, account, payTo, day);
      if (part !== 'known' && part !== 'open') return part;
      const isFirst = reads.ofNode(payTo) === 0;
      countDay.run({ day: account.day, open: part === 'open' ? 1 : 0, knownPayees: day.knownPayees });
      countClient.run(account.day, account.clientHash);
      countPayee.run(payTo, account.day, account.payeeClientHash);
      countNode.run(payTo, account.day);
      countTotals.run(isFirst ? 1 : 0);
      return null;
    },
    clientCount: ({ day, clientHash }: Pick<ClaimAccount, 'day' | 'clientHash'>): number =>
      reads.ofClient(day, clientHash),
    counts: (day: string, ownPayTo: Uint8Array | null): FacilitatorCounts => {
      const all = reads.totals.get();
      if (!all) throw new Error('the row of the totals is missing');
      const own = ownPayTo ? reads.ofNode(ownPayTo) : 0;
      return { total: all.claims, today: reads.today(day), nodes: all.nodes, own };
    },
  };
}
