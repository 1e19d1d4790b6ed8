-- What the collector has read from the chain. All of it can be read again; none of it is money.
-- Hashes and addresses are bytes, fees wei, times Unix seconds unless a name says otherwise.

-- One row a block. Fee history gives fees without hashes and times: such a row has `exact` 0, an interpolated time and no counts.
CREATE TABLE blocks (
  number           INTEGER PRIMARY KEY,
  exact            INTEGER NOT NULL CHECK (exact IN (0, 1)),
  at               INTEGER NOT NULL,
  hash             BLOB,
  parent_hash      BLOB,
  base_fee         INTEGER NOT NULL,
  -- Arc's header names the next block's base fee; null on a chain that does not.
  next_base_fee    INTEGER,
  -- gasUsed / gasLimit, 0 to 1.
  utilisation      REAL    NOT NULL,
  gas_limit        INTEGER,
  -- Null until the block's transactions and receipts were read.
  transactions     INTEGER,
  deploys          INTEGER,
  native_transfers INTEGER,
  token_transfers  INTEGER,
  contract_calls   INTEGER
) STRICT;
CREATE INDEX blocks_at ON blocks (at);

-- One row a contract created by a transaction (factories' creations are not seen without traces).
CREATE TABLE deploys (
  block            INTEGER NOT NULL,
  at               INTEGER NOT NULL,
  address          BLOB    NOT NULL,
  deployer         BLOB    NOT NULL,
  transaction_hash BLOB    NOT NULL,
  code_bytes       INTEGER,
  code_hash        BLOB,
  -- What it seems to be, as text; null when nothing is known.
  label            TEXT,
  PRIMARY KEY (block, transaction_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX deploys_code_hash ON deploys (code_hash) WHERE code_hash IS NOT NULL;

-- Pools of watched tokens against USDC, found from the factories' events. `id` is an address, or a v4 pool id.
CREATE TABLE pools (
  id               BLOB    PRIMARY KEY,
  venue            TEXT    NOT NULL,
  kind             TEXT    NOT NULL CHECK (kind IN ('v2', 'v3', 'v4', 'slipstream')),
  -- The contract that emits the swaps: the pool itself, or v4's pool manager.
  emitter          BLOB    NOT NULL,
  token            BLOB    NOT NULL,
  -- Whether the watched token is token0 (currency0).
  token_first      INTEGER NOT NULL CHECK (token_first IN (0, 1)),
  token_decimals   INTEGER NOT NULL,
  usdc_decimals    INTEGER NOT NULL,
  found_block      INTEGER NOT NULL
) STRICT;

-- Executed trades of a watched token against USDC, after the filters. Amounts in 10^-9 of a whole token: exact enough to sum as integers.
CREATE TABLE trades (
  block            INTEGER NOT NULL,
  log_index        INTEGER NOT NULL,
  transaction_hash BLOB    NOT NULL,
  at               INTEGER NOT NULL,
  pool             BLOB    NOT NULL,
  token            BLOB    NOT NULL,
  base_e9          INTEGER NOT NULL CHECK (base_e9 > 0),
  usdc_e9          INTEGER NOT NULL CHECK (usdc_e9 > 0),
  -- Why it does not count towards prices ('dust', 'outlier'); null when it does.
  excluded         TEXT,
  PRIMARY KEY (block, log_index)
) STRICT, WITHOUT ROWID;
-- All that a window's sums need, so that a day of trades (some ten thousand) is read from the index alone.
CREATE INDEX trades_token ON trades (token, at, block, log_index, excluded, base_e9, usdc_e9);

-- The project token's burns and its distributor's USDC payouts.
CREATE TABLE token_events (
  block            INTEGER NOT NULL,
  log_index        INTEGER NOT NULL,
  transaction_hash BLOB    NOT NULL,
  at               INTEGER NOT NULL,
  kind             TEXT    NOT NULL CHECK (kind IN ('burn', 'payout')),
  account          BLOB    NOT NULL,
  -- Base units as decimal text.
  amount           TEXT    NOT NULL,
  PRIMARY KEY (block, log_index)
) STRICT, WITHOUT ROWID;

-- One row a probe of an RPC endpoint; times in Unix milliseconds.
CREATE TABLE probes (
  endpoint         TEXT    NOT NULL,
  at_ms            INTEGER NOT NULL,
  ok               INTEGER NOT NULL CHECK (ok IN (0, 1)),
  latency_ms       REAL,
  head             INTEGER,
  -- The best head that any endpoint showed in the same round.
  best_head        INTEGER,
  error            TEXT CHECK (error IN ('timeout', 'rateLimited', 'rpcError', 'transport')),
  PRIMARY KEY (endpoint, at_ms)
) STRICT, WITHOUT ROWID;

-- What transactions cost, by kind (chain/transaction.ts, kindOf): how many of an hour used that much gas, or paid that fee (10^-9 of the native
-- currency). Values are rounded to three digits, so that an hour is at most some hundred rows.
CREATE TABLE operation_costs (
  at               INTEGER NOT NULL,
  kind             TEXT    NOT NULL CHECK (kind IN ('deploy', 'nativeTransfer', 'tokenTransfer', 'contractCall')),
  measure          TEXT    NOT NULL CHECK (measure IN ('gas', 'fee')),
  value            INTEGER NOT NULL,
  count            INTEGER NOT NULL,
  PRIMARY KEY (at, kind, measure, value)
) STRICT, WITHOUT ROWID;

-- Rows past the retention, an hour each (`at` is its first second).
CREATE TABLE hours (
  at               INTEGER PRIMARY KEY,
  blocks           INTEGER NOT NULL,
  -- Of how many blocks the counts below are; the rest had fees alone.
  counted_blocks   INTEGER NOT NULL,
  min_base_fee     INTEGER NOT NULL,
  avg_base_fee     INTEGER NOT NULL,
  max_base_fee     INTEGER NOT NULL,
  utilisation      REAL    NOT NULL,
  transactions     INTEGER NOT NULL,
  deploys          INTEGER NOT NULL,
  deployers        INTEGER NOT NULL,
  native_transfers INTEGER NOT NULL,
  token_transfers  INTEGER NOT NULL,
  contract_calls   INTEGER NOT NULL
) STRICT;

-- Small facts by name: genesis hash and time, what was scanned for logs, when the head was last seen.
CREATE TABLE facts (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
