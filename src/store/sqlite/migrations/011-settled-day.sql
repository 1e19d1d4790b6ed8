-- What came in since a moment is read without going through all that ever did.
-- The state, though it is always the same here: without it a planner may prefer the index of all states.
CREATE INDEX usdc_payments_settled ON usdc_payments (state, ended_at) WHERE state = 'settled';
CREATE INDEX lightning_claims_granted ON lightning_claims (claimed_at) WHERE request_hash IS NOT NULL;
