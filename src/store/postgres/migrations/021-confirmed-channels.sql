-- The block at which two RPC providers gave the channel's state. The state counts only where this is `state_block`:
-- an older release notes a state without it.
ALTER TABLE channels ADD COLUMN confirmed_block BIGINT;
-- When the contract refused to record the channel's charges. Null while nothing is left to claim.
ALTER TABLE channels ADD COLUMN refused_at BIGINT;
CREATE INDEX channels_to_read ON channels (network, id)
  WHERE confirmed_block IS DISTINCT FROM state_block OR confirmed_block < deposit_block + 20;
CREATE INDEX channels_refused ON channels (network) WHERE refused_at IS NOT NULL;
