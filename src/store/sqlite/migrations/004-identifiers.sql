-- A payment identifier belongs to one payment; between two requests that race with one, in any process, this index decides.
-- It is held from the reservation on and as long as the row is there, which is longer than a day and than its authorization.
-- A reservation that is given back frees it, and so does a payment that failed, because nothing was charged: that row keeps the hash
-- only to know its buyer by.
-- Rows from before the rule may share one: the latest keeps it.
UPDATE usdc_payments SET identifier_hash = NULL
 WHERE identifier_hash IS NOT NULL AND state <> 'failed'
   AND id NOT IN (SELECT max(id) FROM usdc_payments
                   WHERE identifier_hash IS NOT NULL AND state <> 'failed' GROUP BY identifier_hash);

CREATE UNIQUE INDEX usdc_payments_identifier ON usdc_payments (identifier_hash)
 WHERE identifier_hash IS NOT NULL AND state <> 'failed';
