-- Channels that have bought nothing, for their deletion.
CREATE INDEX channels_unused ON channels (read_at) WHERE charged = 0;
-- The failed deposits of a channel. A row of such a channel stays, because a third party may have made the deposit since.
CREATE INDEX usdc_payments_failed_deposits ON usdc_payments (channel_id) WHERE channel_id IS NOT NULL AND state = 'failed';
-- Nothing lists channels by these times any more, and each charge had to write both.
DROP INDEX channels_used;
DROP INDEX channels_read;
