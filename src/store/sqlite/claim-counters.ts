import type { ClaimAccount, FacilitatorCounts } from '../ports/proofs.ts';
import type { Sqlite } from './database.ts';

const COUNT_DAY = `
  INSERT INTO lightning_facilitator_days (day, claims, new_payee_claims) VALUES (@day, 1, @new)
  ON CONFLICT (day) DO UPDATE SET claims = lightning_facilitator_days.claims + 1,
                                  new_payee_claims = lightning_facilitator_days.new_payee_claims + @new`;
const COUNT_CLIENT = `
  INSERT INTO lightning_facilitator_clients (day, client_hash, claims) VALUES (?, ?, 1)
  ON CONFLICT (day, client_hash) DO UPDATE SET claims = lightning_facilitator_clients.claims + 1`;

/** What the ledger knows of a claim's payee. `isNew`: first seen on the claim's day, or unknown. */
interface Payee {
  readonly isKnown: boolean;
  readonly isNew: boolean;
}

/** The facilitator's counters. Everything is synchronous; call it inside the claim's transaction. */
export function createClaimCounters(db: Sqlite) {
  const number = (sql: string) => {
    const statement = db.prepare<unknown[], number>(sql).pluck();
    return (...values: unknown[]): number => statement.get(...values) ?? 0;
  };
  const dayCount = number('SELECT claims FROM lightning_facilitator_days WHERE day = ?');
  const clientCount = number('SELECT claims FROM lightning_facilitator_clients WHERE day = ? AND client_hash = ?');
  const newPayeeCount = number('SELECT new_payee_claims FROM lightning_facilitator_days WHERE day = ?');
  const nodeCount = number('SELECT claims FROM lightning_facilitator_nodes WHERE pay_to = ?');
  const findNode = db.prepare<[Uint8Array], { firstDay: string | null }>(
    'SELECT first_day AS firstDay FROM lightning_facilitator_nodes WHERE pay_to = ?',
  );
  const totals = db.prepare<[], { claims: number; nodes: number }>(
    'SELECT claims, nodes FROM lightning_facilitator_totals WHERE id = 1',
  );
  const countDay = db.prepare(COUNT_DAY);
  const countClient = db.prepare(COUNT_CLIENT);
  const countNode = db.prepare('UPDATE lightning_facilitator_nodes SET claims = claims + 1 WHERE pay_to = ?');
  const addNode = db.prepare('INSERT INTO lightning_facilitator_nodes (pay_to, claims, first_day) VALUES (?, 1, ?)');
  const countTotals = db.prepare(
    'UPDATE lightning_facilitator_totals SET claims = claims + 1, nodes = nodes + ? WHERE id = 1',
  );

  function payeeOf({ day }: ClaimAccount, payTo: Uint8Array): Payee {
    const known = findNode.get(payTo);
    if (!known) return { isKnown: false, isNew: true };
    return { isKnown: true, isNew: known.firstDay !== null && known.firstDay >= day };
  }

  function capOf({ day, clientHash, dailyCap, clientCap, newPayeeCap }: ClaimAccount, payee: Payee) {
    if (dayCount(day) >= dailyCap) return 'daily_cap';
    if (clientCount(day, clientHash) >= clientCap) return 'client_cap';
    return payee.isNew && newPayeeCount(day) >= newPayeeCap ? 'new_payee_cap' : null;
  }

  function count({ day, clientHash }: ClaimAccount, payTo: Uint8Array, { isKnown, isNew }: Payee): void {
    countDay.run({ day, new: isNew ? 1 : 0 });
    countClient.run(day, clientHash);
    if (isKnown) countNode.run(payTo);
    else addNode.run(payTo, day);
    countTotals.run(isKnown ? 0 : 1);
  }

  return {
    payeeOf,
    /** The first cap that refuses a claim: the day's, the client's, that of new payees. Null when none does. */
    capOf,
    /** Counts a claim. */
    count,
    clientCount: ({ day, clientHash }: Pick<ClaimAccount, 'day' | 'clientHash'>): number =>
      clientCount(day, clientHash),
    counts: (day: string, ownPayTo: Uint8Array | null): FacilitatorCounts => {
      const all = totals.get();
      if (!all) throw new Error('the row of the totals is missing');
      return { total: all.claims, today: dayCount(day), nodes: all.nodes, own: ownPayTo ? nodeCount(ownPayTo) : 0 };
    },
  };
}
