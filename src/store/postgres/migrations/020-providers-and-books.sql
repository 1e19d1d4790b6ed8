-- What RPC providers said against others. A row counts until it expires. Times are Unix milliseconds.
CREATE TABLE provider_notes (
  host       TEXT NOT NULL,
  -- apart: others agreed against this one. disputed: nobody has decided yet.
  kind       TEXT NOT NULL CHECK (kind IN ('apart', 'disputed')),
  question   TEXT NOT NULL,
  said       TEXT NOT NULL,
  others     TEXT NOT NULL,
  noted_at   BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (host, kind, question)
);

-- The books against the chain: how far they are checked, what could not be read, and what the ledger has and the chain
-- lacks.
CREATE TABLE book_entries (
  network     TEXT NOT NULL,
  rail        TEXT NOT NULL,
  -- checked: everything before `noted_at` and up to `block` was compared. unread: the item is to be looked at again.
  -- missing: the chain lacks `amount`.
  kind        TEXT NOT NULL CHECK (kind IN ('checked', 'unread', 'missing')),
  -- A payment's id, an operation's id or a channel's id in hex. Empty with `checked`.
  item        TEXT NOT NULL,
  -- Base units of the token; 0 unless the entry is `missing`.
  amount      NUMERIC NOT NULL CHECK (amount >= 0),
  detail      TEXT NOT NULL,
  noted_at    BIGINT NOT NULL,
  block       BIGINT,
  -- When the operator accepted a missing amount. Null while it counts.
  accepted_at BIGINT,
  PRIMARY KEY (network, kind, rail, item)
);
