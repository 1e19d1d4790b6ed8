import type { Coverage, Span } from '../../lib/coverage.ts';
import { asFileError, type Sqlite } from '../../lib/sqlite-file.ts';
import { type AccountWrites, createAccountWrites } from './accounts.ts';
import { createOperationCosts, type OperationCost, type OperationCosts } from './costs.ts';
import {
  type ChainFacts,
  type CoverageKind,
  createChainFacts,
  HOUR,
  hourOf,
  STORED_KINDS,
  type StoredHead,
} from './facts.ts';
import type {
  AccountRow,
  BlockRow,
  DeployRow,
  FeeRow,
  PoolRow,
  TokenAccountRow,
  TokenEventRow,
  TradeRow,
} from './rows.ts';

// Every write to the chain database. Each call is one transaction, so that a crash leaves whole spans. A span's rows
// replace the old ones, and `facts` says that it is stored.

/** Read whole, in order and without a gap. */
interface BlockSpanRows {
  readonly blocks: readonly BlockRow[];
  readonly deploys: readonly DeployRow[];
  readonly costs?: readonly OperationCost[];
  /** Without them the span counts as not searched for accounts. */
  readonly accounts?: readonly AccountRow[];
  /** Called when the span's old rows are gone. Null when the logs were not read too. */
  readonly scan: (() => LogRows) | null;
  /** All from this block up is dropped first: it is no longer the chain's. */
  readonly replaceFrom?: number;
}

export interface LogRows {
  readonly trades: readonly TradeRow[];
  readonly tokenEvents: readonly TokenEventRow[];
  readonly pools: readonly PoolRow[];
  readonly tokenAccounts?: readonly TokenAccountRow[];
}

interface LabelRow {
  readonly block: number;
  readonly transactionHash: Uint8Array;
  readonly label: string | null;
  /** See `DeployKinds`; null when nobody looked. */
  readonly kinds: number | null;
  /** In Unix seconds; null: no more. */
  readonly lookAt: number | null;
}

interface CodeRow extends LabelRow {
  readonly codeBytes: number;
  readonly codeHash: Uint8Array | null;
}

export type StoredCoverage = Readonly<Record<CoverageKind, Coverage>>;

export interface ChainWrites {
  coverage(): StoredCoverage;
  storeBlocks(rows: BlockSpanRows): void;
  storeFees(span: Span, rows: readonly FeeRow[]): void;
  storeLogs(span: Span, scan: () => LogRows): void;
  storeCode(rows: readonly CodeRow[]): void;
  /** A look that finds less than an earlier one (a node refused a call) takes nothing away. */
  storeLabels(rows: readonly LabelRow[]): void;
  storeHead(head: StoredHead): void;
  /** Their rows stay until the logs are scanned again. */
  forgetLogs(span: Span): void;
  drop(span: Span): void;
  /** The oldest hour that ended by `before` (Unix seconds); false when there is none. */
  rollUpHour(before: number): boolean;
  /** Deletes rolled-up hours that began before. */
  dropHours(before: number): void;
  /** Empties the database for the chain that it now belongs to. */
  reset(): void;
  version(): number;
  fault(): string | null;
}

const TABLES = [
  ...['blocks', 'deploys', 'account_hours', 'token_accounts', 'pools', 'trades', 'token_events', 'operation_costs'],
  ...['tips', 'probes', 'hours', 'facts'],
];
const TOP = Number.MAX_SAFE_INTEGER;

