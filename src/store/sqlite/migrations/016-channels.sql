-- A payment channel of a buyer. Amounts are base units of its token, at most 2^63 - 1. Times are Unix milliseconds.
CREATE TABLE channels (
  id                  BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 32),
  network             TEXT    NOT NULL,
  payer               BLOB    NOT NULL CHECK (length(payer) = 20),
  payer_authorizer    BLOB    NOT NULL CHECK (length(payer_authorizer) = 20),
  receiver            BLOB    NOT NULL CHECK (length(receiver) = 20),
  receiver_authorizer BLOB    NOT NULL CHECK (length(receiver_authorizer) = 20),
  token               BLOB    NOT NULL CHECK (length(token) = 20),
  -- Seconds.
  withdraw_delay      INTEGER NOT NULL CHECK (withdraw_delay >= 0),
  salt                BLOB    NOT NULL CHECK (length(salt) = 32),
  charged             INTEGER NOT NULL CHECK (charged >= 0),
  -- The part of `charged` that can never be claimed.
  written_off         INTEGER NOT NULL CHECK (written_off >= 0),
  -- Of the voucher over all of `charged`.
  signature           BLOB,
  -- What the chain showed at `state_block`, with the deposits that were settled since.
  balance             INTEGER NOT NULL CHECK (balance >= 0),
  total_claimed       INTEGER NOT NULL CHECK (total_claimed >= 0),
  withdraw_amount     INTEGER NOT NULL CHECK (withdraw_amount >= 0),
  -- Unix seconds, as the chain has them.
  withdraw_at         INTEGER NOT NULL CHECK (withdraw_at >= 0),
  refund_nonce        INTEGER NOT NULL CHECK (refund_nonce >= 0),
  state_block         INTEGER NOT NULL,
  -- The block of the newest deposit that was settled here. A state of an earlier block lacks this deposit and is not noted.
  deposit_block       INTEGER NOT NULL DEFAULT 0,
  read_at             INTEGER NOT NULL,
  used_at             INTEGER NOT NULL,
  -- Null exactly when nothing is left to claim.
  unclaimed_since     INTEGER,
  CHECK (total_claimed + written_off <= charged),
  CHECK ((unclaimed_since IS NULL) = (total_claimed + written_off = charged))
) STRICT;

CREATE INDEX channels_unclaimed ON channels (network, unclaimed_since, id) WHERE unclaimed_since IS NOT NULL;
CREATE INDEX channels_used ON channels (network, used_at);
CREATE INDEX channels_read ON channels (network, read_at);

-- Claims, sweeps and refunds of our relayer.
CREATE TABLE channel_operations (
  id               TEXT    NOT NULL PRIMARY KEY,
  network          TEXT    NOT NULL,
  kind             TEXT    NOT NULL CHECK (kind IN ('claim', 'settle', 'refund')),
  channel_id       BLOB    CHECK (length(channel_id) = 32),
  amount           INTEGER NOT NULL CHECK (amount >= 0),
  -- Only while the operation is open.
  calldata         BLOB,
  transaction_hash BLOB,
  state            TEXT    NOT NULL CHECK (state IN ('open', 'done', 'failed')),
  reason           TEXT,
  created_at       INTEGER NOT NULL,
  ended_at         INTEGER,
  CHECK ((kind = 'refund') = (channel_id IS NOT NULL)),
  CHECK ((state = 'open') = (calldata IS NOT NULL))
) STRICT;

CREATE INDEX channel_operations_open ON channel_operations (created_at, id) WHERE state = 'open';
-- A channel has one open refund at most.
CREATE UNIQUE INDEX channel_operations_refunding ON channel_operations (channel_id)
 WHERE state = 'open' AND channel_id IS NOT NULL;
CREATE INDEX channel_operations_refunded ON channel_operations (channel_id, ended_at) WHERE state = 'done' AND channel_id IS NOT NULL;

-- A sale that a voucher pays: its channel, the voucher's cumulative amount, and the channel right after the charge, as JSON.
-- The voucher's signature is kept only while a deposit is open; with the charge it moves into the channel.
ALTER TABLE usdc_payments ADD COLUMN channel_id BLOB CHECK (length(channel_id) = 32);
ALTER TABLE usdc_payments ADD COLUMN voucher_max INTEGER CHECK (voucher_max > 0);
ALTER TABLE usdc_payments ADD COLUMN voucher_signature BLOB;
ALTER TABLE usdc_payments ADD COLUMN channel_after TEXT;
-- The call that settles the payment, where it is another one than the token's transfer. Only while the payment is open.
ALTER TABLE usdc_payments ADD COLUMN calldata BLOB;

-- A channel has one open sale at most, and a voucher pays one sale.
CREATE UNIQUE INDEX usdc_payments_channel ON usdc_payments (channel_id)
 WHERE channel_id IS NOT NULL AND state IN ('reserved', 'settling', 'unknown');
CREATE UNIQUE INDEX usdc_payments_voucher ON usdc_payments (channel_id, voucher_max)
 WHERE channel_id IS NOT NULL AND state <> 'failed';
