import { createHash } from 'node:crypto';
import { Client, type ClientBase, DatabaseError, Pool, type PoolClient, types } from 'pg';
import { AppError } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';

// Connections to PostgreSQL, what runs over them, and what their failures mean. Every wait has a time-out: for a
// connection, on the server for a statement and a transaction that is left open, on the client for a missing answer.

// --- Connections

/** Connections for the write queues, one each. */
const WRITERS = 3;
/** The server drops a client that it cannot reach, with its locks, after about 10 s + 3 × 5 s. */
const KEEP_ALIVE = { tcp_keepalives_idle: 10, tcp_keepalives_interval: 5, tcp_keepalives_count: 3 };
const [BIGINT, NUMERIC] = [20, 1700];

interface PoolOptions {
  readonly url: string;
  /** At least 4. */
  readonly size: number;
  readonly connectTimeoutMs: number;
  /** With the wait for locks. */
  readonly statementTimeoutMs: number;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
}

/** Reads and writes have separate pools, so they never wait for each other. */
export interface Pools {
  readonly writes: Pool;
  readonly reads: Pool;
  /** One statement outside of any transaction. */
  read<Row extends object>(statement: Statement): Promise<Row[]>;
  close(): Promise<void>;
}

/** Connections are made when they are needed. */
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
    // The pool drops an idle connection that breaks.
    pool.on('error', ignore);
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

/** BIGINT holds times and counts, NUMERIC holds money. */
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
  // An acknowledged write must survive a power cut, whatever the server's default.
  await client.query('SET synchronous_commit = on');
  for (const [name, value] of Object.entries(KEEP_ALIVE)) {
    // A server without this setting keeps its own.
    await client.query(`SET ${name} = ${value}`).catch(() => {});
  }
}

