import type { Pool, PoolClient } from 'pg';
import { asLedgerError, isUnanswered, LedgerDatabaseError } from './errors.ts';
import type { Retry } from './retry.ts';
import { fixed, type Statement } from './statement.ts';

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
