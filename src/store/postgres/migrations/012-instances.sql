-- Who serves over this ledger. Times are Unix milliseconds of the database's own clock.
CREATE TABLE instances (
  boot_id TEXT   PRIMARY KEY,
  seen_at BIGINT NOT NULL
);

-- Who does what must be done once; its number grows whenever it changes hands.
CREATE TABLE instance_lease (
  id     INT    PRIMARY KEY CHECK (id = 1),
  holder TEXT,
  fence  BIGINT NOT NULL,
  until  BIGINT NOT NULL,
  -- What its holder tells the others, as JSON.
  said   TEXT
);

INSERT INTO instance_lease (id, fence, until) VALUES (1, 0, 0);

-- Calls in a client's minute, where a limit must be one for all instances. Clients stand here as hashes.
CREATE TABLE minute_windows (
  name    TEXT   NOT NULL,
  client  BYTEA  NOT NULL,
  ends_at BIGINT NOT NULL,
  calls   BIGINT NOT NULL,
  PRIMARY KEY (name, client)
);

CREATE INDEX minute_windows_end ON minute_windows (ends_at);
