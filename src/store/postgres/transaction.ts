import type { Pool, PoolClient } from 'pg';
import { asLedgerError, isUnanswered, LedgerDatabaseError } from './errors.ts';
import type { Retry } from './retry.ts';
import { fixed, type Statement } from './statement.ts';

const [COMMIT, ROLLBACK] = [fixed('COMMIT'), fixed('ROLLBACK')];

/** Runs one statement and resolves with its rows. */
export type Run = <Row extends object>(statement: Statement) => Promise<Row[]>;

/** Runs steps in one transaction, whole or not at all, and resolves once they are on disk; they are run anew when another's transaction undid them. */
export type Transact = <T>(steps: (run: Run) => Promise<T>) => Promise<T>;

/** For writes of several steps in which a later one depends on what an earlier one found; `begin` tells the isolation. */
export function createTransact(pool: Pool, retry: Retry, begin: Statement): Transact {
  return async <T>(steps: (run: Run) => Promise<T>): Promise<T> => {
    const attempt = () =>
      withClient(pool, async (client) => {
        await client.query(begin);
        try {
          const result = await steps(async <Row extends object>(one: Statement) => (await client.query<Row>(one)).rows);
          await commit(client);
          return result;
        } catch (error) {
          await rollback(client, error);
          throw error;
        }
      });
    try {
      return await retry(attempt);
    } catch (error) {
      throw asLedgerError(error);
    }
  };
}

/**
 * Runs one statement as a transaction of its own, anew when another's undid it. The server ends it without hearing from us again, so whoever
 * falls asleep in the middle holds no lock.
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

/** Lends a connection, and throws it away when it comes back in the middle of a transaction or deaf: the server then undoes what was begun. */
export async function withClient<T>(pool: Pool, use: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  // A connection that breaks tells every statement of it; told to nobody it would end the process.
  client.on('error', ignore);
  let deaf = false;
  try {
    return await use(client);
  } catch (error) {
    // What it last told of its transaction is not what holds now; whoever got it next would wait as long.
    deaf = isUnanswered(error);
    throw error;
  } finally {
    client.off('error', ignore);
    client.release(deaf || client.getTransactionStatus() !== 'I');
  }
}

/** Undoes what was begun, unless nobody answers: that connection is thrown away. */
export async function rollback(client: PoolClient, why: unknown): Promise<void> {
  if (!isUnanswered(why)) await client.query(ROLLBACK).catch(() => {});
}

/** Rejects unless everything since BEGIN is on disk now. */
export async function commit(client: PoolClient): Promise<void> {
  const { command } = await client.query(COMMIT);
  // The answer to the COMMIT of a transaction that had failed before.
  if (command !== 'COMMIT') throw new LedgerDatabaseError('the transaction was undone', null);
}

function ignore(): void {}
