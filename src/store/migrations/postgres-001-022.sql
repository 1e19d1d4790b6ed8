-- 001 usdc-payments
-- One row an authorization, from its reservation until long after it can no longer be used.
-- Amounts are NUMERIC, which the service reads as bigint; times (Unix milliseconds) and counts are BIGINT, which it reads as numbers.
CREATE TABLE usdc_payments (
  id               TEXT    PRIMARY KEY,
  network          TEXT    NOT NULL,
  contract         BYTEA   NOT NULL CHECK (length(contract) = 20),
  payer            BYTEA   NOT NULL CHECK (length(payer) = 20),
  nonce            BYTEA   NOT NULL CHECK (length(nonce) = 32),
  state            TEXT    NOT NULL CHECK (state IN ('reserved', 'settling', 'unknown', 'settled', 'failed')),
  -- The process that works on it: recovery touches only what a dead one left.
  boot_id          TEXT    NOT NULL,
  amount           NUMERIC(78, 0) NOT NULL CHECK (amount > 0),
  pay_to           BYTEA   NOT NULL CHECK (length(pay_to) = 20),
  -- uint256: a buyer may sign any.
  valid_after      NUMERIC(78, 0) NOT NULL,
  valid_before     NUMERIC(78, 0) NOT NULL,
  -- Only while the settlement needs it.
  signature        BYTEA,
  request_hash     BYTEA   NOT NULL CHECK (length(request_hash) = 32),
  client_hash      BYTEA   NOT NULL CHECK (length(client_hash) = 32),
  identifier_hash  BYTEA,
  -- The chain had not seen the authorization up to here: where a search for it starts.
  checked_block    BIGINT,
  transaction_hash BYTEA,
  block            BIGINT,
  reason           TEXT,
  reserved_at      BIGINT  NOT NULL,
  settling_at      BIGINT,
  ended_at         BIGINT,
  deliveries       BIGINT  NOT NULL DEFAULT 0,
  -- Among the payer's open payments, in the order of their reservations, whichever instance made them.
  place            BIGINT  NOT NULL,
  UNIQUE (network, contract, payer, nonce)
);

CREATE UNIQUE INDEX usdc_payments_open ON usdc_payments (payer, place) WHERE state IN ('reserved', 'settling', 'unknown');
CREATE INDEX usdc_payments_state ON usdc_payments (state, id);
CREATE INDEX usdc_payments_transaction ON usdc_payments (transaction_hash) WHERE transaction_hash IS NOT NULL;

-- The bytes that were bought, kept for delivery after a crash and for redelivery.
CREATE TABLE usdc_replies (
  payment_id TEXT   PRIMARY KEY REFERENCES usdc_payments (id) ON DELETE CASCADE,
  body       BYTEA  NOT NULL,
  -- Null until the payment has ended.
  keep_until BIGINT
);

CREATE INDEX usdc_replies_keep_until ON usdc_replies (keep_until) WHERE keep_until IS NOT NULL;

-- Whose turn it is to write: one row for each kind of writes, which every transaction of that kind begins with.
CREATE TABLE ledger_turns (
  name  TEXT   PRIMARY KEY,
  taken BIGINT NOT NULL
);

INSERT INTO ledger_turns (name, taken) VALUES ('payments', 0), ('lightning', 0), ('others', 0);
-- 002 lightning
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
-- 003 lookup
-- Payments are looked up by their authorization's nonce alone.
CREATE INDEX usdc_payments_nonce ON usdc_payments (nonce);
-- 004 identifiers
-- A payment identifier belongs to one payment; between two requests that race with one, on any instance, this index decides.
-- It is held from the reservation on and as long as the row is there, which is longer than a day and than its authorization.
-- A reservation that is given back frees it, and so does a payment that failed, because nothing was charged: that row keeps the hash
-- only to know its buyer by.
CREATE UNIQUE INDEX usdc_payments_identifier ON usdc_payments (identifier_hash)
 WHERE identifier_hash IS NOT NULL AND state <> 'failed';
