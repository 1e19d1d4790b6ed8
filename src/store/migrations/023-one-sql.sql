-- only sqlite
-- A payment's place among its payer's open payments, in the order of their reservations. A row that was reserved before
-- has that of its insertion.
ALTER TABLE usdc_payments ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
UPDATE usdc_payments SET place = rowid WHERE state IN ('reserved', 'settling', 'unknown');
DROP INDEX usdc_payments_open;
CREATE UNIQUE INDEX usdc_payments_open ON usdc_payments (payer, place) WHERE state IN ('reserved', 'settling', 'unknown');

-- The statement that settles a payment inserts its transfer.
DROP TRIGGER gateway_transfer_accepted;
-- both

-- Of what our relayer did, the operation of a transaction and the claims of a time are found without reading the rest.
CREATE INDEX channel_operations_transaction ON channel_operations (transaction_hash) WHERE transaction_hash IS NOT NULL;
CREATE INDEX channel_operations_claimed ON channel_operations (ended_at) WHERE state = 'done' AND kind = 'claim';
