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
