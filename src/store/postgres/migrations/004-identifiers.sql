-- A payment identifier belongs to one payment; between two requests that race with one, on any instance, this index decides.
-- It is held from the reservation on and as long as the row is there, which is longer than a day and than its authorization.
-- A reservation that is given back frees it, and so does a payment that failed, because nothing was charged: that row keeps the hash
-- only to know its buyer by.
CREATE UNIQUE INDEX usdc_payments_identifier ON usdc_payments (identifier_hash)
 WHERE identifier_hash IS NOT NULL AND state <> 'failed';