/** Lends a connection, and closes it if it comes back inside a transaction or without an answer. */
export async function withClient<T>(pool: Pool, use: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  // A broken connection also rejects its statements. Without a listener the event would end the process.
  client.on('error', ignore);
  let isLost = false;
  try {
    return await use(client);
  } catch (error) {
    // Without an answer the transaction status is stale, and the next user would wait as long.
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
  client.on('error', ignore);
  try {
    await client.connect();
    return await use(client);
  } catch (error) {
    throw asLedgerError(error);
  } finally {
    // The server rolls back what is not committed.
    await client.end().catch(ignore);
  }
}

function ignore(): void {}

// --- Statements

/** A statement and its values. Each connection prepares it once, under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

/** Makes a statement of a text with `@name`, or `@name::type` where the database cannot infer the type. */
export function statement<Values extends object>(text: string): (values: Values) => Statement {
  const names: string[] = [];
  const numbered = text.replaceAll(/@(\w+)/g, (_, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  const name = nameOf(numbered);
  return (values) => ({ name, text: numbered, values: names.map((one) => (values as Record<string, unknown>)[one]) });
}

/** Every process gives a text the same name, and no two texts share one. */
export const nameOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32);

export const fixed = (text: string): Statement => statement<object>(text)({});

/** Resolves with the rows. */
export type Run = <Row extends object>(statement: Statement) => Promise<Row[]>;

// --- Transactions

const [COMMIT, ROLLBACK] = [fixed('COMMIT'), fixed('ROLLBACK')];

/** Resolves once the steps are on disk. They run again when another transaction aborts theirs. */
export type Transact = <T>(steps: (run: Run) => Promise<T>) => Promise<T>;

/** `begin` sets the isolation level. */
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

/** One transaction. What throws is rolled back. */
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

/** A statement as its own transaction. The server commits it unasked, so a paused process holds no lock. */
export function createRun(pool: Pool, retry: Retry): Run {
  return async <Row extends object>(one: Statement): Promise<Row[]> => {
    try {
      return (await retry(() => withClient(pool, (client) => client.query<Row>(one)))).rows;
    } catch (error) {
      throw asLedgerError(error);
    }
  };
}

/** A server that does not answer is not asked: `withClient` closes the connection. */
async function rollback(client: PoolClient, why: unknown): Promise<void> {
  if (!isUnanswered(why)) await client.query(ROLLBACK).catch(() => {});
}

/** Rejects unless everything since BEGIN is on disk now. */
export async function commit(client: PoolClient): Promise<void> {
  const { command } = await client.query(COMMIT);
  // COMMIT of a failed transaction answers ROLLBACK.
  if (command !== 'COMMIT') throw new LedgerDatabaseError('the transaction was undone', null);
}

// --- Retries

/** Hundreds of a queue's turns, and not too long for a waiting buyer. */
const GIVE_UP_MS = 5000;
const LONGEST_PAUSE_MS = 50;

/** Runs a whole transaction, again while another one aborts it. */
export type Retry = <T>(transaction: () => Promise<T>) => Promise<T>;

/**
 * Retries only what the database reported as aborted: after a lost connection or a COMMIT without an answer the outcome
 * is unknown. Pauses are random and double each time, so that two transactions do not conflict again.
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
        // At first without a pause: the other transaction has committed.
        if (attempt > 0) await clock.sleep(Math.random() * Math.min(LONGEST_PAUSE_MS, 2 ** attempt));
      }
    }
  };
}

// --- Failures

/** SQLSTATEs of PostgreSQL and CockroachDB for a transaction that another one aborted. Nothing of it was done. */
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

function isConflict(error: unknown): boolean {
  return codeOf(error) !== null && CONFLICTS.has(codeOf(error) ?? '');
}

/** Whether the statement itself is at fault: bad data, a violated constraint. */
export function isOwnFault(error: unknown): boolean {
  return /^2[23]/.test(codeOf(error) ?? '');
}

/** Of the network and the client, when no server has answered. */
const NETWORK = /^(ECONN|EPIPE$|ETIMEDOUT$|EHOST|ENET|ENOTFOUND$|EAI_)/;
const CLIENT = /timeout|^Connection terminated|^Client (has encountered a connection error|was closed)/;
/** SQLSTATEs of a server that is away: connections, resources, an operator, a disk, a read-only replica, time-outs. */
const SERVER = /^(08|53|57|58|25006$|25P0[34]$|55P03$|40001$|40P01$|CR000$)/;
const RETRY_SECONDS = 5;

/** Whether the outcome is unknown, because the server has not answered. */
function isUnanswered(error: unknown): boolean {
  if (error instanceof DatabaseError || error instanceof LedgerDatabaseError || !(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  return (typeof code === 'string' && NETWORK.test(code)) || CLIENT.test(error.message);
}

/**
 * The failure as the rest of the service gets it: 503 `ledger_unavailable` when the database is away or too slow,
 * though the write may have been made; any other is a bug. Neither has the row that the database repeats: logs write
 * all of an error, and a row holds a signature.
 */
export function asLedgerError(error: unknown): Error {
  const cause = withoutRow(error);
  const isAway = isUnanswered(error) || SERVER.test(codeOf(error) ?? '');
  if (!isAway) return cause;
  const detail = 'the ledger does not answer; try again later';
  return new AppError(503, 'ledger_unavailable', detail, { retryAfterSeconds: RETRY_SECONDS, cause });
}

function withoutRow(error: unknown): Error {
  if (error instanceof DatabaseError) return new LedgerDatabaseError(error.message, error.code ?? null);
  return error instanceof Error ? error : new Error(String(error));
}

const codeOf = (error: unknown): string | null => (error instanceof DatabaseError ? (error.code ?? null) : null);

/** A ledger's place for messages. A URL may hold a password. */
export function ledgerPlace(url: string): string {
  const { hostname, port, pathname } = new URL(url);
  return `${hostname}${port && `:${port}`}${pathname}`;
}
