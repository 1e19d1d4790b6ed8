import { createHash } from 'node:crypto';
import { Client, type ClientBase, DatabaseError, Pool, type PoolClient, types } from 'pg';
import { AppError } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';

/** Connections for the write queues: one each, and one for transactions of several steps. */
const WRITERS = 3;
/** The server drops a client that it cannot reach, with the locks of its transaction, after about 10 s + 3 × 5 s. */
const KEEP_ALIVE = { tcp_keepalives_idle: 10, tcp_keepalives_interval: 5, tcp_keepalives_count: 3 };
const [BIGINT, NUMERIC] = [20, 1700];

interface PoolOptions {
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

/** How long a transaction is retried, counted from its first attempt. Long enough for hundreds of queue's turns, short enough for a waiting buyer. */
const GIVE_UP_MS = 5000;
const LONGEST_PAUSE_MS = 50;

/** Runs a whole transaction, and runs it again while the database aborts it because of another one. */
export type Retry = <T>(transaction: () => Promise<T>) => Promise<T>;

/**
 * Retries only transactions that the database reported as aborted. After a lost connection, or a COMMIT without an answer, the outcome is unknown,
 * so the error goes to the caller. Pauses are random and double each time, so that two conflicting transactions do not conflict again.
 */
export function createRetry(clock: Clock, onRetry: () => void = () => {}): Retry {
  return async (transaction) => {
    const giveUpAt = clock.nowMs() + GIVE_UP_MS;
    for (let attempt = 0; ; attempt++) {
      try {
        return await transaction();
      } catch (error) {
        if (!isConflict(error) || clock.nowMs() >= giveUpAt) throw error;
        onRetry();
        // The first retry has no pause, because the conflicting transaction has committed.
        if (attempt > 0) await clock.sleep(Math.random() * Math.min(LONGEST_PAUSE_MS, 2 ** attempt));
      }
    }
  };
}

/** A statement and its values. Each connection prepares it once, under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

/**
 * Parses a text with `@names`, as in the statements for SQLite. The returned function takes their values. A name that occurs twice is one parameter.
 * Where the database cannot infer a parameter's type, the text states it (`@name::text`).
 */
export function statement<Values extends object>(text: string): (values: Values) => Statement {
  const names: string[] = [];
  const numbered = text.replaceAll(/@(\w+)/g, (_, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  const name = nameOf(numbered);
  return (values) => ({ name, text: numbered, values: names.map((one) => (values as Record<string, unknown>)[one]) });
}

/** The hash of the text: every process uses the same name, and no two texts share one. */
export const nameOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32);

/** A statement without parameters. */
export const fixed = (text: string): Statement => statement<object>(text)({});

const [COMMIT, ROLLBACK] = [fixed('COMMIT'), fixed('ROLLBACK')];

/** Runs one statement and resolves with its rows. */
export type Run = <Row extends object>(statement: Statement) => Promise<Row[]>;

/** Runs steps in one transaction and resolves once they are on disk. They are run again when another transaction aborts them. */
export type Transact = <T>(steps: (run: Run) => Promise<T>) => Promise<T>;

/** For writes whose later steps depend on the results of earlier ones. `begin` sets the isolation level. */
export function createTransact(pool: Pool, retry: Retry, begin: Statement): Transact {
  return async <T>(steps: (run: Run) => Promise<T>): Promise<T> => {
    const attempt = () =>
      transact(pool, [begin], (client) =>
        steps(async <Row extends object>(one: Statement) => (await client.query<Row>(one)).rows),
      );
    try {
      return await retry(attempt);
    } catch (error) {
      throw asLedgerError(error);
    }
  };
}

/** One transaction: `begin`, one after the other, then the steps, then COMMIT. What throws is rolled back. */
export function transact<T>(
  pool: Pool,
  begin: readonly (string | Statement)[],
  steps: (client: PoolClient) => Promise<T>,
): Promise<T> {
  return withClient(pool, async (client) => {
    try {
      for (const one of begin) await client.query(one);
      const result = await steps(client);
      await commit(client);
      return result;
    } catch (error) {
      await rollback(client, error);
      throw error;
    }
  });
}

/**
 * Runs one statement as its own transaction, and again when another transaction aborts it. The server commits it without another message from us,
 * so a paused process holds no lock.
 */
export function createRun(pool: Pool, retry: Retry): Run {
  return async <Row extends object>(one: Statement): Promise<Row[]> => {
    try {
      return (await retry(() => withClient(pool, (client) => client.query<Row>(one)))).rows;
    } catch (error) {
      throw asLedgerError(error);
    }
  };
}

/** Lends a connection. Closes it when it comes back inside a transaction or without an answer; the server then rolls back. */
export async function withClient<T>(pool: Pool, use: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  // A broken connection also rejects its statements. An error event without a listener would end the process.
  client.on('error', ignore);
  let isLost = false;
  try {
    return await use(client);
  } catch (error) {
    // After a missing answer the known transaction status is stale, and the next user of the connection would wait as long.
    isLost = isUnanswered(error);
    throw error;
  } finally {
    client.off('error', ignore);
    client.release(isLost || client.getTransactionStatus() !== 'I');
  }
}

/** Lends a connection of its own, whose statements have no time-out, and closes it. */
export async function withOwnClient<T>(
  url: string,
  connectTimeoutMs: number,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: connectTimeoutMs, keepAlive: true });
  // A broken connection also rejects its statement, so the event needs no handling.
  client.on('error', ignore);
  try {
    await client.connect();
    return await use(client);
  } catch (error) {
    throw asLedgerError(error);
  } finally {
    await client.end();
  }
}

