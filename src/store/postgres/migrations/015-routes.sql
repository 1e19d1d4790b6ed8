-- Which route a payment bought: its listed path, such as /v1/paid/chain/wallet. Never the query, which is the buyer's own business.
-- Null in rows from before, in rows that an instance of the version before writes, and in the facilitator's claims, which buy nothing here.
-- An instance of the version before that sells a reverted payment anew leaves the route of its first sale.
ALTER TABLE usdc_payments ADD COLUMN route TEXT;
ALTER TABLE lightning_claims ADD COLUMN route TEXT;
