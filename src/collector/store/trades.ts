import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import type { PoolRow } from './rows.ts';

/** The fields of a trade that comparing prices needs. */
export interface Quote {
  /** USDC for a whole token. */
  readonly price: number;
  readonly transactionHash: string;
}

/** The blocks outside of a span that are searched for trades, nearest first. `at` is the time of the span's end on that side. */
export interface Beside {
  readonly token: Uint8Array;
  readonly block: number;
  readonly at: number;
  readonly limit: number;
}

/** The stored data that filtering new trades needs. */
export interface TradeReads {
  pools(): PoolRow[];
  /** The nearest trades before the block and after it, without dust. */
  before(beside: Beside): Quote[];
  after(beside: Beside): Quote[];
}

const QUOTE = `
  SELECT CAST(usdc_e9 AS REAL) / base_e9 AS price, transaction_hash AS hash FROM trades
   WHERE token = ? AND (excluded IS NULL OR excluded <> 'dust')`;
/** Ordered by time first, to use the index; times and blocks grow together. */
const BEFORE = `${QUOTE} AND at <= ? AND block < ? ORDER BY at DESC, block DESC, log_index DESC LIMIT ?`;
const AFTER = `${QUOTE} AND at >= ? AND block > ? ORDER BY at, block, log_index LIMIT ?`;
const POOLS = `
  SELECT id, venue, kind, emitter, token, token_first AS tokenFirst, token_decimals AS tokenDecimals,
         usdc_decimals AS usdcDecimals, found_block AS foundBlock
    FROM pools ORDER BY found_block, id`;

/** Reads of the trade scanner; safe inside the collector's transaction. */
export function createTradeReads(db: Sqlite): TradeReads {
  const statements = { before: db.prepare(BEFORE), after: db.prepare(AFTER), pools: db.prepare(POOLS) };
  const quotes = (rows: unknown[]): Quote[] =>
    (rows as { price: number; hash: Uint8Array }[]).map(({ price, hash }) => ({
      price,
      transactionHash: bytesToHex(hash),
    }));
  return {
    pools: () =>
      (statements.pools.all() as (Omit<PoolRow, 'tokenFirst'> & { tokenFirst: number })[]).map((row) => ({
        ...row,
        tokenFirst: row.tokenFirst === 1,
      })),
    before: ({ token, at, block, limit }) => quotes(statements.before.all(token, at, block, limit)),
    after: ({ token, at, block, limit }) => quotes(statements.after.all(token, at, block, limit)),
  };
}

/** A pool of a watched token against USDC. */
export interface CollectedPool extends Pick<PoolRow, 'venue' | 'kind' | 'tokenFirst' | 'usdcDecimals'> {
  readonly emitter: `0x${string}`;
  readonly token: `0x${string}`;
}

/** Pools that the collector found. */
export interface PoolReads {
  /** The pool with this id (its address, or a v4 pool id); null for a pool that is not collected. */
  pool(id: `0x${string}`): CollectedPool | null;
}

type Row = Omit<CollectedPool, 'tokenFirst' | 'emitter' | 'token'> & {
  readonly tokenFirst: number;
  readonly emitter: Uint8Array;
  readonly token: Uint8Array;
};

export function createPoolReads(db: Sqlite): PoolReads {
  const byId = db.prepare(
    `SELECT venue, kind, emitter, token, token_first AS tokenFirst, usdc_decimals AS usdcDecimals FROM pools WHERE id = ?`,
  );
  return {
    pool(id) {
      const row = byId.get(hexToBytes(id)) as Row | undefined;
      if (row === undefined) return null;
      const { emitter, token, tokenFirst } = row;
      return { ...row, emitter: bytesToHex(emitter), token: bytesToHex(token), tokenFirst: tokenFirst === 1 };
    },
  };
}
