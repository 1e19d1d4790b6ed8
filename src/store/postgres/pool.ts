import { type ClientBase, Pool, types } from 'pg';
import { asLedgerError } from './errors.ts';
import type { Statement } from './statement.ts';

/** Connections for the write queues: one each, and one for transactions of several steps. */
const WRITERS = 3;
/** The server gives up on a client that it cannot reach within about 10 s + 3 × 5 s, and with it on the locks of its transaction. */
const KEEP_ALIVE = { tcp_keepalives_idle: 10, tcp_keepalives_interval: 5, tcp_keepalives_count: 3 };
const [BIGINT, NUMERIC] = [20, 1700];

export interface PoolOptions {
  /** postgres://… with everything that the client needs to know, its password too. */
  readonly url: string;
  /** Connections in all, at least 4. */
  readonly size: number;
  /** For a connection to be made, or to become free. */
  readonly connectTimeoutMs: number;
  /** For one statement, its wait for locks included. */
  readonly statementTimeoutMs: number;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
}

/** Connections to the ledger's database: reads never wait behind writes, nor writes behind reads. */
export interface Pools {
  readonly writes: Pool;
  readonly reads: Pool;
  /** One statement outside of any transaction. */
  read<Row extends object>(statement: Statement): Promise<Row[]>;
  close(): Promise<void>;
}

/**
 * Opens both pools; connections are made when they are needed. Every wait ends: to connect, by the server (a statement, a transaction
 * that its client has left open), and by the client where the server does not answer at all.
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
    // A connection that breaks while nobody uses it is taken out of the pool; whoever asks next gets another or hears why not.
    pool.on('error', () => {});
    return pool;
  };
  // Two statements of writers may wait for the same lock one after the other before the server ends either; readers wait for none.
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

/** BIGINT holds times and counts and reads as a number, NUMERIC holds money and reads as a bigint; what would be rounded throws. */
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
    // A server that does not know them keeps its own.
    await client.query(`SET ${name} = ${value}`).catch(() => {});
  }
}
