import Database from 'better-sqlite3';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { EARNED, OPEN } from '../payment-columns.ts';
import {
  CLAIM_STATES,
  type Income,
  type LedgerReports,
  type LedgerStatus,
  type ListedPayment,
  PAYMENT_STATES,
  type StateSum,
} from '../ports/reports.ts';

const settledSql = (earned: string, bought: string): string => `
  SELECT 'usdc' AS rail, id, CAST(${earned} AS TEXT) AS amount, ended_at AS at, coalesce(transaction_hash, nonce) AS hash, block, ${bought}
    FROM usdc_payments WHERE state = 'settled' AND ended_at >= @from AND ended_at < @to`;
const claimedSql = (bought: string): string => `
  SELECT 'lightning' AS rail, NULL AS id, amount_msat AS amount, claimed_at AS at, payment_hash AS hash, NULL AS block, ${bought}
    FROM lightning_claims WHERE request_hash IS NOT NULL AND claimed_at >= @from AND claimed_at < @to`;

/**
 * Opens a ledger in a file for reports, without migrating it. Throws when there is no file. A ledger from before the Lightning rail is reported
 * without it, one from before routes or protocols were stored without them, and one from before channels as having none.
 */
export function openLedgerReports(file: string): LedgerReports {
  const db = new Database(file, { readonly: true, fileMustExist: true, timeout: 5000 });
  const hasLightning =
    db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'lightning_claims'").get() !== undefined;
  const column = db.prepare<[string]>("SELECT 1 FROM pragma_table_info('usdc_payments') WHERE name = ?");
  const orNull = (name: string) => (column.get(name) === undefined ? `NULL AS ${name}` : name);
  const bought = `${orNull('route')}, ${orNull('protocol')}`;
  const earned = column.get('channel_id') === undefined ? 'amount' : EARNED;
  // One read transaction, so that the numbers are of one instant.
  const status = db.transaction((): LedgerStatus => {
    const lightning = hasLightning ? readLightning(db) : null;
    return {
      sums: [...usdcSums(db, earned), ...(lightning?.sums ?? [])],
      oldestOpen: oldestOpen(db),
      replies: keptReplies(db, hasLightning),
      lightning: lightning && { invoices: lightning.invoices, facilitatorClaims: lightning.facilitatorClaims },
    };
  });

  return {
    status: async () => status(),
    list: async (state, limit) =>
      db
        .prepare<unknown[], Omit<ListedPayment, 'amount'> & { amount: number }>(
          `SELECT id, state, amount, nonce, transaction_hash AS "transaction", block, reserved_at AS reservedAt, ended_at AS endedAt, ${bought}
             FROM usdc_payments ${state === null ? '' : 'WHERE state = @state'} ORDER BY id DESC LIMIT @limit`,
        )
        .all({ state, limit })
        .map((row) => ({ ...row, amount: BigInt(row.amount) })),
    income: async function* (from, to) {
      const claimed = hasLightning ? `UNION ALL ${claimedSql(bought)}` : '';
      const sql = `${settledSql(earned, bought)} ${claimed} ORDER BY at, hash, id`;
      const rows = db.prepare<unknown[], Omit<Income, 'amount'> & { amount: string }>(sql).iterate({ from, to });
      for (const row of rows) yield { ...row, amount: BigInt(row.amount) };
    },
    close: async () => void db.close(),
  };
}

function usdcSums(db: Sqlite, earned: string): StateSum[] {
  const rows = db
    .prepare<[], { state: string; count: bigint; amount: bigint }>(
      `SELECT state, count(*) AS count, sum(${earned}) AS amount FROM usdc_payments GROUP BY state`,
    )
    .safeIntegers()
    .all();
  return PAYMENT_STATES.map((state) => {
    const row = rows.find((one) => one.state === state);
    return { rail: 'usdc', state, count: Number(row?.count ?? 0), amount: row?.amount ?? 0n };
  });
}

function oldestOpen(db: Sqlite): LedgerStatus['oldestOpen'] {
  const row = db
    .prepare<[], NonNullable<LedgerStatus['oldestOpen']>>(
      `SELECT id, state, reserved_at AS reservedAt FROM usdc_payments
        WHERE state IN ${OPEN} ORDER BY id LIMIT 1`,
    )
    .get();
  return row ?? null;
}

function keptReplies(db: Sqlite, hasLightning: boolean): LedgerStatus['replies'] {
  const tables = ['usdc_replies', ...(hasLightning ? ['lightning_kept_replies', 'lightning_answers'] : [])];
  const bodies = tables.map((table) => `SELECT length(body) AS bytes FROM ${table}`).join(' UNION ALL ');
  const row = db
    .prepare<[], LedgerStatus['replies']>(`SELECT count(*) AS count, coalesce(sum(bytes), 0) AS bytes FROM (${bodies})`)
    .get();
  return row ?? { count: 0, bytes: 0 };
}

function readLightning(db: Sqlite) {
  const count = (sql: string): number => db.prepare<[], number>(sql).pluck().get() ?? 0;
  const claims = db
    .prepare<[], { state: string; amount: string }>(
      'SELECT state, amount_msat AS amount FROM lightning_claims WHERE request_hash IS NOT NULL',
    )
    .all();
  // Added up in JavaScript: the amounts are text, because SQLite's integers have 64 bits.
  const sums = CLAIM_STATES.map((state): StateSum => {
    const amounts = claims.filter((claim) => claim.state === state).map(({ amount }) => BigInt(amount));
    return { rail: 'lightning', state, count: amounts.length, amount: amounts.reduce((a, b) => a + b, 0n) };
  });
  return {
    sums,
    invoices: count('SELECT count(*) FROM lightning_invoices'),
    facilitatorClaims: count('SELECT claims FROM lightning_facilitator_totals'),
  };
}