-- 005 selftest
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
-- 006 relayer-spending
-- What our own relayer paid for gas, by UTC day (YYYY-MM-DD): the day's budget holds over restarts, and the operator sees what settling costs.
CREATE TABLE relayer_spending (
  day          TEXT           PRIMARY KEY CHECK (length(day) = 10),
  -- Wei of native USDC.
  wei          NUMERIC(78, 0) NOT NULL,
  gas          NUMERIC(78, 0) NOT NULL,
  transactions BIGINT         NOT NULL,
  -- Payments that these transactions settled.
  payments     BIGINT         NOT NULL
);
-- 007 discovery
-- The last good copy of the third-party catalogue, so that a restart has it at once. Times are Unix milliseconds.
CREATE TABLE catalogue_copy (
  id      BIGINT PRIMARY KEY CHECK (id = 1),
  read_at BIGINT NOT NULL,
  -- Of the text, 32 bytes: a read that changed nothing does not write it again.
  digest  BYTEA  NOT NULL CHECK (length(digest) = 32),
  -- JSON, in the form of the discovery module; it judges it when it reads it back.
  entries TEXT   NOT NULL
);
-- 009 gateway-transfers
-- Payments that Circle's Gateway has accepted: their transaction in usdc_payments is the transfer's id (16 bytes), and the batch's
-- transaction on the chain is learned here afterwards. A row comes in with the payment's own move, in one statement, so that no crash
-- comes between them. Times are Unix milliseconds.
CREATE TABLE gateway_transfers (
  payment_id       TEXT   PRIMARY KEY REFERENCES usdc_payments (id) ON DELETE CASCADE,
  transfer_id      BYTEA  NOT NULL CHECK (length(transfer_id) = 16),
  -- As the Gateway names it; null before the first look.
  status           TEXT,
  transaction_hash BYTEA  CHECK (length(transaction_hash) = 32),
  checks           BIGINT NOT NULL DEFAULT 0,
  -- Null once there is nothing more to learn.
  next_check_at    BIGINT
);

