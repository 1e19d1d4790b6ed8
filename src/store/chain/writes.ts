import type { Coverage, Span } from '../../lib/coverage.ts';
import type { Sqlite } from '../sqlite/database.ts';
import { asFileError } from '../sqlite/file-error.ts';
import { createAccountWrites } from './account-writes.ts';
import { createChainFacts, type StoredHead } from './facts.ts';
import { createOperationCosts, type OperationCost } from './operation-costs.ts';
import { createRollup } from './rollup.ts';
import type { AccountRow, BlockRow, DeployRow, FeeRow } from './rows.ts';
import { createSpanWrites, type LogRows, prepareWrites } from './span-writes.ts';

/** Blocks that were read whole, in order and without a gap. */
export interface BlockSpanRows {
  readonly blocks: readonly BlockRow[];
  readonly deploys: readonly DeployRow[];
  /** The costs of their transactions, where known. */
  readonly costs?: readonly OperationCost[];
  /** The accounts of their transactions. Without them the span counts as not searched for accounts. */
  readonly accounts?: readonly AccountRow[];
  /** Called inside the transaction, after the span's old rows are gone. Null when the logs were not read with the blocks. */
  readonly scan: (() => LogRows) | null;
  /** Everything stored from this block up is dropped first, in the same transaction: those blocks are no longer the chain's. */
  readonly replaceFrom?: number;
}

/** What a look at a created contract found. */
export interface LabelRow {
  readonly block: number;
  readonly transactionHash: Uint8Array;
  readonly label: string | null;
  /** See `DeployKinds`; null when nobody looked. */
  readonly kinds: number | null;
  /** When to look again, in Unix seconds; null: no more. */
  readonly lookAt: number | null;
}

/** The code of a new contract, and the first look at it. */
export interface CodeRow extends LabelRow {
  readonly codeBytes: number;
  readonly codeHash: Uint8Array | null;
}

/** The blocks that are stored, by kind. */
export interface StoredCoverage {
  /** Read whole. */
  readonly full: Coverage;
  /** Base fee and utilisation known. */
  readonly fees: Coverage;
  /** Logs scanned. */
  readonly logs: Coverage;
}

/** Every write to the chain database; each call is one transaction, so that a crash leaves whole spans. */
export interface ChainWrites {
  coverage(): StoredCoverage;
  storeBlocks(rows: BlockSpanRows): void;
  storeFees(span: Span, rows: readonly FeeRow[]): void;
  storeLogs(span: Span, scan: () => LogRows): void;
  storeCode(rows: readonly CodeRow[]): void;
  /** Stores a later look. A look that finds less than an earlier one (a node refused a call) takes nothing away. */
  storeLabels(rows: readonly LabelRow[]): void;
  storeHead(head: StoredHead): void;
  /** Marks these blocks' logs as not scanned. Their rows stay until the blocks are scanned again. */
  forgetLogs(span: Span): void;
  /** Deletes everything from this block up. */
  dropFrom(block: number): void;
  /** Deletes the stored blocks of a span. */
  drop(span: Span): void;
  /** Rolls up one whole hour before `before` (Unix seconds). Returns true while there are more. */
  rollUpHour(before: number): boolean;
  /** Deletes rolled-up hours from before `before`. */
  dropHours(before: number): void;
  /** Empties the database for the chain that it now belongs to. */
  reset(): void;
  /** Commits since start: differs after each write. */
  version(): number;
  /** Why the last commit failed, such as a full disk. Null after one that succeeded. */
  fault(): string | null;
}

const TABLES = [
  'blocks',
  'deploys',
  'account_hours',
  'token_accounts',
  'pools',
  'trades',
  'token_events',
  'operation_costs',
  'tips',
  'probes',
  'hours',
  'facts',
];
/** Above every block number. */
const TOP = Number.MAX_SAFE_INTEGER;

/** Creates the writer of the chain database. There must be only one. */
export function createChainWrites(db: Sqlite): ChainWrites {
  const facts = createChainFacts(db);
  const accounts = createAccountWrites(db);
  const rollup = createRollup(db, facts, accounts);
  const operations = createOperationCosts(db);
  const statements = prepareWrites(db);
  const { writeLogRows, drop } = createSpanWrites(statements, facts, accounts);

  const { commit, version, fault } = createCommit(db);

  return {
    coverage: () => ({ full: facts.coverage('full'), fees: facts.coverage('fees'), logs: facts.coverage('logs') }),
    storeBlocks: ({ blocks, deploys, costs, accounts: seen, scan, replaceFrom }) =>
      commit(() => {
        if (replaceFrom !== undefined) drop({ from: replaceFrom, to: TOP });
        const [first, last] = [blocks[0], blocks.at(-1)];
        if (first === undefined || last === undefined) return;
        const span = { from: first.number, to: last.number };
        runEach(statements.block, blocks);
        statements.dropDeploys.run(span.from, span.to);
        runEach(statements.deploy, deploys);
        if (costs !== undefined) operations.record(costs);
        if (seen !== undefined) {
          accounts.storeHours(seen);
          facts.cover('accounts', span);
        }
        if (scan !== null) writeLogRows(span, scan);
        facts.cover('full', span);
        facts.cover('fees', span);
        facts.noteFirst(span.from);
      }),
    storeFees: (span, rows) =>
      commit(() => {
        runEach(statements.fee, rows);
        facts.cover('fees', span);
      }),
    storeLogs: (span, scan) => commit(() => writeLogRows(span, scan)),
    storeCode: (rows) => commit(() => runEach(statements.code, rows)),
    storeLabels: (rows) => commit(() => runEach(statements.label, rows)),
    storeHead: (head) => commit(() => facts.storeHead(head)),
    forgetLogs: (span) => commit(() => facts.uncover('logs', span)),
    dropFrom: (block) => commit(() => drop({ from: block, to: TOP })),
    drop: (span) => commit(() => drop(span)),
    rollUpHour: (before) => commit(() => rollup.rollUpHour(before)),
    dropHours: (before) => commit(() => rollup.dropHours(before)),
    reset: () =>
      commit(() => {
        for (const table of TABLES) db.exec(`DELETE FROM ${table}`);
      }),
    version,
    fault,
  };
}

/** Counts the commits, and notes why the last one failed. */
function createCommit(db: Sqlite) {
  let commits = 0;
  let fault: string | null = null;

  return {
    /** Runs in one transaction that takes the write lock first; nested calls join it. Throws what the task throws, and DatabaseFileError. */
    commit: <T>(task: () => T): T => {
      try {
        const result = db.transaction(task).immediate();
        commits += 1;
        fault = null;
        return result;
      } catch (error) {
        const failure = asFileError(error, db.name);
        if (!failure) throw error;
        fault = failure.reason;
        throw failure;
      }
    },
    version: () => commits,
    fault: () => fault,
  };
}

function runEach(statement: ReturnType<Sqlite['prepare']>, rows: readonly object[]): void {
  for (const row of rows) statement.run(row);
}
