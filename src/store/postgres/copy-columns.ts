import type { ClientBase } from 'pg';
import type { Sqlite } from '../../lib/sqlite-file.ts';

/** The types of the ledger's columns on PostgreSQL. Each has its own form as an array parameter and in a sum. */
type ColumnType = 'text' | 'bytea' | 'bigint' | 'integer' | 'numeric' | 'boolean';

/** A column of a table that is copied. */
export interface CopyColumn {
  readonly name: string;
  /** The expression that reads it from SQLite. */
  readonly source: string;
  readonly type: ColumnType;
}

/** A table that is copied. `own`: the SQL condition that the one row of the migrations was changed. */
export interface CopyTable {
  readonly name: string;
  readonly own?: string;
  readonly hasStates?: true;
  /** The column whose sum is reported: money, or a count. */
  readonly amount?: string;
}

/** Every table of a ledger, parents before their children. */
export const COPY_TABLES: readonly CopyTable[] = [
  { name: 'usdc_payments', hasStates: true, amount: 'amount' },
  { name: 'usdc_replies' },
  { name: 'channels', amount: 'charged' },
  { name: 'channel_operations', hasStates: true, amount: 'amount' },
  { name: 'gateway_transfers' },
  { name: 'lightning_invoices', amount: 'amount_msat' },
  { name: 'lightning_kept_replies' },
  { name: 'lightning_claims', hasStates: true, amount: 'amount_msat' },
  { name: 'lightning_answers' },
  { name: 'lightning_facilitator_totals', own: 'claims <> 0 OR nodes <> 0', amount: 'claims' },
  { name: 'lightning_facilitator_nodes', amount: 'claims' },
  { name: 'lightning_facilitator_days', amount: 'claims' },
  { name: 'lightning_facilitator_clients', amount: 'claims' },
  { name: 'lightning_facilitator_payees', amount: 'claims' },
  { name: 'self_tests' },
  { name: 'relayer_spending', amount: 'wei' },
  { name: 'catalogue_copy' },
  { name: 'market_listings' },
  { name: 'market_calls' },
  { name: 'market_state', own: 'revision <> 0' },
  { name: 'service_keys' },
  { name: 'provider_notes' },
  { name: 'book_entries', amount: 'amount' },
];

/** Columns that only PostgreSQL has: a payment's place among its payer's payments, which is the order of reservation. */
const DERIVED: Record<string, string> = { 'usdc_payments.place': 'rowid' };
const TYPES: readonly string[] = ['text', 'bytea', 'bigint', 'integer', 'numeric', 'boolean'] satisfies ColumnType[];

/** The columns of a table in the order of the target. Throws when source and target have different columns, for example after a one-sided migration. */
export async function readColumns(source: Sqlite, target: ClientBase, table: string): Promise<readonly CopyColumn[]> {
  const { rows } = await target.query<{ name: string; type: string }>(
    `SELECT column_name AS name, data_type AS type FROM information_schema.columns
      WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position`,
    [table],
  );
  const here = source.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck().all(table);
  const columns = rows.map(({ name, type }) => ({ name, type, source: DERIVED[`${table}.${name}`] ?? `"${name}"` }));
  const known = columns.filter(({ name }) => DERIVED[`${table}.${name}`] === undefined).map(({ name }) => name);
  if ([...known].sort().join() !== [...here].sort().join())
    throw new Error(`${table} has other columns in the target than in the source`);
  return columns.map(({ name, type, source: from }) => {
    if (!isColumnType(type)) throw new Error(`${table}.${name} is of a type that is not copied: ${type}`);
    return { name, type, source: from };
  });
}

function isColumnType(type: string): type is ColumnType {
  return TYPES.includes(type);
}
