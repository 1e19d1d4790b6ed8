-- How many calls whose payment was presented got no answer, by the hour's start (Unix milliseconds) and the code that
-- they got. Instances add to one row. Rows are kept for 30 days.
CREATE TABLE refused_calls (
  hour  INTEGER NOT NULL,
  code  TEXT    NOT NULL,
  count INTEGER NOT NULL CHECK (count > 0),
  PRIMARY KEY (hour, code)
) STRICT, WITHOUT ROWID;
