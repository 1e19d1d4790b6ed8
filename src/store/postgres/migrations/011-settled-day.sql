-- What came in since a moment is read without going through all that ever did.
CREATE INDEX usdc_payments_settled ON usdc_payments (ended_at) WHERE state = 'settled';
CREATE INDEX lightning_claims_granted ON lightning_claims (claimed_at) WHERE request_hash IS NOT NULL;
