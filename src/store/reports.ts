import Database from 'better-sqlite3';
import type { Pool } from 'pg';
import { asLedgerError, LedgerDatabaseError, ledgerPlace, openPools, withClient } from './db/connections.ts';
import { countLivingInstances } from './db/migrate.ts';
import type { Call, Plan } from './db/port.ts';
import { createLook, LOOK } from './db/postgres.ts';
import { statementOf } from './db/postgres-text.ts';
import { rowsOf, sql } from './db/sql.ts';
import { createCalls } from './db/sqlite.ts';
import { EARNED, OPEN } from './payments.ts';
import {
  CLAIM_STATES,
  type Income,
  type LedgerReports,
  type LedgerStatus,
  type ListedPayment,
  PAYMENT_STATES,
  type StateSum,
} from './ports/reports.ts';

// The operator's reports over a ledger as old as it is: nothing is migrated, and nothing written.
// 1. Ask which columns the ledger has.
// 2. Read those. One from before the Lightning rail is reported without it, one from before routes or protocols with
//    null in their place, one from before channels as having none.
// 3. The income is a stream. There the two databases differ: see the end.

/** What this ledger can answer, as SQL. */
interface Schema {
  readonly hasLightning: boolean;
  /** What a payment earned; its amount in a ledger from before channels. */
  readonly earned: string;
  /** The route and the protocol of a row of a table. */
  bought(table: string): string;
}

const COLUMNS = sql<object, { table_name: string; column_name: string }>(`
  SELECT table_name, column_name FROM {COLUMNS} AS columns
   WHERE table_name IN ('usdc_payments', 'lightning_claims')`);

function* readSchema(): Plan<Schema> {
  const columns = yield* rowsOf(COLUMNS({}));
  const has = (table: string, column: string): boolean =>
    columns.some((one) => one.table_name === table && one.column_name === column);
  return {
    hasLightning: has('lightning_claims', 'state'),
    earned: has('usdc_payments', 'channel_id') ? EARNED : 'amount',
    bought: (table) =>
      ['route', 'protocol'].map((one) => (has(table, one) ? one : `CAST(NULL AS TEXT) AS ${one}`)).join(', '),
  };
}

// --- The status

type SumRow = Pick<StateSum, 'state' | 'count' | 'amount'>;

const paymentSums = ({ earned }: Schema) =>
  sql<object, SumRow>(`SELECT state, count(*) AS count, sum(${earned}) AS amount FROM usdc_payments GROUP BY state`);
const OLDEST_OPEN = sql<object, NonNullable<LedgerStatus['oldestOpen']>>(
  `SELECT id, state, reserved_at AS "reservedAt" FROM usdc_payments WHERE state IN ${OPEN} ORDER BY id LIMIT 1`,
);
const replies = (tables: readonly string[]) =>
  sql<object, LedgerStatus['replies']>(`
    SELECT count(*) AS count, CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes
      FROM (${tables.map((table) => `SELECT length(body) AS bytes FROM ${table}`).join(' UNION ALL ')}) AS bodies`);
// For each amount, because SQLite holds millisatoshis as text and cannot add them up exactly.
const CLAIM_SUMS = sql<object, { state: string; count: number; amountMsat: bigint }>(`
  SELECT state, count(*) AS count, amount_msat AS "amountMsat" FROM lightning_claims
   WHERE request_hash IS NOT NULL GROUP BY state, amount_msat`);
const LIGHTNING = sql<object, NonNullable<LedgerStatus['lightning']>>(`
  SELECT (SELECT count(*) FROM lightning_invoices) AS invoices,
         (SELECT claims FROM lightning_facilitator_totals) AS "facilitatorClaims"`);

function* readStatus(): Plan<LedgerStatus> {
  const schema = yield* readSchema();
  const sums = sumsOf('usdc', PAYMENT_STATES, yield* rowsOf(paymentSums(schema)({})));
  const [oldestOpen = null] = yield* rowsOf(OLDEST_OPEN({}));
  const bodies = ['usdc_replies', ...(schema.hasLightning ? ['lightning_kept_replies', 'lightning_answers'] : [])];
  const [kept = { count: 0, bytes: 0 }] = yield* rowsOf(replies(bodies)({}));
  if (!schema.hasLightning) return { sums, oldestOpen, replies: kept, lightning: null };

  const claims = yield* rowsOf(CLAIM_SUMS({}));
  const claimed = claims.map(({ state, count, amountMsat }) => ({ state, count, amount: amountMsat * BigInt(count) }));
  const [lightning = null] = yield* rowsOf(LIGHTNING({}));
  return { sums: [...sums, ...sumsOf('lightning', CLAIM_STATES, claimed)], oldestOpen, replies: kept, lightning };
}

/** One sum for each state, also for a state that no row has. */
function sumsOf(rail: StateSum['rail'], states: readonly string[], rows: readonly SumRow[]): StateSum[] {
  return states.map((state) => {
    const found = rows.filter((row) => row.state === state);
    const count = found.reduce((sum, row) => sum + row.count, 0);
    return { rail, state, count, amount: found.reduce((sum, row) => sum + (row.amount ?? 0n), 0n) };
  });
}

