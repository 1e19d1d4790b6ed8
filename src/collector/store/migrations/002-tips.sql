-- Priority fees that transactions paid: how many of an hour (`at` is its first second) paid so many wei a gas above the base fee, to three digits.
CREATE TABLE tips (
  at    INTEGER NOT NULL,
  wei   INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (at, wei)
) STRICT, WITHOUT ROWID;
