import { type ClaimRow, claimFromRow } from '../lightning-row.ts';
import type { Claim, ClaimAccount, ClaimOutcome, FacilitatorCounts, NewClaim, ProofKey } from '../ports/proofs.ts';
import type { Sqlite } from './database.ts';

const INSERT = `
  INSERT INTO lightning_claims (network, payment_hash, pay_to, amount_msat, claimed_at, keep_until,
                                request_hash, state, redeem_until, answer, route)
  VALUES (@network, @paymentHash, @payTo, @amountMsat, @claimedAt, @keepUntil,
          @requestHash, @state, @redeemUntil, @answer, @route)`;

/** Of a facilitator's claim for another node, the one that a grant of ours may take the place of. */
const TAKE_OVER = `
  UPDATE lightning_claims
     SET pay_to = @payTo, amount_msat = @amountMsat, claimed_at = @claimedAt, keep_until = max(keep_until, @keepUntil),
         request_hash = @requestHash, state = @state, redeem_until = @redeemUntil, answer = @answer, route = @route
   WHERE network = @network AND payment_hash = @paymentHash AND request_hash IS NULL AND pay_to <> @payTo`;

const NO_GRANT = { requestHash: null, state: null, redeemUntil: null, answer: null, route: null };

/** What is known of a payee when a claim for it is judged. `isNew`: it was first seen on the claim's day, or is not known at all. */
interface Payee {
  readonly isKnown: boolean;
  readonly isNew: boolean;
}

/** Spent proofs. Everything is synchronous: `claim` belongs into a transaction that took the write lock when it began. */
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
  const countDay = db.prepare(
    `INSERT INTO lightning_facilitator_days (day, claims, new_payee_claims) VALUES (@day, 1, @new)
     ON CONFLICT (day) DO UPDATE SET claims = lightning_facilitator_days.claims + 1,
                                     new_payee_claims = lightning_facilitator_days.new_payee_claims + @new`,
  );
  const countClient = db.prepare(
    `INSERT INTO lightning_facilitator_clients (day, client_hash, claims) VALUES (?, ?, 1)
     ON CONFLICT (day, client_hash) DO UPDATE SET claims = lightning_facilitator_clients.claims + 1`,
  );
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

  /** Claims a proof that is not spent, and counts it. */
  function claimCounted(row: object, account: ClaimAccount, payTo: Uint8Array): ClaimOutcome {
    const payee = payeeOf(account, payTo);
    const cap = capOf(account, payee);
    if (cap) return cap;
    insert.run(row);
    count(account, payTo, payee);
    return 'claimed';
  }

  return {
    // A spent proof is told first, whatever the caps say: it will never be claimed, tomorrow either. Then the cap for all, the client's own, and the
    // one for payees that are new today.
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
    clientCount: ({ day, clientHash }) => clientCount(day, clientHash),
    counts: (day, ownPayTo) => {
      const all = totals.get();
      if (!all) throw new Error('the row of the totals is missing');
      return {
        total: all.claims,
        today: dayCount(day),
        nodes: all.nodes,
        own: ownPayTo ? nodeCount(ownPayTo) : 0,
      };
    },
  };
}
