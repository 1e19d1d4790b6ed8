-- One row an authorization, from its reservation until long after it can no longer be used.
-- Amounts are NUMERIC, which the service reads as bigint; times (Unix milliseconds) and counts are BIGINT, which it reads as numbers.
CREATE TABLE usdc_payments (
  id               TEXT    PRIMARY KEY,
  network          TEXT    NOT NULL,
  contract         BYTEA   NOT NULL CHECK (length(contract) = 20),
  payer            BYTEA   NOT NULL CHECK (length(payer) = 20),
  nonce            BYTEA   NOT NULL CHECK (length(nonce) = 32),
  state            TEXT    NOT NULL CHECK (state IN ('reserved', 'settling', 'unknown', 'settled', 'failed')),
  -- The process that works on it: recovery touches only what a dead one left.
  boot_id          TEXT    NOT NULL,
  amount           NUMERIC(78, 0) NOT NULL CHECK (amount > 0),
  pay_to           BYTEA   NOT NULL CHECK (length(pay_to) = 20),
  -- uint256: a buyer may sign any.
  valid_after      NUMERIC(78, 0) NOT NULL,
  valid_before     NUMERIC(78, 0) NOT NULL,
  -- Only while the settlement needs it.
  signature        BYTEA,
  request_hash     BYTEA   NOT NULL CHECK (length(request_hash) = 32),
  client_hash      BYTEA   NOT NULL CHECK (length(client_hash) = 32),
  identifier_hash  BYTEA,
  -- The chain had not seen the authorization up to here: where a search for it starts.
  checked_block    BIGINT,
  transaction_hash BYTEA,
  block            BIGINT,
  reason           TEXT,
  reserved_at      BIGINT  NOT NULL,
  settling_at      BIGINT,
  ended_at         BIGINT,
  deliveries       BIGINT  NOT NULL DEFAULT 0,
  -- Among the payer's open payments, in the order of their reservations, whichever instance made them.
  place            BIGINT  NOT NULL,
  UNIQUE (network, contract, payer, nonce)
);

CREATE UNIQUE INDEX usdc_payments_open ON usdc_payments (payer, place) WHERE state IN ('reserved', 'settling', 'unknown');
CREATE INDEX usdc_payments_state ON usdc_payments (state, id);
CREATE INDEX usdc_payments_transaction ON usdc_payments (transaction_hash) WHERE transaction_hash IS NOT NULL;

-- The bytes that were bought, kept for delivery after a crash and for redelivery.
CREATE TABLE usdc_replies (
  payment_id TEXT   PRIMARY KEY REFERENCES usdc_payments (id) ON DELETE CASCADE,
  body       BYTEA  NOT NULL,
  -- Null until the payment has ended.
  keep_until BIGINT
);

CREATE INDEX usdc_replies_keep_until ON usdc_replies (keep_until) WHERE keep_until IS NOT NULL;

-- Whose turn it is to write: one row for each kind of writes, which every transaction of that kind begins with.
CREATE TABLE ledger_turns (
  name  TEXT   PRIMARY KEY,
  taken BIGINT NOT NULL
);

INSERT INTO ledger_turns (name, taken) VALUES ('payments', 0), ('lightning', 0), ('others', 0);
