-- Payments that Circle's Gateway has accepted: their transaction in usdc_payments is the transfer's id (16 bytes), and the batch's
-- transaction on the chain is learned here afterwards. Times are Unix milliseconds.
CREATE TABLE gateway_transfers (
  payment_id       TEXT    PRIMARY KEY REFERENCES usdc_payments (id) ON DELETE CASCADE,
  transfer_id      BLOB    NOT NULL CHECK (length(transfer_id) = 16),
  -- As the Gateway names it; null before the first look.
  status           TEXT,
  transaction_hash BLOB    CHECK (length(transaction_hash) = 32),
  checks           INTEGER NOT NULL DEFAULT 0,
  -- Null once there is nothing more to learn.
  next_check_at    INTEGER
) STRICT;

CREATE INDEX gateway_transfers_due ON gateway_transfers (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX gateway_transfers_transaction ON gateway_transfers (transaction_hash) WHERE transaction_hash IS NOT NULL;

-- With the payment's own move, so that no crash comes between them.
CREATE TRIGGER gateway_transfer_accepted AFTER UPDATE OF state ON usdc_payments
WHEN NEW.state = 'settled' AND length(NEW.transaction_hash) = 16
BEGIN
  INSERT INTO gateway_transfers (payment_id, transfer_id, next_check_at) VALUES (NEW.id, NEW.transaction_hash, 0);
END;
