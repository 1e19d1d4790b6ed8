-- What a trade did to its pool. Rows of earlier versions have null until their blocks are scanned again.
ALTER TABLE trades ADD COLUMN side TEXT CHECK (side IN ('buy', 'sell'));
-- USDC for a whole token, without the pool's fee: before the trade (null until the trade before it in the same pool is stored) and after it.
ALTER TABLE trades ADD COLUMN price_before REAL;
ALTER TABLE trades ADD COLUMN price_after REAL;
-- USDC that the pool trades with at the price after it, as a pool of constant product.
ALTER TABLE trades ADD COLUMN usdc_reserve REAL;

-- All that a window's sums need, so that a day of trades (some ten thousand) is read from the index alone.
DROP INDEX trades_token;
CREATE INDEX trades_token ON trades (token, at, block, log_index, excluded, base_e9, usdc_e9, side, price_before);
-- The trade before another one in the same pool, and a pool's newest.
CREATE INDEX trades_pool ON trades (pool, block, log_index, price_after);
-- The trades whose price before is not known yet: the first of each pool in each unbroken span.
CREATE INDEX trades_unlinked ON trades (block) WHERE price_before IS NULL AND price_after IS NOT NULL;