/** Rolls back, unless the server does not answer; `withClient` then closes the connection. */
async function rollback(client: PoolClient, why: unknown): Promise<void> {
  if (!isUnanswered(why)) await client.query(ROLLBACK).catch(() => {});
}

/** Rejects unless everything since BEGIN is on disk now. */
export async function commit(client: PoolClient): Promise<void> {
  const { command } = await client.query(COMMIT);
  // The answer to the COMMIT of a transaction that had failed before.
  if (command !== 'COMMIT') throw new LedgerDatabaseError('the transaction was undone', null);
}

function ignore(): void {}

/** SQLSTATEs of PostgreSQL and CockroachDB for a conflict of transactions. Nothing of the transaction was done, and it may be tried again. */
const CONFLICTS = new Set(['40001', '40P01', 'CR000']);

/** A failure of the database, with its SQLSTATE or null. */
export class LedgerDatabaseError extends Error {
  readonly code: string | null;
  constructor(message: string, code: string | null) {
    super(message);
    this.name = 'LedgerDatabaseError';
    this.code = code;
  }
}

/** Whether the database rolled back a transaction because of another one. */
function isConflict(error: unknown): boolean {
  return codeOf(error) !== null && CONFLICTS.has(codeOf(error) ?? '');
}

/** Whether the statement itself caused the error (bad data, a violated constraint). */
export function isOwnFault(error: unknown): boolean {
  return /^2[23]/.test(codeOf(error) ?? '');
}

/** Error codes of the network and the client when no server has answered. */
const NETWORK = /^(ECONN|EPIPE$|ETIMEDOUT$|EHOST|ENET|ENOTFOUND$|EAI_)/;
const CLIENT = /timeout|^Connection terminated|^Client (has encountered a connection error|was closed)/;
/** SQLSTATEs of a server that is unavailable for now: connections, resources, an operator, a disk, a read-only replica, a wait that took too long. */
const SERVER = /^(08|53|57|58|25006$|25P0[34]$|55P03$|40001$|40P01$|CR000$)/;
const RETRY_SECONDS = 5;

/** Whether the outcome of a statement is unknown, because the server has not answered it. */
function isUnanswered(error: unknown): boolean {
  if (error instanceof DatabaseError || error instanceof LedgerDatabaseError || !(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  return (typeof code === 'string' && NETWORK.test(code)) || CLIENT.test(error.message);
}

/**
 * The failure as the rest of the service gets it. It is 503 `ledger_unavailable` when the database is away or too slow; the write may have been made
 * all the same, so a caller must not conclude that nothing was charged. Any other error is a bug and stays as it is. Neither contains the row that the
 * database repeats: logs write every field of an error, and a row holds a signature.
 */
export function asLedgerError(error: unknown): Error {
  const cause = withoutRow(error);
  const isAway = isUnanswered(error) || SERVER.test(codeOf(error) ?? '');
  if (!isAway) return cause;
  const detail = 'the ledger does not answer; try again later';
  return new AppError(503, 'ledger_unavailable', detail, { retryAfterSeconds: RETRY_SECONDS, cause });
}

/** The failure without the row that the database repeats in it. */
function withoutRow(error: unknown): Error {
  if (error instanceof DatabaseError) return new LedgerDatabaseError(error.message, error.code ?? null);
  return error instanceof Error ? error : new Error(String(error));
}

const codeOf = (error: unknown): string | null => (error instanceof DatabaseError ? (error.code ?? null) : null);

/** The place of a ledger for messages: host, port and database only, because a URL may hold a password. */
export function ledgerPlace(url: string): string {
  const { hostname, port, pathname } = new URL(url);
  return `${hostname}${port && `:${port}`}${pathname}`;
}
