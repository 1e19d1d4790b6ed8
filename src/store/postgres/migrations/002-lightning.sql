-- The Lightning rail. Its key everywhere is the scheme's: network and payment hash. No preimage, request or client address is in any of it.
-- Amounts are millisatoshis; an invoice may name more of them than 64 bits hold. Times are Unix milliseconds.

-- What we offered, and what a proof of it is judged against.
CREATE TABLE lightning_invoices (
  network      TEXT   NOT NULL,
  payment_hash BYTEA  NOT NULL CHECK (length(payment_hash) = 32),
  request_hash BYTEA  NOT NULL CHECK (length(request_hash) = 32),
  amount_msat  NUMERIC(78, 0) NOT NULL,
  pay_to       BYTEA  NOT NULL CHECK (length(pay_to) = 33),
  issued_at    BIGINT NOT NULL,
  forget_at    BIGINT NOT NULL,
  PRIMARY KEY (network, payment_hash)
);

CREATE INDEX lightning_invoices_forget ON lightning_invoices (forget_at);

-- The encrypted reply made for an invoice, in its own table, so that reading a record does not read the reply.
CREATE TABLE lightning_kept_replies (
  network      TEXT  NOT NULL,
  payment_hash BYTEA NOT NULL,
  body         BYTEA NOT NULL,
  PRIMARY KEY (network, payment_hash),
  FOREIGN KEY (network, payment_hash) REFERENCES lightning_invoices (network, payment_hash) ON DELETE CASCADE
);

-- One row a spent proof: inserting it is the claim. The primary key lets exactly one caller win, in any process.
CREATE TABLE lightning_claims (
  network      TEXT   NOT NULL,
  payment_hash BYTEA  NOT NULL CHECK (length(payment_hash) = 32),
  pay_to       BYTEA  NOT NULL CHECK (length(pay_to) = 33),
  amount_msat  NUMERIC(78, 0) NOT NULL,
  claimed_at   BIGINT NOT NULL,
  keep_until   BIGINT NOT NULL,
  -- From here on null for the facilitator's claims, which grant nothing.
  request_hash BYTEA  CHECK (length(request_hash) = 32),
  state        TEXT   CHECK (state IN ('claimed', 'delivered')),
  redeem_until BIGINT,
  delivered_at BIGINT,
  -- Whether the answer was stored, and whether it is still there: it is stored once, even when it is gone.
  answer       TEXT   CHECK (answer IN ('none', 'kept', 'gone')),
  -- The presentation that serves it, and the end of its lease.
  lease_holder TEXT,
  lease_until  BIGINT,
  PRIMARY KEY (network, payment_hash),
  CHECK ((request_hash IS NULL) = (state IS NULL)),
  CHECK ((request_hash IS NULL) = (redeem_until IS NULL)),
  CHECK ((request_hash IS NULL) = (answer IS NULL)),
  CHECK ((delivered_at IS NOT NULL) = (coalesce(state, '') = 'delivered')),
  CHECK ((lease_holder IS NULL) = (lease_until IS NULL)),
  CHECK (lease_holder IS NULL OR request_hash IS NOT NULL)
);

CREATE INDEX lightning_claims_keep ON lightning_claims (keep_until);
CREATE INDEX lightning_claims_answer ON lightning_claims (redeem_until) WHERE answer = 'kept';
CREATE INDEX lightning_claims_lease ON lightning_claims (lease_holder) WHERE lease_holder IS NOT NULL;

-- The sealed answer that every presentation of a granted claim gets.
CREATE TABLE lightning_answers (
  network      TEXT  NOT NULL,
  payment_hash BYTEA NOT NULL,
  body         BYTEA NOT NULL,
  PRIMARY KEY (network, payment_hash),
  FOREIGN KEY (network, payment_hash) REFERENCES lightning_claims (network, payment_hash) ON DELETE CASCADE
);

-- What the facilitator has claimed, counted in the claim's own statement: exact, read in one row, and still there when the claims are gone.
CREATE TABLE lightning_facilitator_totals (
  id     BIGINT PRIMARY KEY CHECK (id = 1),
  claims BIGINT NOT NULL,
  -- Rows of lightning_facilitator_nodes.
  nodes  BIGINT NOT NULL
);

INSERT INTO lightning_facilitator_totals (id, claims, nodes) VALUES (1, 0, 0);

CREATE TABLE lightning_facilitator_nodes (
  pay_to BYTEA  PRIMARY KEY CHECK (length(pay_to) = 33),
  claims BIGINT NOT NULL
);

-- A UTC day, YYYY-MM-DD.
CREATE TABLE lightning_facilitator_days (
  day    TEXT   PRIMARY KEY CHECK (length(day) = 10),
  claims BIGINT NOT NULL
);

-- A client is a hash that changes with the day; its row is only good for that day's cap.
CREATE TABLE lightning_facilitator_clients (
  day         TEXT   NOT NULL CHECK (length(day) = 10),
  client_hash BYTEA  NOT NULL,
  claims      BIGINT NOT NULL,
  PRIMARY KEY (day, client_hash)
);
