-- A payment channel of a buyer. Amounts are base units of its token, at most 2^63 - 1. Times are Unix milliseconds.
CREATE TABLE channels (
  id                  BYTEA NOT NULL PRIMARY KEY CHECK (length(id) = 32),
  network             TEXT NOT NULL,
  payer               BYTEA NOT NULL CHECK (length(payer) = 20),
  payer_authorizer    BYTEA NOT NULL CHECK (length(payer_authorizer) = 20),
  receiver            BYTEA NOT NULL CHECK (length(receiver) = 20),
  receiver_authorizer BYTEA NOT NULL CHECK (length(receiver_authorizer) = 20),
  token               BYTEA NOT NULL CHECK (length(token) = 20),
  -- Seconds.
  withdraw_delay      BIGINT NOT NULL CHECK (withdraw_delay >= 0),
  salt                BYTEA NOT NULL CHECK (length(salt) = 32),
  charged             NUMERIC(78, 0) NOT NULL CHECK (charged >= 0 AND charged <= 9223372036854775807),
  -- The part of `charged` that can never be claimed.
  written_off         NUMERIC(78, 0) NOT NULL CHECK (written_off >= 0 AND written_off <= 9223372036854775807),
  -- Of the voucher over all of `charged`.
  signature           BYTEA,
  -- What the chain showed at `state_block`, with the deposits that were settled since.
  balance             NUMERIC(78, 0) NOT NULL CHECK (balance >= 0 AND balance <= 9223372036854775807),
  total_claimed       NUMERIC(78, 0) NOT NULL CHECK (total_claimed >= 0 AND total_claimed <= 9223372036854775807),
  withdraw_amount     NUMERIC(78, 0) NOT NULL CHECK (withdraw_amount >= 0 AND withdraw_amount <= 9223372036854775807),
  -- Unix seconds, as the chain has them.
  withdraw_at         BIGINT NOT NULL CHECK (withdraw_at >= 0),
  refund_nonce        NUMERIC(78, 0) NOT NULL CHECK (refund_nonce >= 0 AND refund_nonce <= 9223372036854775807),
  state_block         BIGINT NOT NULL,
  -- The block of the newest deposit that was settled here. A state of an earlier block lacks this deposit and is not noted.
  deposit_block       BIGINT NOT NULL DEFAULT 0,
  read_at             BIGINT NOT NULL,
  used_at             BIGINT NOT NULL,
  -- Null exactly when nothing is left to claim.
  unclaimed_since     BIGINT,
  CHECK (total_claimed + written_off <= charged),
  CHECK ((unclaimed_since IS NULL) = (total_claimed + written_off = charged))
);

CREATE INDEX channels_unclaimed ON channels (network, unclaimed_since, id) WHERE unclaimed_since IS NOT NULL;
CREATE INDEX channels_used ON channels (network, used_at);
CREATE INDEX channels_read ON channels (network, read_at);

-- Claims, sweeps and refunds of our relayer.
CREATE TABLE channel_operations (
  id               TEXT NOT NULL PRIMARY KEY,
  network          TEXT NOT NULL,
  kind             TEXT NOT NULL CHECK (kind IN ('claim', 'settle', 'refund')),
  channel_id       BYTEA CHECK (length(channel_id) = 32),
  amount           NUMERIC(78, 0) NOT NULL CHECK (amount >= 0 AND amount <= 9223372036854775807),
  -- Only while the operation is open.
  calldata         BYTEA,
  transaction_hash BYTEA,
  state            TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed')),
  reason           TEXT,
  created_at       BIGINT NOT NULL,
  ended_at         BIGINT,
  CHECK ((kind = 'refund') = (channel_id IS NOT NULL)),
  CHECK ((state = 'open') = (calldata IS NOT NULL))
);

CREATE INDEX channel_operations_open ON channel_operations (created_at, id) WHERE state = 'open';
-- A channel has one open refund at most.
CREATE UNIQUE INDEX channel_operations_refunding ON channel_operations (channel_id)
 WHERE state = 'open' AND channel_id IS NOT NULL;
CREATE INDEX channel_operations_refunded ON channel_operations (channel_id, ended_at) WHERE state = 'done' AND channel_id IS NOT NULL;

-- A sale that a voucher pays: its channel, the voucher's cumulative amount, and the channel right after the charge, as JSON.
-- The voucher's signature is kept only while a deposit is open; with the charge it moves into the channel.
ALTER TABLE usdc_payments ADD COLUMN channel_id BYTEA CHECK (length(channel_id) = 32);
ALTER TABLE usdc_payments ADD COLUMN voucher_max NUMERIC(78, 0) CHECK (voucher_max > 0 AND voucher_max <= 9223372036854775807);
ALTER TABLE usdc_payments ADD COLUMN voucher_signature BYTEA;
ALTER TABLE usdc_payments ADD COLUMN channel_after TEXT;
-- The call that settles the payment, where it is another one than the token's transfer. Only while the payment is open.
ALTER TABLE usdc_payments ADD COLUMN calldata BYTEA;

-- A channel has one open sale at most, and a voucher pays one sale.
CREATE UNIQUE INDEX usdc_payments_channel ON usdc_payments (channel_id)
 WHERE channel_id IS NOT NULL AND state IN ('reserved', 'settling', 'unknown');
CREATE UNIQUE INDEX usdc_payments_voucher ON usdc_payments (channel_id, voucher_max)
 WHERE channel_id IS NOT NULL AND state <> 'failed';
