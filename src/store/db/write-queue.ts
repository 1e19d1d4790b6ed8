import type { Pool } from 'pg';
import {
  asLedgerError,
  commit,
  isOwnFault,
  type Retry,
  type Statement,
  statement,
  transact,
  withClient,
} from './connections.ts';
import type { Kind, Plan, Result, Step } from './port.ts';
import { drive, resultOf, statementOf } from './postgres-text.ts';

// One durable transaction and one round trip to PostgreSQL for many writes.
// 1. Writes wait for the end of the event loop turn, or of the transaction before theirs. Neighbours of one kind become
//    one statement, which is most of a short write's cost.
// 2. The transaction is sent whole, so no lock waits for this process. First it takes the turn, a row, among the
//    instances. Under READ COMMITTED each later statement sees all that earlier turns have committed: a guard means
//    what it means with one writer.
// 3. A transaction that the database aborted is run again. One that violates a constraint is run in ever smaller parts,
//    so that only the faulty write rejects.
// 4. Nothing resolves before COMMIT was answered. When the connection is lost before, all writes reject, made or not.

/** So that waiting writes do not wait long. */
const MAX_BATCH = 128;

// Not prepared: a pooler that has lost it would refuse BEGIN alone, and the rest would run outside of a transaction.
const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED';
// An UPDATE and no lock alone: an older instance is SERIALIZABLE, and is aborted by a changed row only.
const TAKE_TURN = statement<{ turn: string }>('UPDATE ledger_turns SET taken = taken + 1 WHERE name = @turn');

const ALONE: Kind<Step<unknown>, unknown> = {
  admits: () => false,
  step: ([only]) => ({ calls: only?.calls ?? [], read: (results) => [only?.read(results)] }),
};

/** Runs writes in the order of the calls. Each resolves once it is on disk. */
export interface WriteQueue {
  write<T>(step: Step<T>): Promise<T>;
  share<Item, T>(kind: Kind<Item, T>, item: Item): Promise<T>;
  /** In a transaction of its own, run again when another one aborts it. Later writes wait. */
  decide<T>(plan: () => Plan<T>): Promise<T>;
  idle(): Promise<void>;
}

interface Shared {
  readonly kind: Kind<unknown, unknown>;
  readonly item: unknown;
}
interface Planned {
  readonly plan: () => Plan<unknown>;
}
interface Ends {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}
type WaitingWrite = Shared & Ends;
type WaitingPlan = Planned & Ends;

/**
 * This process's queue of one turn. The instances' queues of a turn write one after the other. `onFailure` is called
 * when a transaction has failed for good, also when its outcome is unknown.
 */
export function createWriteQueue(pool: Pool, retry: Retry, turn: string, onFailure: () => void = () => {}): WriteQueue {
  let waiting: (WaitingWrite | WaitingPlan)[] = [];
  let running: Promise<void> | null = null;
  const takeTurn = TAKE_TURN({ turn });

  async function drain(): Promise<void> {
    await new Promise(setImmediate);
    for (let [next] = waiting; next; [next] = waiting) {
      if ('plan' in next) {
        waiting = waiting.slice(1);
        await runPlan(next);
      } else {
        const batch = batchOf(waiting);
        waiting = waiting.slice(batch.length);
        await run(batch);
      }
    }
    running = null;
  }

  async function run(batch: readonly WaitingWrite[]): Promise<void> {
    try {
      const steps = stepsOf(batch);
      const statements = steps.flatMap(({ step }) => step.calls.map(statementOf));
      settle(steps, await retry(() => flight(pool, takeTurn, statements)));
    } catch (error) {
      const half = Math.ceil(batch.length / 2);
      if (isOwnFault(error) && batch.length > 1)
        for (const part of [batch.slice(0, half), batch.slice(half)]) await run(part);
      else fail(batch, error);
    }
  }

  async function runPlan(one: WaitingPlan): Promise<void> {
    try {
      const attempt = () =>
        transact(pool, [BEGIN, takeTurn], (client) =>
          drive(one.plan(), async (statement) => resultOf(await client.query(statement))),
        );
      one.resolve(await retry(attempt));
    } catch (error) {
      fail([one], error);
    }
  }

  function fail(writes: readonly Ends[], error: unknown): void {
    onFailure();
    for (const { reject } of writes) reject(asLedgerError(error));
  }

  const wait = <T>(write: Shared | Planned): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      waiting.push({ ...write, resolve: resolve as (value: unknown) => void, reject });
      running ??= drain();
    });
  // A kind only gets its own items.
  const share = <Item, T>(kind: Kind<Item, T>, item: Item): Promise<T> =>
    wait({ kind: kind as Kind<unknown, unknown>, item });

  return {
    share,
    write: <T>(step: Step<T>) => share(ALONE as Kind<Step<T>, T>, step),
    decide: (plan) => wait({ plan }),
    idle: async () => {
      while (running) await running;
    },
  };
}

/** The first writes that may go together. */
function batchOf(waiting: readonly (WaitingWrite | WaitingPlan)[]): WaitingWrite[] {
  const batch: WaitingWrite[] = [];
  for (const one of waiting) {
    if ('plan' in one || batch.length === MAX_BATCH) break;
    batch.push(one);
  }
  return batch;
}

interface Sent {
  readonly step: Step<readonly unknown[]>;
  readonly waiting: readonly WaitingWrite[];
}

/** Groups neighbours of one kind; keeps the order of the batch. */
function stepsOf(batch: readonly WaitingWrite[]): Sent[] {
  const groups: { kind: Shared['kind']; items: unknown[]; waiting: WaitingWrite[] }[] = [];
  for (const one of batch) {
    const last = groups.at(-1);
    if (last && last.kind === one.kind && last.kind.admits(last.items, one.item)) {
      last.items.push(one.item);
      last.waiting.push(one);
    } else groups.push({ kind: one.kind, items: [one.item], waiting: [one] });
  }
  return groups.map(({ kind, items, waiting }) => ({ step: kind.step(items), waiting }));
}

function settle(steps: readonly Sent[], results: readonly Result[]): void {
  const left = [...results];
  for (const { step, waiting } of steps) {
    try {
      const outcomes = step.read(left.splice(0, step.calls.length));
      for (const [at, { resolve }] of waiting.entries()) resolve(outcomes[at]);
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }
}

/**
 * Sends a transaction whole. After a failure the server ignores the rest, COMMIT included. Where BEGIN itself is cut
 * off, the rest runs without the turn: each statement has its guard, and the caller is told that nothing is known.
 */
function flight(pool: Pool, takeTurn: Statement, statements: readonly Statement[]): Promise<Result[]> {
  return withClient(pool, async (client) => {
    const begun = client.query(BEGIN);
    const sent = [takeTurn, ...statements].map((one) => client.query(one));
    throwFirst(await Promise.allSettled([begun, ...sent, commit(client)]));
    return (await Promise.all(sent.slice(1))).map(resultOf);
  });
}

function throwFirst(ends: readonly PromiseSettledResult<unknown>[]): void {
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
