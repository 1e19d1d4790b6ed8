-- Third parties' routes that any client may list. The sellers' own texts are JSON, made plain and cut before they are stored. Times are Unix milliseconds.
CREATE TABLE market_listings (
  -- Host and path.
  place      TEXT   PRIMARY KEY,
  domain     TEXT   NOT NULL,
  listing    TEXT   NOT NULL,
  method     TEXT   NOT NULL CHECK (method IN ('GET', 'POST')),
  listed_at  BIGINT NOT NULL,
  priced_at  BIGINT NOT NULL,
  -- Of the newest call; the reason is null exactly when it was answered as it should be.
  checked_at BIGINT NOT NULL,
  reason     TEXT,
  failures   BIGINT NOT NULL CHECK (failures >= 0),
  offline_at BIGINT,
  due_at     BIGINT NOT NULL,
  -- Of the kept calls, written with each of them.
  calls      BIGINT NOT NULL,
  answered   BIGINT NOT NULL,
  median_latency_ms BIGINT,
  -- Of the market when this was last written.
  revision   BIGINT NOT NULL,
  CHECK ((reason IS NULL) = (failures = 0)),
  CHECK (offline_at IS NULL OR failures > 0)
);

CREATE INDEX market_listings_domain ON market_listings (domain);
CREATE INDEX market_listings_due ON market_listings (due_at);
CREATE INDEX market_listings_revision ON market_listings (revision);

-- Calls of the last days; null is one that failed.
CREATE TABLE market_calls (
  place      TEXT   NOT NULL REFERENCES market_listings (place) ON DELETE CASCADE,
  at         BIGINT NOT NULL,
  latency_ms BIGINT CHECK (latency_ms >= 0),
  PRIMARY KEY (place, at)
);

-- Counts the writes, so that a reader knows whether its copy is old.
CREATE TABLE market_state (
  id       BIGINT PRIMARY KEY CHECK (id = 1),
  revision BIGINT NOT NULL
);

INSERT INTO market_state (id, revision) VALUES (1, 0);