/** There must be only one writer. */
export function createChainWrites(db: Sqlite): ChainWrites {
  const facts = createChainFacts(db);
  const accounts = createAccountWrites(db);
  const operations = createOperationCosts(db);
  const rollup = createRollup(db, facts, accounts, operations);
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

function createCommit(db: Sqlite) {
  let commits = 0;
  let fault: string | null = null;
  return {
    /** Takes the write lock first; nested calls join. Throws the task's error, or DatabaseFileError. */
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

/** For use inside a transaction. */
function createSpanWrites(statements: ReturnType<typeof prepareWrites>, facts: ChainFacts, accounts: AccountWrites) {
  function writeLogRows({ from, to }: Span, scan: () => LogRows): void {
    statements.dropTrades.run(from, to);
    statements.dropTokenEvents.run(from, to);
    const { trades, tokenEvents, pools, tokenAccounts = [] } = scan();
    for (const row of pools) statements.pool.run({ ...row, tokenFirst: row.tokenFirst ? 1 : 0 });
    for (const { pricing, ...row } of trades) statements.trade.run({ ...row, ...(pricing ?? UNPRICED) });
    for (const row of tokenEvents) statements.tokenEvent.run({ ...row, amount: String(row.amount) });
    accounts.storeTokens(tokenAccounts);
    facts.cover('logs', { from, to });
    const unbroken = facts.coverage('logs').find((span) => span.from <= from && span.to >= to);
    if (unbroken !== undefined) statements.linkTrades.run(unbroken);
  }

  function drop(span: Span): void {
    const { from, to } = span;
    const { dropBlocks, dropDeploys, dropTrades, dropTokenEvents } = statements;
    for (const statement of [dropBlocks, dropDeploys, dropTrades, dropTokenEvents]) statement.run(from, to);
    accounts.drop(span);
    for (const kind of STORED_KINDS) facts.uncover(kind, span);
  }

  return { writeLogRows, drop };
}

const INSERT_BLOCK = `
  INSERT INTO blocks (number, exact, at, hash, parent_hash, base_fee, next_base_fee, utilisation, gas_limit,
                      transactions, deploys, native_transfers, token_transfers, contract_calls)
  VALUES (@number, 1, @at, @hash, @parentHash, @baseFee, @nextBaseFee, @utilisation, @gasLimit,
          @transactions, @deploys, @nativeTransfers, @tokenTransfers, @contractCalls)
  ON CONFLICT (number) DO UPDATE
     SET exact = 1, at = @at, hash = @hash, parent_hash = @parentHash, base_fee = @baseFee,
         next_base_fee = @nextBaseFee, utilisation = @utilisation, gas_limit = @gasLimit,
         transactions = @transactions, deploys = @deploys,
         native_transfers = @nativeTransfers, token_transfers = @tokenTransfers, contract_calls = @contractCalls`;
/** A block that was read whole has more data, and stays. */
const INSERT_FEE = `
  INSERT INTO blocks (number, exact, at, base_fee, utilisation) VALUES (@number, 0, @at, @baseFee, @utilisation)
  ON CONFLICT (number) DO NOTHING`;
const INSERT_DEPLOY = `
  INSERT INTO deploys (block, at, address, deployer, transaction_hash)
  VALUES (@block, @at, @address, @deployer, @transactionHash)`;
const INSERT_TRADE = `
  INSERT INTO trades (block, log_index, transaction_hash, at, pool, token, base_e9, usdc_e9, excluded,
                      side, price_before, price_after, usdc_reserve)
  VALUES (@block, @logIndex, @transactionHash, @at, @pool, @token, @baseE9, @usdcE9, @excluded,
          @side, @priceBefore, @priceAfter, @usdcReserve)`;
/** Swaps alone change a pool's price: before a trade it is the last one's after, if no block between is missing. */
const LINK_TRADES = `
  UPDATE trades INDEXED BY trades_unlinked SET price_before =
    (SELECT earlier.price_after FROM trades AS earlier
      WHERE earlier.pool = trades.pool AND earlier.block >= @from
        AND (earlier.block, earlier.log_index) < (trades.block, trades.log_index)
      ORDER BY earlier.block DESC, earlier.log_index DESC LIMIT 1)
   WHERE price_before IS NULL AND price_after IS NOT NULL AND block BETWEEN @from AND @to`;
const INSERT_TOKEN_EVENT = `
  INSERT INTO token_events (block, log_index, transaction_hash, at, kind, account, amount)
  VALUES (@block, @logIndex, @transactionHash, @at, @kind, @account, @amount)`;
const INSERT_POOL = `
  INSERT INTO pools (id, venue, kind, emitter, token, token_first, token_decimals, usdc_decimals, found_block)
  VALUES (@id, @venue, @kind, @emitter, @token, @tokenFirst, @tokenDecimals, @usdcDecimals, @foundBlock)
  ON CONFLICT (id) DO NOTHING`;
const UNPRICED = { priceBefore: null, priceAfter: null, usdcReserve: null };

function prepareWrites(db: Sqlite) {
  return {
    block: db.prepare(INSERT_BLOCK),
    fee: db.prepare(INSERT_FEE),
    deploy: db.prepare(INSERT_DEPLOY),
    trade: db.prepare(INSERT_TRADE),
    linkTrades: db.prepare(LINK_TRADES),
    tokenEvent: db.prepare(INSERT_TOKEN_EVENT),
    pool: db.prepare(INSERT_POOL),
    code: db.prepare(
      `UPDATE deploys SET code_bytes = @codeBytes, code_hash = @codeHash, label = coalesce(@label, label),
              kinds = @kinds, look_at = @lookAt
        WHERE block = @block AND transaction_hash = @transactionHash`,
    ),
    label: db.prepare(
      `UPDATE deploys SET label = CASE WHEN kinds & ~@kinds = 0 THEN coalesce(@label, label) ELSE label END,
              kinds = kinds | @kinds, look_at = @lookAt
        WHERE block = @block AND transaction_hash = @transactionHash`,
    ),
    dropBlocks: db.prepare('DELETE FROM blocks WHERE number BETWEEN ? AND ?'),
    dropDeploys: db.prepare('DELETE FROM deploys WHERE block BETWEEN ? AND ?'),
    dropTrades: db.prepare('DELETE FROM trades WHERE block BETWEEN ? AND ?'),
    dropTokenEvents: db.prepare('DELETE FROM token_events WHERE block BETWEEN ? AND ?'),
  };
}

/** Adds to the hour's row: fee rows have interpolated times, so a block near the boundary may come later. */
const ROLL_UP = `
  INSERT INTO hours (at, blocks, counted_blocks, min_base_fee, avg_base_fee, max_base_fee, utilisation,
                     transactions, deploys, deployers, native_transfers, token_transfers, contract_calls)
  SELECT @hour, count(*), count(transactions), min(base_fee), CAST(round(avg(base_fee)) AS INTEGER), max(base_fee),
         avg(utilisation),
         coalesce(sum(transactions), 0), coalesce(sum(deploys), 0),
         (SELECT count(DISTINCT deployer) FROM deploys WHERE at >= @hour AND at < @end),
         coalesce(sum(native_transfers), 0), coalesce(sum(token_transfers), 0), coalesce(sum(contract_calls), 0)
    FROM blocks WHERE at >= @hour AND at < @end
  ON CONFLICT (at) DO UPDATE
     SET avg_base_fee = CAST(round((avg_base_fee * 1.0 * blocks + excluded.avg_base_fee * 1.0 * excluded.blocks)
                                   / (blocks + excluded.blocks)) AS INTEGER),
         utilisation = (utilisation * blocks + excluded.utilisation * excluded.blocks) / (blocks + excluded.blocks),
         min_base_fee = min(min_base_fee, excluded.min_base_fee),
         max_base_fee = max(max_base_fee, excluded.max_base_fee),
         deployers = max(deployers, excluded.deployers), blocks = blocks + excluded.blocks,
         counted_blocks = counted_blocks + excluded.counted_blocks, transactions = transactions + excluded.transactions,
         deploys = deploys + excluded.deploys, native_transfers = native_transfers + excluded.native_transfers,
         token_transfers = token_transfers + excluded.token_transfers,
         contract_calls = contract_calls + excluded.contract_calls`;

/** One hour a call (7,200 rows), so that no commit holds the event loop for long. */
function createRollup(
  db: Sqlite,
  facts: ChainFacts,
  accounts: Pick<AccountWrites, 'prune'>,
  operations: Pick<OperationCosts, 'prune'>,
): Pick<ChainWrites, 'rollUpHour' | 'dropHours'> {
  const oldest = db.prepare('SELECT min(at) FROM blocks').pluck();
  const highest = db.prepare('SELECT max(number), count(transactions) FROM blocks WHERE at < ?').raw();
  const rollUp = db.prepare(ROLL_UP);
  const dropHours = db.prepare('DELETE FROM hours WHERE at < ?');
  const prune = ['blocks', 'deploys', 'trades'].map((table) => db.prepare(`DELETE FROM ${table} WHERE at < ?`));
  const pruneProbes = db.prepare('DELETE FROM probes WHERE at_ms < ?');
  return {
    rollUpHour(before) {
      const first = oldest.get() as number | null;
      if (first === null) return false;
      const hour = hourOf(first);
      const end = hour + HOUR;
      if (end > before) return false;
      const [top, whole] = highest.get(end) as [number, number];
      rollUp.run({ hour, end });
      for (const statement of prune) statement.run(end);
      pruneProbes.run(end * 1000);
      accounts.prune(end);
      operations.prune(end);
      for (const kind of STORED_KINDS) facts.uncover(kind, { from: 0, to: top });
      facts.noteRolledUp(whole);
      return true;
    },
    dropHours: (before) => void dropHours.run(before),
  };
}
