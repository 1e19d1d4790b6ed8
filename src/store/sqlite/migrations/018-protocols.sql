-- Which protocol presented a payment first: 'x402', 'l402' or 'mpp'. Null in rows from before, and in rows that an instance of the version before writes.
ALTER TABLE usdc_payments ADD COLUMN protocol TEXT;
ALTER TABLE lightning_claims ADD COLUMN protocol TEXT;

-- Random keys that are made once for a ledger, so that every instance and every restart has the same. They sign challenges; no money can be moved with them.
CREATE TABLE service_keys (
  name TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT;
