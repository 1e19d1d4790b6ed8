-- The last good copy of the third-party catalogue, so that a restart has it at once. Times are Unix milliseconds.
CREATE TABLE catalogue_copy (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  read_at INTEGER NOT NULL,
  -- Of the text, 32 bytes: a read that changed nothing does not write it again.
  digest  BLOB    NOT NULL CHECK (length(digest) = 32),
  -- JSON, in the form of the discovery module; it judges it when it reads it back.
  entries TEXT    NOT NULL
) STRICT;
