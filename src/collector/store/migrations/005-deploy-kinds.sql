-- What a created contract is: 1 a token, 2 a proxy, 3 both, 0 neither; null until its code was read.
ALTER TABLE deploys ADD COLUMN kinds INTEGER;
-- When it is looked at again, by the chain's time, because a symbol or a proxy's target may be set after the creation; null: no more.
ALTER TABLE deploys ADD COLUMN look_at INTEGER;

-- The labels of earlier versions say the kinds. What a contract calls itself comes last, in quotation marks, so that it cannot pretend to be a proxy.
UPDATE deploys SET kinds = CASE WHEN label LIKE 'proxy to 0x%' OR label LIKE 'minimal proxy to 0x%' THEN 2 ELSE 0 END
                         + CASE WHEN label LIKE 'token "%' OR label LIKE '%proxy to 0x%, token "%' THEN 1 ELSE 0 END
 WHERE code_bytes IS NOT NULL;
UPDATE deploys SET look_at = at WHERE code_bytes > 0 AND kinds IN (0, 2);

CREATE INDEX deploys_look_at ON deploys (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX deploys_deployer ON deploys (deployer, block);
-- One index for each kind that is asked for, so that a page of a rare kind reads no other rows.
CREATE INDEX deploys_tokens ON deploys (block) WHERE kinds IN (1, 3);
CREATE INDEX deploys_proxies ON deploys (block) WHERE kinds IN (2, 3);
CREATE INDEX deploys_others ON deploys (block) WHERE kinds = 0;
