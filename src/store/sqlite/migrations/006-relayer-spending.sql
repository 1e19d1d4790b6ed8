-- What our own relayer paid for gas, by UTC day (YYYY-MM-DD): the day's budget holds over restarts, and the operator sees what settling costs.
CREATE TABLE relayer_spending (
  day          TEXT    PRIMARY KEY CHECK (length(day) = 10),
  -- Wei of native USDC, in decimal: more than an INTEGER holds.
  wei          TEXT    NOT NULL,
  gas          INTEGER NOT NULL,
  transactions INTEGER NOT NULL,
  -- Payments that these transactions settled.
  payments     INTEGER NOT NULL
) STRICT;
