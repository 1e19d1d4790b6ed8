-- An authorization is all of its content. SHA-256 over the contract, the six signed fields and the signature, which is wiped at the end;
-- null in rows from before, which no second presentation takes over.
ALTER TABLE usdc_payments ADD COLUMN authorization_hash BLOB CHECK (length(authorization_hash) = 32);
-- What the request of this row cost when it was reserved, and what the evidence says was paid: nothing is delivered for less. Null in rows from before.
ALTER TABLE usdc_payments ADD COLUMN price INTEGER CHECK (price > 0);
ALTER TABLE usdc_payments ADD COLUMN charged INTEGER CHECK (charged >= 0);
-- Whether code stood at the payer's address when the payment was verified.
ALTER TABLE usdc_payments ADD COLUMN payer_has_code INTEGER CHECK (payer_has_code IN (0, 1));

-- What mined transactions cost for payments that they did not settle: part of `wei`.
ALTER TABLE relayer_spending ADD COLUMN failed_wei TEXT NOT NULL DEFAULT '0';
