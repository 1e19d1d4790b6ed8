-- Accounts that a transaction of an hour (`hour` is its first second) came from, was addressed to or created, with the first and the last such block.
-- An hour keeps a bounded number of accounts. A row with an empty account means that it had more.
CREATE TABLE account_hours (
  hour        INTEGER NOT NULL,
  account     BLOB    NOT NULL,
  first_block INTEGER NOT NULL,
  last_block  INTEGER NOT NULL,
  PRIMARY KEY (hour, account)
) STRICT, WITHOUT ROWID;

-- Accounts that a transfer moved a watched token to or from, with the newest such block. Their number is bounded in the same way for each token.
CREATE TABLE token_accounts (
  token      BLOB    NOT NULL,
  account    BLOB    NOT NULL,
  last_block INTEGER NOT NULL,
  last_at    INTEGER NOT NULL,
  PRIMARY KEY (token, account)
) STRICT, WITHOUT ROWID;

-- Who created a contract.
CREATE INDEX deploys_address ON deploys (address);
