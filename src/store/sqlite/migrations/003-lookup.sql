-- Payments are looked up by their authorization's nonce alone.
CREATE INDEX usdc_payments_nonce ON usdc_payments (nonce);