CREATE INDEX gateway_transfers_due ON gateway_transfers (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX gateway_transfers_transaction ON gateway_transfers (transaction_hash) WHERE transaction_hash IS NOT NULL;
-- 010 market
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
-- 011 settled-day
-- What came in since a moment is read without going through all that ever did.
CREATE INDEX usdc_payments_settled ON usdc_payments (ended_at) WHERE state = 'settled';
CREATE INDEX lightning_claims_granted ON lightning_claims (claimed_at) WHERE request_hash IS NOT NULL;
-- 012 instances
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
-- 013 facilitator-payees
-- The UTC day on which a payee was first claimed for. Null for payees from before this was kept: they count as seen on an earlier day.
ALTER TABLE lightning_facilitator_nodes ADD COLUMN first_day TEXT CHECK (length(first_day) = 10);

-- How many of a day's claims were for payees first seen on that day.
ALTER TABLE lightning_facilitator_days ADD COLUMN new_payee_claims BIGINT NOT NULL DEFAULT 0;
-- 014 authorizations
-- An authorization is all of its content. SHA-256 over the contract, the six signed fields and the signature, which is wiped at the end;
-- null in rows from before, which no second presentation takes over.
ALTER TABLE usdc_payments ADD COLUMN authorization_hash BYTEA CHECK (length(authorization_hash) = 32);
-- What the request of this row cost when it was reserved, and what the evidence says was paid: nothing is delivered for less. Null in rows from before.
ALTER TABLE usdc_payments ADD COLUMN price NUMERIC(78, 0) CHECK (price > 0);
ALTER TABLE usdc_payments ADD COLUMN charged NUMERIC(78, 0) CHECK (charged >= 0);
-- Whether code stood at the payer's address when the payment was verified: 0 or 1.
ALTER TABLE usdc_payments ADD COLUMN payer_has_code BIGINT CHECK (payer_has_code IN (0, 1));

-- What mined transactions cost for payments that they did not settle: part of `wei`.
ALTER TABLE relayer_spending ADD COLUMN failed_wei NUMERIC(78, 0) NOT NULL DEFAULT 0;
-- 015 routes
-- Which route a payment bought: its listed path, such as /v1/paid/chain/wallet. Never the query, which is the buyer's own business.
-- Null in rows from before, in rows that an instance of the version before writes, and in the facilitator's claims, which buy nothing here.
-- An instance of the version before that sells a reverted payment anew leaves the route of its first sale.
ALTER TABLE usdc_payments ADD COLUMN route TEXT;
ALTER TABLE lightning_claims ADD COLUMN route TEXT;
-- 016 channels
-- A payment channel of a buyer. Amounts are base units of its token, at most 2^63 - 1. Times are Unix milliseconds.
CREATE TABLE channels (
  id                  BYTEA NOT NULL PRIMARY KEY CHECK (length(id) = 32),
  network             TEXT NOT NULL,
  payer               BYTEA NOT NULL CHECK (length(payer) = 20),
  payer_authorizer    BYTEA NOT NULL CHECK (length(payer_authorizer) = 20),
  receiver            BYTEA NOT NULL CHECK (length(receiver) = 20),
  receiver_authorizer BYTEA NOT NULL CHECK (length(receiver_authorizer) = 20),
  token               BYTEA NOT NULL CHECK (length(token) = 20),
  -- Seconds.
  withdraw_delay      BIGINT NOT NULL CHECK (withdraw_delay >= 0),
  salt                BYTEA NOT NULL CHECK (length(salt) = 32),
  charged             NUMERIC(78, 0) NOT NULL CHECK (charged >= 0 AND charged <= 9223372036854775807),
  -- The part of `charged` that can never be claimed.
  written_off         NUMERIC(78, 0) NOT NULL CHECK (written_off >= 0 AND written_off <= 9223372036854775807),
  -- Of the voucher over all of `charged`.
  signature           BYTEA,
  -- What the chain showed at `state_block`, with the deposits that were settled since.
  balance             NUMERIC(78, 0) NOT NULL CHECK (balance >= 0 AND balance <= 9223372036854775807),
  total_claimed       NUMERIC(78, 0) NOT NULL CHECK (total_claimed >= 0 AND total_claimed <= 9223372036854775807),
  withdraw_amount     NUMERIC(78, 0) NOT NULL CHECK (withdraw_amount >= 0 AND withdraw_amount <= 9223372036854775807),
  -- Unix seconds, as the chain has them.
  withdraw_at         BIGINT NOT NULL CHECK (withdraw_at >= 0),
  refund_nonce        NUMERIC(78, 0) NOT NULL CHECK (refund_nonce >= 0 AND refund_nonce <= 9223372036854775807),
  state_block         BIGINT NOT NULL,
  -- The block of the newest deposit that was settled here. A state of an earlier block lacks this deposit and is not noted.
  deposit_block       BIGINT NOT NULL DEFAULT 0,
  read_at             BIGINT NOT NULL,
  used_at             BIGINT NOT NULL,
  -- Null exactly when nothing is left to claim.
  unclaimed_since     BIGINT,
  CHECK (total_claimed + written_off <= charged),
  CHECK ((unclaimed_since IS NULL) = (total_claimed + written_off = charged))
);

CREATE INDEX channels_unclaimed ON channels (network, unclaimed_since, id) WHERE unclaimed_since IS NOT NULL;
CREATE INDEX channels_used ON channels (network, used_at);
CREATE INDEX channels_read ON channels (network, read_at);

-- Claims, sweeps and refunds of our relayer.
CREATE TABLE channel_operations (
  id               TEXT NOT NULL PRIMARY KEY,
  network          TEXT NOT NULL,
  kind             TEXT NOT NULL CHECK (kind IN ('claim', 'settle', 'refund')),
  channel_id       BYTEA CHECK (length(channel_id) = 32),
  amount           NUMERIC(78, 0) NOT NULL CHECK (amount >= 0 AND amount <= 9223372036854775807),
  -- Only while the operation is open.
  calldata         BYTEA,
  transaction_hash BYTEA,
  state            TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed')),
  reason           TEXT,
  created_at       BIGINT NOT NULL,
  ended_at         BIGINT,
  CHECK ((kind = 'refund') = (channel_id IS NOT NULL)),
  CHECK ((state = 'open') = (calldata IS NOT NULL))
);

CREATE INDEX channel_operations_open ON channel_operations (created_at, id) WHERE state = 'open';
-- A channel has one open refund at most.
CREATE UNIQUE INDEX channel_operations_refunding ON channel_operations (channel_id)
 WHERE state = 'open' AND channel_id IS NOT NULL;
CREATE INDEX channel_operations_refunded ON channel_operations (channel_id, ended_at) WHERE state = 'done' AND channel_id IS NOT NULL;

-- A sale that a voucher pays: its channel, the voucher's cumulative amount, and the channel right after the charge, as JSON.
-- The voucher's signature is kept only while a deposit is open; with the charge it moves into the channel.
ALTER TABLE usdc_payments ADD COLUMN channel_id BYTEA CHECK (length(channel_id) = 32);
ALTER TABLE usdc_payments ADD COLUMN voucher_max NUMERIC(78, 0) CHECK (voucher_max > 0 AND voucher_max <= 9223372036854775807);
ALTER TABLE usdc_payments ADD COLUMN voucher_signature BYTEA;
ALTER TABLE usdc_payments ADD COLUMN channel_after TEXT;
-- The call that settles the payment, where it is another one than the token's transfer. Only while the payment is open.
ALTER TABLE usdc_payments ADD COLUMN calldata BYTEA;

-- A channel has one open sale at most, and a voucher pays one sale.
CREATE UNIQUE INDEX usdc_payments_channel ON usdc_payments (channel_id)
 WHERE channel_id IS NOT NULL AND state IN ('reserved', 'settling', 'unknown');
CREATE UNIQUE INDEX usdc_payments_voucher ON usdc_payments (channel_id, voucher_max)
 WHERE channel_id IS NOT NULL AND state <> 'failed';
-- 017 deliveries
-- When the answer was first sent over a connection that did not break, in Unix milliseconds. Null before that, and in rows from before.
ALTER TABLE usdc_payments ADD COLUMN delivered_at BIGINT;
-- 018 protocols
-- Which protocol presented a payment first: 'x402', 'l402' or 'mpp'. Null in rows from before, and in rows that an instance of the version before writes.
ALTER TABLE usdc_payments ADD COLUMN protocol TEXT;
ALTER TABLE lightning_claims ADD COLUMN protocol TEXT;

-- Random keys that are made once for a ledger, so that every instance and every restart has the same. They sign challenges; no money can be moved with them.
CREATE TABLE service_keys (
  name TEXT PRIMARY KEY,
  value BYTEA NOT NULL
);
-- 019 unused-channels
-- Channels that have bought nothing, for their deletion.
CREATE INDEX channels_unused ON channels (read_at) WHERE charged = 0;
-- The failed deposits of a channel. A row of such a channel stays, because a third party may have made the deposit since.
CREATE INDEX usdc_payments_failed_deposits ON usdc_payments (channel_id) WHERE channel_id IS NOT NULL AND state = 'failed';
-- Nothing lists channels by these times any more, and each charge had to write both.
DROP INDEX channels_used;
DROP INDEX channels_read;
-- 020 providers-and-books
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
-- 021 confirmed-channels
-- The block at which two RPC providers gave the channel's state. The state counts only where this is `state_block`:
-- an older release notes a state without it.
ALTER TABLE channels ADD COLUMN confirmed_block BIGINT;
-- When the contract refused to record the channel's charges. Null while nothing is left to claim.
ALTER TABLE channels ADD COLUMN refused_at BIGINT;
CREATE INDEX channels_to_read ON channels (network, id)
  WHERE confirmed_block IS DISTINCT FROM state_block OR confirmed_block < deposit_block + 20;
CREATE INDEX channels_refused ON channels (network) WHERE refused_at IS NOT NULL;
-- 022 known-payees
-- For whom the facilitator claimed on which day. Rows are kept for a month: who was claimed for on three earlier days, by two clients, is known.
CREATE TABLE lightning_facilitator_payees (
  pay_to        BYTEA  NOT NULL CHECK (length(pay_to) = 33),
  day           TEXT   NOT NULL CHECK (length(day) = 10),
  claims        BIGINT NOT NULL,
  -- The day's first client, hashed with the payee, and whether another one claimed on it too: 0 or 1.
  client        BYTEA  NOT NULL,
  other_clients BIGINT NOT NULL,
  PRIMARY KEY (pay_to, day)
);

CREATE INDEX lightning_facilitator_payees_day ON lightning_facilitator_payees (day);

-- How many payees are known on this day; they divide their part of it. Null on a day that an instance of the version before has begun.
-- From this version on, `new_payee_claims` counts the claims in the open part of the day.
ALTER TABLE lightning_facilitator_days ADD COLUMN known_payees BIGINT;
