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
