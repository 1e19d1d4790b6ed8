import type { Span } from '../../lib/coverage.ts';
import type { Sqlite } from '../sqlite/database.ts';
import type { AccountWrites } from './account-writes.ts';
import { type ChainFacts, STORED_KINDS } from './facts.ts';
import type { PoolRow, TokenAccountRow, TokenEventRow, TradeRow } from './rows.ts';

/** The rows that the logs of a span gave. */
export interface LogRows {
  readonly trades: readonly TradeRow[];
  readonly tokenEvents: readonly TokenEventRow[];
  readonly pools: readonly PoolRow[];
  readonly tokenAccounts?: readonly TokenAccountRow[];
}

const INSERT_BLOCK = `
  INSERT INTO blocks (number, exact, at, hash, parent_hash, base_fee, next_base_fee, utilisation, gas_limit,
                      transactions, deploys, native_transfers, token_transfers, contract_calls)
  VALUES (@number, 1, @at, @hash, @parentHash, @baseFee, @nextBaseFee, @utilisation, @gasLimit,
          @transactions, @deploys, @nativeTransfers, @tokenTransfers, @contractCalls)
  ON CONFLICT (number) DO UPDATE
     SET exact = 1, at = @at, hash = @hash, parent_hash = @parentHash, base_fee = @baseFee, next_base_fee = @nextBaseFee,
         utilisation = @utilisation, gas_limit = @gasLimit, transactions = @transactions, deploys = @deploys,
         native_transfers = @nativeTransfers, token_transfers = @tokenTransfers, contract_calls = @contractCalls`;
/** A block that was read whole has more data than fee history, so it is not replaced. */
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
/** A pool's price changes by swaps alone, so the price before a trade is that after the one before it, if no block between them is missing. */
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

/** The statements that write and delete rows of blocks. */
export function prepareWrites(db: Sqlite) {
  return {
    block: db.prepare(INSERT_BLOCK),
    fee: db.prepare(INSERT_FEE),
    deploy: db.prepare(INSERT_DEPLOY),
    trade: db.prepare(INSERT_TRADE),
    linkTrades: db.prepare(LINK_TRADES),
    tokenEvent: db.prepare(INSERT_TOKEN_EVENT),
    pool: db.prepare(INSERT_POOL),
    code: db.prepare(
      `UPDATE deploys SET code_bytes = @codeBytes, code_hash = @codeHash, label = coalesce(@label, label), kinds = @kinds, look_at = @lookAt
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

/** Steps that several writes share, inside their transactions: writing the logs of a span, and deleting all of a span. */
export function createSpanWrites(
  statements: ReturnType<typeof prepareWrites>,
  facts: ChainFacts,
  accounts: AccountWrites,
) {
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
    for (const statement of [
      statements.dropBlocks,
      statements.dropDeploys,
      statements.dropTrades,
      statements.dropTokenEvents,
    ]) {
      statement.run(from, to);
    }
    accounts.drop(span);
    for (const kind of STORED_KINDS) facts.uncover(kind, span);
  }

  return { writeLogRows, drop };
}
