-- One row an authorization, from its reservation until long after it can no longer be used.
CREATE TABLE usdc_payments (
  id               TEXT    PRIMARY KEY,
  network          TEXT    NOT NULL,
  contract         BLOB    NOT NULL CHECK (length(contract) = 20),
  payer            BLOB    NOT NULL CHECK (length(payer) = 20),
  nonce            BLOB    NOT NULL CHECK (length(nonce) = 32),
  state            TEXT    NOT NULL CHECK (state IN ('reserved', 'settling', 'unknown', 'settled', 'failed')),
  -- The process that works on it: recovery touches only what a dead one left.
  boot_id          TEXT    NOT NULL,
  amount           INTEGER NOT NULL CHECK (amount > 0),
  pay_to           BLOB    NOT NULL CHECK (length(pay_to) = 20),
  -- uint256 as decimal text: a buyer may sign any.
  valid_after      TEXT    NOT NULL,
  valid_before     TEXT    NOT NULL,
  -- Only while the settlement needs it.
  signature        BLOB,
  request_hash     BLOB    NOT NULL CHECK (length(request_hash) = 32),
  client_hash      BLOB    NOT NULL CHECK (length(client_hash) = 32),
  identifier_hash  BLOB,
  -- The chain had not seen the authorization up to here: where a search for it starts.
  checked_block    INTEGER,
  transaction_hash BLOB,
  block            INTEGER,
  reason           TEXT,
  -- Unix milliseconds.
  reserved_at      INTEGER NOT NULL,
  settling_at      INTEGER,
  ended_at         INTEGER,
  deliveries       INTEGER NOT NULL DEFAULT 0,
  UNIQUE (network, contract, payer, nonce)
) STRICT;

CREATE INDEX usdc_payments_open ON usdc_payments (payer, amount) WHERE state IN ('reserved', 'settling', 'unknown');
CREATE INDEX usdc_payments_state ON usdc_payments (state, id);
CREATE INDEX usdc_payments_transaction ON usdc_payments (transaction_hash) WHERE transaction_hash IS NOT NULL;

-- The bytes that were bought, kept for delivery after a crash and for redelivery.
CREATE TABLE usdc_replies (
  payment_id TEXT    PRIMARY KEY REFERENCES usdc_payments (id) ON DELETE CASCADE,
  body       BLOB    NOT NULL,
  -- Unix milliseconds; null until the payment has ended.
  keep_until INTEGER
) STRICT;

CREATE INDEX usdc_replies_keep_until ON usdc_replies (keep_until) WHERE keep_until IS NOT NULL;
