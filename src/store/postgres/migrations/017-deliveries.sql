-- When the answer was first sent over a connection that did not break, in Unix milliseconds. Null before that, and in rows from before.
ALTER TABLE usdc_payments ADD COLUMN delivered_at BIGINT;
