import type { PoolClient } from 'pg';
import { asLedgerError, LedgerDatabaseError, ledgerPlace, openPools, withClient } from '../db/connections.ts';
import { countLivingInstances } from '../db/migrate.ts';
import { EARNED, OPEN } from '../payment-columns.ts';
import type { PaymentState } from '../ports/payments.ts';
import {
  CLAIM_STATES,
  type Income,
  type LedgerReports,
  type LedgerStatus,
  type ListedPayment,
  PAYMENT_STATES,
  type StateSum,
} from '../ports/reports.ts';

/** A report over a large ledger may take minutes, but a statement that hangs must end. */
const STATEMENT_TIMEOUT_MS = 600_000;
const ROWS_AT_ONCE = 1000;
const UNDEFINED_TABLE = '42P01';
/** All reads see one instant, and the transaction conflicts with no other. */
const BEGIN = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';

const usdcSums = (earned: string): string =>
  `SELECT state, count(*) AS count, sum(${earned}) AS amount FROM usdc_payments GROUP BY state`;
const CLAIM_SUMS = `SELECT state, count(*) AS count, sum(amount_msat) AS amount
  FROM lightning_claims WHERE request_hash IS NOT NULL GROUP BY state`;
const OLDEST_OPEN = `SELECT id, state, reserved_at AS "reservedAt" FROM usdc_payments
  WHERE state IN ${OPEN} ORDER BY id LIMIT 1`;
const REPLIES = `SELECT count(*) AS count, coalesce(sum(bytes), 0)::BIGINT AS bytes FROM (
  SELECT length(body) AS bytes FROM usdc_replies
  UNION ALL SELECT length(body) FROM lightning_kept_replies
  UNION ALL SELECT length(body) FROM lightning_answers) AS bodies`;
const LIGHTNING = `SELECT (SELECT count(*) FROM lightning_invoices) AS invoices,
  (SELECT claims FROM lightning_facilitator_totals) AS "facilitatorClaims"`;
const COLUMNS = `SELECT column_name AS name FROM information_schema.columns
  WHERE table_schema = current_schema() AND table_name = 'usdc_payments'`;
const listSql = (bought: string): string => `
  SELECT id, state, amount, nonce, transaction_hash AS "transaction", block, reserved_at AS "reservedAt", ended_at AS "endedAt", ${bought}
  FROM usdc_payments WHERE $1::text IS NULL OR state = $1 ORDER BY id DESC LIMIT $2`;

interface ReportsOptions {
  readonly url: string;
  readonly connectTimeoutMs: number;
}

/** The reports of a ledger on PostgreSQL. `living` is the number of running services on it. */
export interface PostgresReports extends LedgerReports {
  living(): Promise<number>;
}

/** Opens a ledger on PostgreSQL for reports. It is not migrated. Without a ledger every method rejects with a message that says so. */
export function openPostgresReports({ url, connectTimeoutMs }: ReportsOptions): PostgresReports {
  const pools = openPools({
    url,
    connectTimeoutMs,
    size: 4,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    applicationName: 'percall ledger',
  });
  const look = <T>(read: (client: PoolClient) => Promise<T>): Promise<T> =>
    withClient(pools.reads, async (client) => {
      await client.query(BEGIN);
      const found = await read(client);
      await client.query('COMMIT');
      return found;
    }).catch((error: unknown) => {
      throw readableError(error, url);
    });

  return {
    status: () => look(readStatus),
    list: (state: PaymentState | null, limit: number) =>
      look(
        async (client) =>
          (await client.query<ListedPayment>(listSql((await expressions(client)).bought), [state, limit])).rows,
      ),
    income: async function* (from, to) {
      const client = await pools.reads.connect();
      client.on('error', ignore);
      try {
        await client.query(BEGIN);
        await client.query(`DECLARE income NO SCROLL CURSOR FOR ${incomeSql(from, to, await expressions(client))}`);
        for (let more = true; more; ) {
          const { rows } = await client.query<Income>(`FETCH FORWARD ${ROWS_AT_ONCE} FROM income`);
          yield* rows;
          more = rows.length === ROWS_AT_ONCE;
        }
      } catch (error) {
        throw readableError(error, url);
      } finally {
        client.off('error', ignore);
        // The connection is inside a transaction, so it is closed and not used again.
        client.release(true);
      }
    },
    living: () => look(countLivingInstances),
    close: pools.close,
  };
}

async function readStatus(client: PoolClient): Promise<LedgerStatus> {
  const rows = async <Row extends object>(text: string): Promise<Row[]> => (await client.query<Row>(text)).rows;
  const [oldestOpen] = await rows<NonNullable<LedgerStatus['oldestOpen']>>(OLDEST_OPEN);
  const [replies] = await rows<LedgerStatus['replies']>(REPLIES);
  const [lightning] = await rows<NonNullable<LedgerStatus['lightning']>>(LIGHTNING);
  return {
    sums: [
      ...sumsOf('usdc', PAYMENT_STATES, await rows(usdcSums((await expressions(client)).earned))),
      ...sumsOf('lightning', CLAIM_STATES, await rows(CLAIM_SUMS)),
    ],
    oldestOpen: oldestOpen ?? null,
    replies: replies ?? { count: 0, bytes: 0 },
    lightning: lightning ?? null,
  };
}

type SumRow = Pick<StateSum, 'state' | 'count' | 'amount'>;

function sumsOf(rail: StateSum['rail'], states: readonly string[], rows: readonly SumRow[]): StateSum[] {
  return states.map((state) => {
    const row = rows.find((one) => one.state === state);
    return { rail, state, count: row?.count ?? 0, amount: row?.amount ?? 0n };
  });
}

/** SQL expressions over a payment. */
interface Expressions {
  /** The route and the protocol. */
  readonly bought: string;
  readonly earned: string;
}

/** The expressions that this ledger can compute. One from before routes, protocols or channels lacks their columns, and reports do not migrate it. */
async function expressions(client: PoolClient): Promise<Expressions> {
  const { rows } = await client.query<{ name: string }>(COLUMNS);
  const has = (column: string): boolean => rows.some(({ name }) => name === column);
  const orNull = (column: string): string => (has(column) ? column : `NULL::text AS ${column}`);
  return { bought: `${orNull('route')}, ${orNull('protocol')}`, earned: has('channel_id') ? EARNED : 'amount' };
}

/** Not every server supports parameters in a cursor, so the text contains the bounds, which are integers. */
function incomeSql(from: number, to: number, { bought, earned }: Expressions): string {
  const [first, end] = [BigInt(from), BigInt(to)];
  return `SELECT 'usdc' AS rail, id, ${earned} AS amount, ended_at AS at, coalesce(transaction_hash, nonce) AS hash, block, ${bought}
            FROM usdc_payments WHERE state = 'settled' AND ended_at >= ${first} AND ended_at < ${end}
          UNION ALL
          SELECT 'lightning', NULL, amount_msat, claimed_at, payment_hash, NULL, ${bought}
            FROM lightning_claims WHERE request_hash IS NOT NULL AND claimed_at >= ${first} AND claimed_at < ${end}
          ORDER BY at, hash, id`;
}

function readableError(error: unknown, url: string): Error {
  const plain = asLedgerError(error);
  return plain instanceof LedgerDatabaseError && plain.code === UNDEFINED_TABLE
    ? new Error(`there is no ledger in ${ledgerPlace(url)}`)
    : plain;
}

function ignore(): void {}