// --- The list and the income

function* readList(state: string | null, limit: number): Plan<ListedPayment[]> {
  const { bought } = yield* readSchema();
  const list = sql<{ state: string | null; limit: number }, ListedPayment>(`
    SELECT id, state, amount, nonce, transaction_hash AS "transaction", block, reserved_at AS "reservedAt",
           ended_at AS "endedAt", ${bought('usdc_payments')}
      FROM usdc_payments ${state === null ? '' : 'WHERE state = @state'} ORDER BY id DESC LIMIT @limit`);
  return [...(yield* rowsOf(list({ state, limit })))];
}

/** The bounds, which are integers, stand in the text: not every server takes parameters in a cursor. */
function incomeOf({ hasLightning, earned, bought }: Schema, from: number, to: number): Call<Income> {
  const within = (column: string) => `${column} >= ${BigInt(from)} AND ${column} < ${BigInt(to)}`;
  const claimed = `UNION ALL
    SELECT 'lightning', NULL, amount_msat, claimed_at, payment_hash, NULL, ${bought('lightning_claims')}
      FROM lightning_claims WHERE request_hash IS NOT NULL AND ${within('claimed_at')}`;
  return sql<object, Income>(`
    SELECT 'usdc' AS rail, id, ${earned} AS amount, ended_at AS at, coalesce(transaction_hash, nonce) AS hash, block,
           ${bought('usdc_payments')}
      FROM usdc_payments WHERE state = 'settled' AND ${within('ended_at')}
    ${hasLightning ? claimed : ''} ORDER BY at, hash, id`)({});
}

// --- The two databases

interface Reads {
  /** Several reads of one instant. */
  look<T>(plan: () => Plan<T>): Promise<T>;
  /** The rows of one statement, which never are in memory together. */
  stream<Row extends object>(call: Call<Row>): AsyncIterable<Row>;
  close(): Promise<void>;
}

const createReports = ({ look, stream, close }: Reads): LedgerReports => ({
  status: () => look(readStatus),
  list: (state, limit) => look(() => readList(state, limit)),
  income: async function* (from, to) {
    yield* stream(incomeOf(await look(readSchema), from, to));
  },
  close,
});

/** Opens a ledger in a file for reports. Throws when there is no file. */
export function openLedgerReports(file: string): LedgerReports {
  const db = new Database(file, { readonly: true, fileMustExist: true, timeout: 5000 });
  const { look, iterate } = createCalls(db);
  return createReports({
    look: async (plan) => look(plan),
    stream: async function* (call) {
      yield* iterate(call);
    },
    close: async () => void db.close(),
  });
}

/** A report over a large ledger may take minutes, but a statement that hangs must end. */
const STATEMENT_TIMEOUT_MS = 600_000;
const ROWS_AT_ONCE = 1000;
const UNDEFINED_TABLE = '42P01';

/** The reports of a ledger on PostgreSQL. `living` is the number of running services on it. */
export interface PostgresReports extends LedgerReports {
  living(): Promise<number>;
}

/** Opens a ledger on PostgreSQL for reports. Without a ledger every method rejects with a message that says so. */
export function openPostgresReports(url: string, connectTimeoutMs: number): PostgresReports {
  const limits = { connectTimeoutMs, statementTimeoutMs: STATEMENT_TIMEOUT_MS };
  const { reads, close } = openPools({ url, size: 4, ...limits, applicationName: 'percall ledger' });
  const refuse = (error: unknown): never => {
    const plain = asLedgerError(error);
    const isMissing = plain instanceof LedgerDatabaseError && plain.code === UNDEFINED_TABLE;
    throw isMissing ? new Error(`there is no ledger in ${ledgerPlace(url)}`) : plain;
  };
  const look = createLook(reads, (transaction) => transaction());
  const reports = createReports({
    look: (plan) => look(plan).catch(refuse),
    stream: async function* (call) {
      try {
        yield* fetchAll(reads, call);
      } catch (error) {
        refuse(error);
      }
    },
    close,
  });
  return { ...reports, living: () => withClient(reads, countLivingInstances).catch(refuse) };
}

/** Reads through a cursor. */
async function* fetchAll<Row extends object>(pool: Pool, call: Call<Row>): AsyncIterable<Row> {
  const client = await pool.connect();
  // A broken connection also rejects its statement, so the event needs no handling.
  client.on('error', ignore);
  try {
    await client.query(LOOK);
    await client.query(`DECLARE report NO SCROLL CURSOR FOR ${statementOf(call).text}`);
    for (let more = true; more; ) {
      const { rows } = await client.query<Row>(`FETCH FORWARD ${ROWS_AT_ONCE} FROM report`);
      yield* rows;
      more = rows.length === ROWS_AT_ONCE;
    }
  } finally {
    client.off('error', ignore);
    // The connection is inside a transaction, so it is closed and not used again.
    client.release(true);
  }
}

function ignore(): void {}
