-- Every run of the self-test, newest 30 days. No authorization, key or route is in any of it. Times are Unix milliseconds.
CREATE TABLE self_tests (
  id               INTEGER PRIMARY KEY,
  at               INTEGER NOT NULL,
  ok               INTEGER NOT NULL CHECK (ok IN (0, 1)),
  -- Of the whole paid call; null when it was not answered.
  latency_ms       INTEGER CHECK (latency_ms >= 0),
  transaction_hash BLOB    CHECK (length(transaction_hash) = 32),
  -- Whether the call that must fail cost nothing; null when that could not be seen.
  not_charged      INTEGER CHECK (not_charged IN (0, 1)),
  -- A short code; null exactly when the run was well.
  reason           TEXT,
  CHECK ((ok = 1) = (reason IS NULL)),
  CHECK (ok = 0 OR (latency_ms IS NOT NULL AND transaction_hash IS NOT NULL AND coalesce(not_charged, 0) = 1))
) STRICT;

CREATE INDEX self_tests_at ON self_tests (at);
CREATE INDEX self_tests_checked ON self_tests (at) WHERE not_charged IS NOT NULL;
