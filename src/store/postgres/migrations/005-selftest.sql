-- Every run of the self-test, newest 30 days. No authorization, key or route is in any of it. Times are Unix milliseconds.
CREATE TABLE self_tests (
  -- One more than the newest: of two runs of one moment the later one is the newer.
  id               BIGINT  PRIMARY KEY,
  at               BIGINT  NOT NULL,
  ok               BOOLEAN NOT NULL,
  -- Of the whole paid call; null when it was not answered.
  latency_ms       BIGINT  CHECK (latency_ms >= 0),
  transaction_hash BYTEA   CHECK (length(transaction_hash) = 32),
  -- Whether the call that must fail cost nothing; null when that could not be seen.
  not_charged      BOOLEAN,
  -- A short code; null exactly when the run was well.
  reason           TEXT,
  CHECK (ok = (reason IS NULL)),
  CHECK (NOT ok OR (latency_ms IS NOT NULL AND transaction_hash IS NOT NULL AND coalesce(not_charged, FALSE)))
);

CREATE INDEX self_tests_at ON self_tests (at);
CREATE INDEX self_tests_checked ON self_tests (at) WHERE not_charged IS NOT NULL;
