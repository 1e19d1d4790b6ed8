import type { Pool, QueryResult } from 'pg';
import { asLedgerError, isOwnFault } from './errors.ts';
import type { Retry } from './retry.ts';
import { fixed, type Statement, statement } from './statement.ts';
import { commit, rollback, withClient } from './transaction.ts';

/** Writes of one transaction at most: what waits for it must not wait long. */
const MAX_BATCH = 128;

const [LOOK, LEAVE] = [fixed('BEGIN ISOLATION LEVEL READ COMMITTED'), fixed('ROLLBACK')];
const BEGIN = fixed('BEGIN ISOLATION LEVEL SERIALIZABLE');
const AWAIT_TURN = statement<{ turn: string }>('SELECT name FROM ledger_turns WHERE name = @turn FOR UPDATE');
const TAKE_TURN = statement<{ turn: string }>('UPDATE ledger_turns SET taken = taken + 1 WHERE name = @turn');

/** What a statement changed or returned. */
export type Result = Pick<QueryResult, 'rows' | 'rowCount'>;

/** Statements whose outcome tells the write's. Each of them is legal by itself: what must happen whole is one statement. */
export interface Write<T> {
  readonly statements: readonly Statement[];
  read(results: readonly Result[]): T;
}

/** Writes that can share one statement where they come one after the other; each must end as it would by itself. */
export interface Kind<Item, T> {
  /** Whether one more may come into the statement of these. */
  admits(items: readonly Item[], next: Item): boolean;
  /** All of them, which tells how each went. */
  write(items: readonly Item[]): Write<readonly T[]>;
}

/** A write that shares nothing. */
const ALONE: Kind<Write<unknown>, unknown> = {
  admits: () => false,
  write: ([only]) => ({ statements: only?.statements ?? [], read: (results) => [only?.read(results)] }),
};

/** Runs writes, in the order in which they came; each resolves once it is on disk. */
export interface WriteQueue {
  write<T>(write: Write<T>): Promise<T>;
  /** Runs one write of a kind. */
  share<Item, T>(kind: Kind<Item, T>, item: Item): Promise<T>;
  /** Resolves when nothing waits any more. */
  idle(): Promise<void>;
}

interface Waiting {
  readonly kind: Kind<unknown, unknown>;
  readonly item: unknown;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface LaneOptions {
  readonly pool: Pool;
  readonly retry: Retry;
  /** Whose turns it takes: queues of one name in all instances write one after the other. */
  readonly turn: string;
}

/**
 * Lets concurrent writes share one durable SERIALIZABLE transaction and two round trips, as group commit does on SQLite.
 * 1. Writes wait for the end of the event loop's turn, or of the transaction before theirs; one transaction runs at a time. Neighbours of one
 *    kind become one statement: what each statement costs both sides is most of what a short write costs.
 * 2. It waits for its turn among the instances, begins, takes the turn and sends everything up to COMMIT at once. The wait is outside of the
 *    transaction, because what a transaction sees is what was there when it began: two that overlap are told to try again, and pages that both
 *    touch are enough for that. A turn makes a queue of it; what the turn does not cover is what SERIALIZABLE is for.
 * 3. A transaction that another one's undid is tried again, whole. One that breaks a rule is undone, and its writes run in halves, and halves of
 *    those, so that the one at fault rejects alone.
 * 4. Nothing resolves before COMMIT was answered. Where the connection is lost before that, all of its writes reject, and whether they are in the
 *    database is not known.
 */
export function createWriteQueue({ pool, retry, turn }: LaneOptions): WriteQueue {
  let waiting: Waiting[] = [];
  let running: Promise<void> | null = null;
  const turns = { await: AWAIT_TURN({ turn }), take: TAKE_TURN({ turn }) };

  async function drain(): Promise<void> {
    await new Promise(setImmediate);
    while (waiting.length > 0) {
      const batch = waiting.slice(0, MAX_BATCH);
      waiting = waiting.slice(MAX_BATCH);
      await run(batch);
    }
    running = null;
  }

  async function run(batch: readonly Waiting[]): Promise<void> {
    try {
      const steps = stepsOf(batch);
      const statements = steps.flatMap(({ write }) => write.statements);
      settle(steps, await retry(() => transact(pool, turns, statements)));
    } catch (error) {
      const half = Math.ceil(batch.length / 2);
      if (isOwnFault(error) && batch.length > 1)
        for (const part of [batch.slice(0, half), batch.slice(half)]) await run(part);
      else for (const one of batch) one.reject(asLedgerError(error));
    }
  }

  const share = <Item, T>(kind: Kind<Item, T>, item: Item): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      // Items of a kind meet no other kind's.
      waiting.push({
        kind: kind as Kind<unknown, unknown>,
        item,
        resolve: resolve as (value: unknown) => void,
        reject,
      });
      running ??= drain();
    });

  return {
    share,
    write: <T>(write: Write<T>) => share(ALONE as Kind<Write<T>, T>, write),
    idle: async () => {
      while (running) await running;
    },
  };
}

interface Step {
  readonly write: Write<readonly unknown[]>;
  readonly waiting: readonly Waiting[];
}

/** The batch in its order, neighbours of one kind together. */
function stepsOf(batch: readonly Waiting[]): Step[] {
  const groups: { kind: Waiting['kind']; items: unknown[]; waiting: Waiting[] }[] = [];
  for (const one of batch) {
    const last = groups.at(-1);
    if (last && last.kind === one.kind && last.kind.admits(last.items, one.item)) {
      last.items.push(one.item);
      last.waiting.push(one);
    } else groups.push({ kind: one.kind, items: [one.item], waiting: [one] });
  }
  return groups.map(({ kind, items, waiting }) => ({ write: kind.write(items), waiting }));
}

function settle(steps: readonly Step[], results: readonly Result[]): void {
  const left = [...results];
  for (const { write, waiting } of steps) {
    try {
      const told = write.read(left.splice(0, write.statements.length));
      for (const [at, { resolve }] of waiting.entries()) resolve(told[at]);
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }
}

type Turns = Record<'await' | 'take', Statement>;

function transact(pool: Pool, turns: Turns, statements: readonly Statement[]): Promise<Result[]> {
  return withClient(pool, async (client) => {
    // The wait is undone rather than ended, because a row lock that is committed costs a sync to disk. Whoever waited too long hears it where
    // the turn is taken.
    const beginning = [LOOK, turns.await, LEAVE, BEGIN, turns.take];
    const [, , ...begun] = await Promise.allSettled(beginning.map((one) => client.query(one)));
    try {
      throwFirst(begun);
    } catch (error) {
      await rollback(client, error);
      throw error;
    }
    // After a failure the server ignores what follows, COMMIT included.
    const sent = statements.map((one) => client.query(one));
    throwFirst(await Promise.allSettled([...sent, commit(client)]));
    return Promise.all(sent);
  });
}

function throwFirst(ends: readonly PromiseSettledResult<unknown>[]): void {
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
