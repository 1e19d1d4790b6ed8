import { type ClientBase, Pool, types } from 'pg';
import { asLedgerError } from './errors.ts';
import type { Statement } from './statement.ts';

/** Connections for the write queues: one each, and one for transactions of several steps. */
const WRITERS = 3;
/** The server drops a client that it cannot reach, with the locks of its transaction, after about 10 s + 3 × 5 s. */
const KEEP_ALIVE = { tcp_keepalives_idle: 10, tcp_keepalives_interval: 5, tcp_keepalives_count: 3 };
const [BIGINT, NUMERIC] = [20, 1700];

export interface PoolOptions {
  /** postgres://… with all connection parameters, the password included. */
  readonly url: string;
  /** The number of connections, at least 4. */
  readonly size: number;
  /** Time-out to make a connection, or to get a free one. */
  readonly connectTimeoutMs: number;
  /** Time-out of one statement, its wait for locks included. */
  readonly statementTimeoutMs: number;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
}

/** Connections to the ledger's database. Reads and writes have separate pools and never wait for each other. */
export interface Pools {
  readonly writes: Pool;
  readonly reads: Pool;
  /** One statement outside of any transaction. */
  read<Row extends object>(statement: Statement): Promise<Row[]>;
  close(): Promise<void>;
}

/**
 * Opens both pools; connections are made when they are needed. Every wait has a time-out: for a connection, on the server for a statement and for
 * a transaction that its client has left open, and on the client for a missing answer.
 */
export function openPools(options: PoolOptions): Pools {
  const { statementTimeoutMs } = options;
  const open = (max: number, waitMs: number): Pool => {
    const pool = new Pool({
      connectionString: options.url,
      max,
      connectionTimeoutMillis: options.connectTimeoutMs,
      idleTimeoutMillis: 60_000,
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: statementTimeoutMs,
      query_timeout: waitMs + 1000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      application_name: options.applicationName,
      types: { getTypeParser },
      pipeline: true,
      onConnect: prepareSession,
    });
    // The pool drops an idle connection that breaks. The next caller gets another one, or an error.
    pool.on('error', () => {});
    return pool;
  };
  // Two pipelined statements of a writer may each wait for a lock up to their time-out. Readers wait for no lock.
  const writes = open(WRITERS, 2 * statementTimeoutMs);
  const reads = open(options.size - WRITERS, statementTimeoutMs);

  return {
    writes,
    reads,
    read: async <Row extends object>(statement: Statement) => {
      try {
        return (await reads.query<Row>(statement)).rows;
      } catch (error) {
        throw asLedgerError(error);
      }
    },
    close: async () => {
      await Promise.all([writes.end(), reads.end()]);
    },
  };
}

/** BIGINT holds times and counts and is read as a number. NUMERIC holds money and is read as a bigint. A value that would be rounded throws. */
const getTypeParser = ((oid: number, format: 'text' | 'binary') => {
  if (oid === BIGINT) return toNumber;
  if (oid === NUMERIC) return BigInt;
  return types.getTypeParser(oid, format);
}) as typeof types.getTypeParser;

function toNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new Error(`${text} is beyond the integers that a number holds`);
  return value;
}

async function prepareSession(client: ClientBase): Promise<void> {
  // An acknowledged write must survive a power cut, whatever the server's or the role's own default.
  await client.query('SET synchronous_commit = on');
  for (const [name, value] of Object.entries(KEEP_ALIVE)) {
    // A server without this setting keeps its own.
    await client.query(`SET ${name} = ${value}`).catch(() => {});
  }
}
